use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use proptest::prelude::*;

use super::*;
use crate::constraint::vocabulary::Vocabulary;
use crate::constraint::{GrammarSource, Matcher, OneGrammar};
use crate::fake::Fake;

fn lark(text: &str) -> Result<String, String> {
    to_lark(text, &ConstraintLimits::default()).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    lark(text).unwrap_err()
}

/// llama.cpp's grammar of JSON.
const JSON: &str = r#"root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"#;

fn model() -> &'static OneGrammar {
    static SHARED: std::sync::OnceLock<OneGrammar> = std::sync::OnceLock::new();
    let time = std::time::Duration::from_millis(20);
    let limits = ConstraintLimits { step_items: 3000, row_items: 200, step_time: time, ..ConstraintLimits::default() };
    SHARED.get_or_init(|| OneGrammar::new(Fake::default().load().tokenizer, limits).unwrap())
}

fn vocabulary() -> Arc<Vocabulary> {
    static SHARED: std::sync::OnceLock<Arc<Vocabulary>> = std::sync::OnceLock::new();
    let new = || Vocabulary::new(Fake::default().load().tokenizer, &ConstraintLimits::default()).unwrap();
    SHARED.get_or_init(|| Arc::new(new())).clone()
}

fn matcher(lark: String) -> llguidance::Matcher {
    llguidance::Matcher::new(vocabulary().factory.create_parser(TopLevelGrammar::from_lark(lark)))
}

/// With every character a terminal of its own.
fn plain(text: &str) -> String {
    lark::write(&parser::parse(text, 64).unwrap())
}

fn takes(text: &str, input: &str) -> bool {
    let mut matcher = matcher(lark(text).unwrap());
    assert_eq!(matcher.get_error(), None, "{text}");
    let bytes: Vec<u32> = input.bytes().map(u32::from).collect();
    matcher.try_consume_tokens(&bytes).unwrap() == bytes.len() && matcher.is_accepting().unwrap()
}

fn sorts(text: &str, good: &[&str], bad: &[&str]) {
    good.iter().for_each(|input| assert!(takes(text, input), "{text} must take {input:?}"));
    bad.iter().for_each(|input| assert!(!takes(text, input), "{text} must not take {input:?}"));
}

#[test]
fn every_part_of_the_format_is_understood() {
    sorts(JSON, &["{}", r#"{"a": [1, -2.5e+3, "\u00e9\\é"] , "b":true}"#], &["[]", "{\"a\":01}", "{ \"a\": tru}"]);
    sorts("root ::= \"a\" | \"b\" # or\n", &["a", "b"], &["", "ab"]);
    sorts(
        "root ::= a{2,3} b{2} c{1,}\na::=\"a\"\nb ::= \"b\"\nc ::= \"cd\"",
        &["aabbcd", "aaabbcdcd"],
        &["abbcd", "aabbc"],
    );
    sorts("root ::= \"ab\"* \"c\"{ 0 , 1 } [x]{0,0}", &["", "ababc"], &["aabb", "cc", "x"]);
    sorts(r#"root ::= "\x41\u00e9\U0001F642\n\t\r\\\"" "#, &["Aé🙂\n\t\r\\\""], &["A"]);
    sorts(r"root ::= [^a-c\n]+ [\]\-\\^-] .", &["xyz]!", "d-\n", "é\\é", "--日"], &["a]!", "x\n!", "x]"]);
    sorts("root ::= (\n \"a\" |\n (\"b\"\n \"c\")? )* \"!\"\r\n", &["!", "abca!"], &["b!"]);
    sorts("root ::= \"(\" root \")\" | root \"+\" root | [0-9]", &["1", "(1+2)+3"], &["(1", "1+"]);
    sorts("root ::= a** \"b\"+?\na ::= \"a\"{2}{2}", &["", "aaaa", "bbb"], &["aa"]);
    sorts("root-1_x ::= root\nroot ::= | \"\"", &[""], &["a"]);
    sorts("root ::= [^\\u0041]", &["é", "a", "🙂"], &["A", ""]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, place, says) in [
        ("rot ::= \"a\"", "", "\"root\" is missing"),
        ("", "", "\"root\" is missing"),
        ("root ::= a\n# x\nroot ::= \"b\"", "line 3, column 1", "defined twice"),
        ("root ::= \"é\" b", "line 1, column 14", "\"b\" is used"),
        ("root = \"a\"", "line 1, column 6", "`:` of `::=`"),
        ("root ::= \"a\n", "line 1, column 10", "closing quote"),
        ("root ::= [a", "line 1, column 10", "closing bracket"),
        ("root ::= []", "line 1, column 10", "empty"),
        ("root ::= [^\\x00-\\U0010FFFF]", "line 1, column 10", "no character"),
        ("root ::= [z-a]", "line 1, column 11", "backwards"),
        ("root ::= (\"a\"", "line 1, column 14", "ends where `)`"),
        ("root ::= \"a\")", "line 1, column 13", "end of the rule"),
        ("root ::= *", "line 1, column 11", "nothing before"),
        ("root ::= \"a\"{2,1}", "line 1, column 13", "below"),
        ("root ::= \"a\"{x}", "line 1, column 14", "a number"),
        ("root ::= \"a\"{1", "line 1, column 15", "`}`"),
        ("root ::= \"a\"{99999999999999999999}", "line 1, column 14", "at most 1000000"),
        ("root ::= \"\\q\"", "line 1, column 11", "no escape"),
        ("root ::= \"\\x4\"", "line 1, column 11", "2 hexadecimal"),
        ("root ::= \"\\uD800\"", "line 1, column 11", "U+D800"),
        ("root ::= \"\\UFFFFFFFF\"", "line 1, column 11", "no character"),
        ("root ::= <[1]>", "line 1, column 10", "tokens"),
        ("root ::= \"a\"\n  | \"b\"", "line 2, column 3", "the name of a rule"),
    ] {
        let error = refused(text);
        assert!(error.contains(place) && error.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn runs_without_a_rival_are_one_terminal() {
    let joined = |text: &str| lark(text).unwrap();
    assert!(joined(JSON).contains("]+/"), "the inside of strings: {}", joined(JSON));
    assert!(joined(JSON).contains("{1,20}/"), "the indentation: {}", joined(JSON));
    assert!(joined("root ::= [a-z]* \"!\"").contains("[\\x{61}-\\x{7a}]+/?"));
    for kept in [
        "root ::= [a-z]* \"x\"",
        "root ::= [a-z]* | \"ab\" \"1\"",
        "root ::= a a\na ::= [b]+",
        "root ::= a+ a\na ::= [b] | \"c\"",
        "root ::= ([a]{2,3})*",
        // The same first byte.
        "root ::= [é]* \"ê\"",
    ] {
        assert_eq!(joined(kept), plain(kept));
    }
}

/// Pieces of grammars over few characters, so that they get in each other's way.
fn part() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "\"a\"", "\"ab\"", "[a]", "[ab]", "[^ab]", "[bc]", "[aé]", "\"ê\"", "x", "y", "\"\"", ".", "\"c\"", "[b-d]",
    ]);
    let repeated = prop::sample::select(vec!["", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "{0,3}", "{0}"]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, move |inner| {
        let several = prop::collection::vec(inner, 1..4);
        (several, prop::sample::select(vec![" ", " | "]), repeated.clone())
            .prop_map(|(parts, between, count)| format!("({}){count}", parts.join(between)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn joined_runs_change_nothing(
        root in part(), x in part(), y in part(), choices in prop::collection::vec(any::<u16>(), 12),
    ) {
        let text = format!("root ::= {root} [a]* {x} [bc]{{0,2}}\nx ::= {x}\ny ::= {y} | \"c\"");
        // A text that is forced without end spins until the watchdog ends it.
        let compile = |source| model().compile(&source).map(|grammar| Matcher::new(&grammar));
        let single = compile(GrammarSource::Lark(plain(&text)));
        let joined = compile(GrammarSource::Gbnf(text.clone()));
        let (Ok(mut joined), Ok(mut single)) = (joined, single) else { return Ok(()) };
        for n in choices {
            let (Ok(ours), Ok(theirs)) = (joined.mask(), single.mask()) else { break };
            prop_assert_eq!(ours, theirs, "{}\n{}", text, lark(&text).unwrap());
            let Some(token) = ours.tokens().nth(usize::from(n) % ours.allowed().max(1)) else { break };
            let (Ok(ours), Ok(theirs)) = (joined.accept(&[token]), single.accept(&[token])) else { break };
            prop_assert_eq!((ours, theirs), (1, 1), "{}", text);
        }
    }
}
