use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::backend::Token;
use crate::fake::{END, Fake, USER};
use crate::tokenizer::Tokenizer;

mod hostile;
mod walks;

fn tokenizer() -> Arc<dyn Tokenizer> {
    Fake::default().load().tokenizer
}

fn compiler() -> GrammarCompiler {
    GrammarCompiler::new(tokenizer(), ConstraintLimits::default())
}

fn compile(source: GrammarSource) -> Result<Grammar, Error> {
    block_on(compiler().compile(source))
}

fn matcher(source: GrammarSource) -> Matcher {
    Matcher::new(&compile(source).unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn bytes(text: &str) -> Vec<Token> {
    text.bytes().map(Token::from).collect()
}

fn regex(text: &str) -> GrammarSource {
    GrammarSource::Regex(text.to_owned())
}

fn lark(text: &str) -> GrammarSource {
    GrammarSource::Lark(text.to_owned())
}

fn gbnf(text: &str) -> GrammarSource {
    GrammarSource::Gbnf(text.to_owned())
}

fn schema(text: &str) -> GrammarSource {
    GrammarSource::JsonSchema(text.to_owned())
}

/// Whether the whole text is in the language.
fn takes(source: &GrammarSource, text: &str) -> bool {
    let mut matcher = matcher(source.clone());
    matcher.accept(&bytes(text)).unwrap() == text.len() && matcher.is_accepting()
}

fn sorts(source: &GrammarSource, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(takes(source, text), "{source:?} must take {text:?}");
    }
    for text in bad {
        assert!(!takes(source, text), "{source:?} must not take {text:?}");
    }
}

#[test]
fn a_regex_allows_what_it_matches() {
    let mut matcher = matcher(regex("a(b|c)+"));
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), bytes("a"));
    assert_eq!(matcher.accept(&bytes("abcd")), Ok(3));
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), [98, 99, END]);
    assert_eq!(matcher.accept(&[END, 98]), Ok(1));
    assert!(matcher.is_done() && matcher.is_accepting());
    assert_eq!(matcher.mask().unwrap().allowed(), 0);
    sorts(&regex(r"^\d{2,3}(/|\n)?$"), &["12", "123/", "12\n"], &["1", "1234", "12//"]);
    sorts(&regex(""), &[""], &["a"]);
    sorts(&regex("é|[α-ω]+"), &["é", "αβ"], &["e", "\u{e9}é"]);
}

#[test]
fn json_schemas_are_enforced_and_say_what_they_ignore() {
    let text = r#"{"type":"object","properties":{"name":{"type":"string","maxLength":3},"n":{"type":"integer",
        "minimum":1,"maximum":12}},"required":["name","n"],"additionalProperties":false}"#;
    sorts(
        &schema(text),
        &[r#"{"name":"ab","n":12}"#, "{ \"name\": \"é\",\n    \"n\": 1 }"],
        &[r#"{"name":"abcd","n":1}"#, r#"{"name":"a","n":13}"#, r#"{"n":1,"name":"a"}"#, "{}", " {}"],
    );
    assert_eq!(compile(schema(text)).unwrap().warnings(), [""; 0]);
    let typo = compile(schema(r#"{"type":"object","properties":{"a":{"type":"string","maxLenght":3}}}"#)).unwrap();
    assert!(typo.warnings()[0].contains("/properties/a/maxLenght"), "{:?}", typo.warnings());
    sorts(&GrammarSource::AnyJson, &["[1, {\"a\": null}]", "-1.5e3", "\"\\u0001é\""], &["", "[1,]", "nul", "01"]);
    sorts(&schema("true"), &["1"], &["x"]);
    for (source, says) in [
        (r#"{"not":{"type":"null"}}"#, "not"),
        (r#"{"oneOf":[{"type":"number"},{"type":"integer"}]}"#, "anyOf"),
        (r#"{"$ref":"http://example.com/schema"}"#, "$ref"),
        (r#"{"x-guidance":{"lenient":true}}"#, "x-guidance"),
        (r#"{"type":"string","format":"nonsense"}"#, "nonsense"),
        ("false", "nothing"),
        ("[1]", "an object or a boolean"),
        ("{\"a\":", "not JSON"),
        (r#"{"type":"string","pattern":"("}"#, "/pattern"),
        (r#"{"type":"string","minLength":3,"maxLength":2}"#, ""),
    ] {
        let Err(Error::Constraint(text)) = compile(schema(source)) else { panic!("{source} was taken") };
        assert!(text.contains(says) && !text.contains("backtrace") && text.len() < 800, "{source}: {text}");
    }
}

#[test]
fn whitespace_in_json_ends() {
    let mut matcher = matcher(GrammarSource::AnyJson);
    assert_eq!(matcher.accept(&bytes("[\n")), Ok(2));
    assert_eq!(matcher.accept(&bytes(&" ".repeat(100))), Ok(40));
    assert!(!matcher.mask().unwrap().tokens().any(|t| t < 128 && (t as u8).is_ascii_whitespace()));
}

#[test]
fn lark_allows_what_its_rules_say() {
    let source = lark("start: greeting \" \" name\ngreeting: \"hello\" | \"hi\"\nname: /[a-z]+/ (\"-\" name)?");
    sorts(&source, &["hello bob", "hi a-b-c"], &["hello", "hi a-", "hey bob"]);
    for bad in ["start: a", "start: \"a", "begin: \"a\"", "start: <|end|>", "start: <[258]>", "start: (\"a\""] {
        assert!(matches!(compile(lark(bad)), Err(Error::Constraint(_))), "{bad}");
    }
}

#[test]
fn control_tokens_are_never_allowed() {
    for source in [regex("(.|\n)*"), lark("start: /(.|\\n)*/"), gbnf("root ::= .*"), GrammarSource::AnyJson] {
        let mut matcher = matcher(source);
        let mask = matcher.mask().unwrap();
        assert!(!mask.allows(USER) && !mask.allows(crate::fake::BOS) && !mask.allows(255) && !mask.allows(1000));
        assert_eq!(matcher.accept(&[USER]), Ok(0));
        assert_eq!(matcher.accept(&[1000]), Ok(0));
        assert_eq!(matcher.accept(&bytes("\"<user>\"")), Ok(8), "as text it is text");
        assert_eq!(matcher.failure(), None);
    }
}

#[test]
fn forced_text_comes_as_the_tokenizer_spells_it() {
    let text = r#"{"a":"x"}"#;
    let mut matcher = matcher(regex(r#"\{"a":"(x|y)"\}"#));
    assert_eq!(matcher.forced(), bytes(r#"{"a":""#));
    let forced = matcher.forced();
    assert_eq!(matcher.accept(&forced), Ok(6));
    assert!(matcher.forced().is_empty(), "there is a choice");
    assert_eq!(matcher.accept(&bytes("x")), Ok(1));
    assert!(!matcher.is_done());
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), bytes("\""));
    assert_eq!(matcher.forced(), bytes("\"}"));
    assert_eq!(matcher.accept(&bytes(&text[8..])), Ok(0), "the quote comes first");
    assert_eq!(matcher.accept(&bytes("\"}")), Ok(2));
    assert!(matcher.is_done() && matcher.forced().is_empty());
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), [END]);
    crate::conformance::constraint::run(&tokenizer());
}

#[test]
fn characters_may_be_split_over_tokens() {
    let mut matcher = matcher(regex("(é|ê|日)x"));
    assert_eq!(matcher.accept(&[0xC3]), Ok(1));
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), [0xA9, 0xAA]);
    assert!(!matcher.is_accepting());
    assert_eq!(matcher.accept(&[0xA8]), Ok(0));
    assert_eq!(matcher.accept(&[0xAA, u32::from(b'x'), END]), Ok(3));
    let mut matcher = self::matcher(regex("日本"));
    assert_eq!(matcher.accept(&[0xE6, 0x97]), Ok(2));
    assert_eq!(matcher.forced(), [0xA5, 0xE6, 0x9C, 0xAC]);
}

#[test]
fn going_back_is_as_if_it_never_was() {
    let mut matcher = matcher(regex("ab(c|d)"));
    assert_eq!(matcher.accept(&bytes("abc")), Ok(3));
    assert_eq!(matcher.accept(&[END]), Ok(1));
    assert!(matches!(matcher.rollback(5), Err(Error::InvalidArgument(_))));
    assert_eq!(matcher.rollback(1), Ok(()));
    assert!(matcher.is_done() && matcher.mask().unwrap().allows(END), "the end may come again");
    assert_eq!(matcher.rollback(1), Ok(()));
    assert_eq!(matcher.accept(&bytes("d")), Ok(1));
    assert_eq!(matcher.accept(&[END]), Ok(1));
    assert_eq!(matcher.rollback(4), Ok(()));
    assert_eq!(matcher.mask().unwrap().tokens().collect::<Vec<_>>(), bytes("a"));
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut matcher = matcher(regex("a(b|c)d"));
    assert_eq!(matcher.accept(&bytes("a")), Ok(1));
    let mut fork = matcher.fork();
    assert_eq!((matcher.accept(&bytes("bd")), fork.accept(&bytes("cd"))), (Ok(2), Ok(2)));
    assert_eq!(fork.rollback(2), Ok(()));
    assert!(matcher.is_done() && !fork.is_done());
}

#[test]
fn matchers_can_be_moved_to_the_engine_thread() {
    fn sent<T: Send + 'static>() {}
    fn shared<T: Send + Sync + 'static>() {}
    sent::<Matcher>();
    shared::<Grammar>();
    shared::<GrammarCompiler>();
}

#[test]
fn a_grammar_is_compiled_once() {
    let compiler = compiler();
    let ask = |n: usize| compiler.compile(regex(&format!("a{{{n}}}")));
    let first = [ask(1), ask(1), ask(1)];
    for future in first {
        block_on(future).unwrap();
    }
    assert_eq!(compiler.compilations(), 1);
    block_on(ask(2)).unwrap();
    block_on(ask(1)).unwrap();
    assert_eq!(compiler.compilations(), 2);
    // Another kind of the same text is another grammar; refusals are kept too.
    for _ in 0..2 {
        assert!(block_on(compiler.compile(lark("a{1}"))).is_err());
    }
    assert_eq!(compiler.compilations(), 3);
}

#[test]
fn the_cache_is_bounded_by_count_and_bytes() {
    let limits = ConstraintLimits { cache_grammars: 3, ..ConstraintLimits::default() };
    let compiler = GrammarCompiler::new(tokenizer(), limits.clone());
    for n in 0..10 {
        block_on(compiler.compile(regex(&format!("a{{{}}}", n + 1)))).unwrap();
    }
    assert!(compiler.kept() <= 4, "{}", compiler.kept());
    block_on(compiler.compile(regex("a{10}"))).unwrap();
    assert_eq!(compiler.compilations(), 10, "the last one is still there");
    block_on(compiler.compile(regex("a{1}"))).unwrap();
    assert_eq!(compiler.compilations(), 11, "the first one is not");

    let compiler = GrammarCompiler::new(tokenizer(), ConstraintLimits { cache_bytes: 1, ..limits });
    block_on(compiler.compile(regex("a"))).unwrap();
    block_on(compiler.compile(regex("b"))).unwrap();
    assert!(compiler.kept() <= 1, "{}", compiler.kept());
}

#[test]
fn many_can_compile_and_match_at_the_same_time() {
    let compiler = compiler();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let compiler = &compiler;
            scope.spawn(move || {
                for n in 0..6 {
                    let text = "b".repeat((n + thread) % 6 + 1);
                    let grammar = block_on(compiler.compile(regex(&text))).unwrap();
                    let mut matcher = Matcher::new(&grammar);
                    assert_eq!(matcher.accept(&bytes(&text)), Ok(text.len()));
                    assert!(matcher.is_done());
                }
            });
        }
    });
    assert_eq!(compiler.compilations(), 6);
}

#[test]
fn too_many_compilations_at_once_are_refused() {
    let limits = ConstraintLimits { compile_threads: 1, queue: 2, ..ConstraintLimits::default() };
    let compiler = GrammarCompiler::new(tokenizer(), limits);
    let futures: Vec<_> = (1..200).map(|n| compiler.compile(regex(&format!("[ab]{{{n}}}")))).collect();
    let results: Vec<_> = futures.into_iter().map(|future| block_on(future).map(drop)).collect();
    assert!(results.contains(&Ok(())) && results.contains(&Err(Error::Busy)));
    assert_eq!(block_on(compiler.compile(regex("later"))).map(drop), Ok(()));
}

#[test]
fn a_thread_compiles_one_grammar_after_the_other_and_ends_when_there_is_none() {
    let limits = ConstraintLimits { compile_threads: 1, ..ConstraintLimits::default() };
    let compiler = GrammarCompiler::new(tokenizer(), limits);
    let wait_for = |looking: usize| {
        let began = Instant::now();
        while compiler.looking() != looking {
            assert!(began.elapsed() < Duration::from_secs(30), "{} threads look for a job", compiler.looking());
            std::thread::yield_now();
        }
    };
    for n in 1..10 {
        block_on(compiler.compile(regex(&format!("a{{{n}}}")))).unwrap();
        wait_for(1);
    }
    wait_for(0);
    block_on(compiler.compile(regex("b"))).unwrap();
}

#[test]
fn whoever_waits_for_a_slow_compilation_is_told_in_time() {
    let limits = ConstraintLimits { compile_time: Duration::ZERO, ..ConstraintLimits::default() };
    let compiler = GrammarCompiler::new(tokenizer(), limits);
    let slow = lark(&format!("start: {} \"b\"", "\"a\" | ".repeat(20_000)));
    let began = Instant::now();
    let error = block_on(compiler.compile(slow)).unwrap_err();
    assert!(error.to_string().contains("within 0 ms"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// The niceness of all threads of this name.
fn niceness_of(name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    // A thread may end meanwhile.
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).ok();
    let named = tasks.filter(|task| read(task.join("comm")).is_some_and(|comm| comm.trim_end() == name));
    let stats = named.filter_map(|task| read(task.join("stat")));
    // The 19th field of proc_pid_stat(5), behind a name in brackets that may hold blanks.
    stats.map(|stat| stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()).collect()
}

#[test]
fn what_keeps_to_time_does_not_step_back_with_who_asks_and_what_compiles_does() {
    let compiler = compiler();
    let own = nala_machine::niceness_behind(0).unwrap();
    let back = nala_machine::niceness_behind(crate::affinity::COMPILING).unwrap();
    let asks = std::thread::spawn(move || {
        nala_machine::step_back(10).unwrap();
        let began = Instant::now();
        for n in 0.. {
            let slow = lark(&format!("start: {} \"b{n}\"", "\"a\" | ".repeat(20_000)));
            let compiling = compiler.compile(slow);
            while compiler.is_compiling() {
                if niceness_of("nala-grammar").contains(&back) {
                    return compiler;
                }
            }
            drop(compiling);
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", niceness_of("nala-grammar"));
        }
        compiler
    });
    // It has its threads until it is dropped.
    let _compiler = asks.join().unwrap();
    for name in ["nala-grammars", "nala-step-watch"] {
        // A look may miss some while others end.
        let niceness: Vec<i32> = (0..20).flat_map(|_| niceness_of(name)).collect();
        assert!(!niceness.is_empty() && niceness.iter().all(|nice| *nice == own), "{name}: {niceness:?}");
    }
}
