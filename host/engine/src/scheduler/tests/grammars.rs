//! Runs and steps that follow a grammar.

use super::sessions::looping;
use super::*;
use crate::Token;
use crate::command::StepCommand;
use crate::constraint::{ConstraintLimits, Grammar, GrammarCompiler, GrammarSource};
use crate::options::{Reading, Readout, Sampling};

fn compile(source: GrammarSource) -> Grammar {
    let compiler = GrammarCompiler::new(Fake::default().load().tokenizer, ConstraintLimits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(compiler.compile(source)).unwrap()
}

fn regex(text: &str) -> Grammar {
    compile(GrammarSource::Regex(text.into()))
}

impl Bench {
    fn constrain(&mut self, id: SessionId, grammar: &Grammar) {
        self.scheduler.handle(Command::Constrain { id, grammar: Some(grammar.clone()) });
    }

    /// Runs to the end.
    fn run(&mut self, id: SessionId, options: GenerateOptions) -> Chunk {
        let reader = self.generate(id, options);
        self.settle();
        drain(&reader)
    }
}

#[test]
fn what_the_grammar_forces_is_not_sampled_and_costs_one_batch() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("(yes|no), certainly not today[.!]"));
    let before = bench.fake.fills().len();
    let all = bench.run(id, GenerateOptions::greedy(100));
    assert!(
        ["yes, certainly not today", "no, certainly not today"].contains(&&all.text[..all.text.len() - 1]),
        "{all:?}"
    );
    assert_eq!(all.finish, Some(Finish::ConstraintDone));
    let sampled = all.tokens.iter().filter(|token| !token.forced).count();
    assert_eq!(sampled, 2, "two choices: {all:?}");
    assert_eq!(bench.fake.fills().len() - before, 1, "the first choice needs no batch, the second one");
    assert_eq!(bench.metrics.forced_tokens.get(), all.tokens.len() as u64 - 2);
    let held: String = bench.scheduler.sequences[&id].tokens[4..].iter().map(|&t| t as u8 as char).collect();
    assert_eq!(held, all.text);
    // There is nothing more to be said.
    let all = bench.run(id, GenerateOptions::greedy(100));
    assert_eq!((all.text.as_str(), all.finish), ("", Some(Finish::ConstraintDone)));
}

#[test]
fn json_comes_out_as_the_schema_says() {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string","maxLength":8},
        "age":{"type":"integer","minimum":0,"maximum":99}},"required":["name","age"],"additionalProperties":false}"#;
    let grammar = compile(GrammarSource::JsonSchema(schema.into()));
    let mut bench = bench();
    let ids: Vec<_> = (0..4).map(|_| bench.ready(4)).collect();
    let readers: Vec<_> = (0..)
        .zip(&ids)
        .map(|(seed, &id)| {
            bench.constrain(id, &grammar);
            let sampling = Sampling { temperature: 4.0, seed: Some(seed), ..Sampling::GREEDY };
            bench.generate(id, GenerateOptions { sampling, ..GenerateOptions::greedy(200) })
        })
        .collect();
    bench.settle();
    for reader in readers {
        let all = drain(&reader);
        let value: serde_json::Value = serde_json::from_str(&all.text).unwrap_or_else(|e| panic!("{e}: {all:?}"));
        assert!(value["name"].is_string() && value["age"].is_u64(), "{value}");
    }
}

#[test]
fn log_probabilities_are_there_for_every_token() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("abc(d|e)"));
    let all = bench.run(id, GenerateOptions { top_logprobs: Some(1), ..GenerateOptions::greedy(100) });
    assert_eq!(all.text, "abcd");
    assert!(all.tokens.iter().all(|token| token.logprob.is_some()), "{all:?}");
    let forced: Vec<bool> = all.tokens.iter().map(|token| token.forced).collect();
    assert_eq!(forced, [true, true, true, false]);
}

#[test]
fn runs_end_in_the_middle_of_what_is_forced_and_go_on_there() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("abcdefgh(i|j)k"));
    let mut text = String::new();
    for n in [3, 1, 5] {
        let all = bench.run(id, GenerateOptions::greedy(n));
        assert_eq!(all.finish, Some(Finish::Length));
        text += &all.text;
    }
    assert_eq!(text, "abcdefghi");
    let all = bench.run(id, GenerateOptions::greedy(10));
    assert_eq!((all.text.as_str(), all.finish), ("k", Some(Finish::ConstraintDone)));
}

#[test]
fn forks_and_rewinds_take_the_grammar_along() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("[a-z]{2}(x|y)[0-9]"));
    assert_eq!(bench.run(id, GenerateOptions::greedy(2)).text, "ab");
    let child = bench.fork(id).unwrap();
    let own = bench.run(id, GenerateOptions::greedy(9));
    assert_eq!((own.text.len(), own.finish), (2, Some(Finish::ConstraintDone)));
    assert_eq!(bench.run(child, GenerateOptions::greedy(9)).text, own.text, "the fork is where the parent was");
    bench.rewind(id, 6).unwrap();
    assert_eq!(bench.run(id, GenerateOptions::greedy(9)).text, own.text);
    bench.rewind(id, 2).unwrap();
    let again = bench.run(id, GenerateOptions::greedy(9));
    assert_eq!(
        (again.text.len(), again.finish),
        (4, Some(Finish::ConstraintDone)),
        "its text begins where the session ends"
    );
    // Without the grammar everything may come.
    bench.scheduler.handle(Command::Constrain { id, grammar: None });
    assert_eq!(bench.run(id, GenerateOptions::greedy(3)).text.len(), 3);
}

#[test]
fn tokens_that_are_given_must_be_allowed() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("(ab|cd)*ef"));
    bench.feed(id, vec![u32::from(b'c')]);
    let all = bench.run(id, GenerateOptions::greedy(1));
    assert_eq!(all.text, "d");
    bench.feed(id, vec![u32::from(b'x')]);
    let reader = bench.generate(id, GenerateOptions::greedy(5));
    bench.settle();
    assert!(matches!(reader.try_take().item, Some(Err(Error::Constraint(text))) if text.contains("not allowed")));
    // The session is still good for something else.
    bench.scheduler.handle(Command::Constrain { id, grammar: None });
    assert_eq!(bench.run(id, GenerateOptions::greedy(3)).tokens.len(), 3);
    assert!(matches!(bench.evict(id, 4, 1), Ok(())));
    bench.constrain(id, &regex("[a-z]*"));
    bench.run(id, GenerateOptions::greedy(3));
    assert!(matches!(bench.evict(id, 10, 1), Err(Error::Unsupported(_))));
    bench.evict(id, 0, 1).unwrap();
    assert_eq!(bench.run(id, GenerateOptions::greedy(3)).tokens.len(), 3);
}

#[test]
fn a_bias_that_forbids_what_the_grammar_asks_for_is_an_error() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("a|b"));
    let bias = [b'a', b'b'].map(|byte| (u32::from(byte), f32::NEG_INFINITY)).to_vec();
    let reader = bench.generate(id, GenerateOptions { bias, ..GenerateOptions::greedy(5) });
    bench.settle();
    assert!(matches!(reader.try_take().item, Some(Err(Error::Constraint(text))) if text.contains("bias")));
}

#[test]
fn steps_choose_within_the_grammar() {
    let mut bench = bench();
    let ids: Vec<_> = (0..3).map(|_| bench.ready(4)).collect();
    for &id in &ids {
        bench.constrain(id, &regex("[xyz]{3}"));
    }
    let mut texts = vec![Vec::<Token>::new(); 3];
    let mut next: Vec<Vec<Token>> = vec![Vec::new(); 3];
    for _ in 0..3 {
        let (commands, mut answers): (Vec<_>, Vec<_>) = ids
            .iter()
            .zip(&next)
            .map(|(&id, input)| {
                let (reply, answer) = oneshot::channel();
                let readouts = vec![Readout::Sample(Box::new(Sampling::GREEDY)), Readout::Entropy];
                (StepCommand { id, input: input.clone(), readouts, reply }, answer)
            })
            .unzip();
        bench.scheduler.handle(Command::Submit(commands));
        bench.settle();
        for (n, answer) in answers.iter_mut().enumerate() {
            let readings = answer.try_recv().unwrap().unwrap();
            let [Reading::Token(sampled), Reading::Entropy(_)] = &readings[..] else { panic!("{readings:?}") };
            texts[n].push(sampled.token);
            next[n] = vec![sampled.token];
        }
    }
    for text in texts {
        assert!(text.iter().all(|&t| (u32::from(b'x')..=u32::from(b'z')).contains(&t)), "{text:?}");
    }
    // What the grammar does not allow is refused, and the session is as before.
    let (reply, mut answer) = oneshot::channel();
    let readouts = vec![Readout::Sample(Box::new(Sampling::GREEDY))];
    bench.scheduler.handle(Command::Submit(vec![StepCommand { id: ids[0], input: vec![33], readouts, reply }]));
    bench.settle();
    assert!(matches!(answer.try_recv().unwrap(), Err(Error::Constraint(_))));
    assert_eq!(bench.scheduler.sequences[&ids[0]].tokens.len(), 6);
}

#[test]
fn added_tokens_count_as_said() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("[a-m]{3}:[n-z]{3}!"));
    let reader = bench.generate(id, GenerateOptions::greedy(20));
    let run = bench.next;
    let mut text = String::new();
    bench.until(|_| {
        text += &drain(&reader).text;
        !text.is_empty()
    });
    let (reply, mut done) = oneshot::channel();
    let rest = "bc:no"[text.len() - 1..].bytes().map(Token::from).collect();
    bench.scheduler.handle(Command::Inject { id, run, tokens: rest, reply });
    assert_eq!(done.try_recv().unwrap(), Ok(()));
    bench.settle();
    let all = drain(&reader);
    assert_eq!(all.finish, Some(Finish::ConstraintDone), "{all:?}");
    let held: String = bench.scheduler.sequences[&id].tokens[4..].iter().map(|&t| t as u8 as char).collect();
    assert!(held.starts_with("abc:no") && held.len() == 8, "{held}");
}

#[test]
fn nothing_added_changes_nothing() {
    let mut bench = bench();
    let id = bench.ready(4);
    bench.constrain(id, &regex("[a-z]{4}"));
    let reader = bench.generate(id, GenerateOptions::greedy(20));
    let (reply, mut done) = oneshot::channel();
    bench.scheduler.handle(Command::Inject { id, run: bench.next, tokens: Vec::new(), reply });
    assert_eq!(done.try_recv().unwrap(), Ok(()));
    bench.settle();
    assert_eq!(drain(&reader).finish, Some(Finish::ConstraintDone));
}

#[test]
fn runs_that_follow_grammars_give_way_as_others_do_when_cells_run_short() {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 100;
    let mut bench = Bench::new(fake, EngineConfig::default());
    let ids = [bench.ready(40), bench.ready(40)];
    let grammar = regex("[a-z]{200}");
    let readers = ids.map(|id| {
        bench.constrain(id, &grammar);
        bench.generate(id, GenerateOptions::greedy(50))
    });
    let mut ended = [false; 2];
    bench.until(|_| {
        for (ended, reader) in ended.iter_mut().zip(&readers) {
            *ended |= drain(reader).finish == Some(Finish::Length);
        }
        ended.iter().any(|&ended| ended)
    });
    assert!(bench.metrics.parked.get() >= 1);
    // A prompt of a session that has a grammar gets the cells of an idle one.
    let id = bench.open();
    bench.constrain(id, &grammar);
    let mut reply = bench.prefill(id, 30);
    let begin = bench.clock.now_seconds();
    bench.until(|_| reply.try_recv().is_ok());
    assert_eq!(bench.clock.now_seconds(), begin, "it did not have to wait");
}

#[test]
fn runs_begun_and_dropped_over_and_over_leave_the_others_their_grammars() {
    let mut bench = bench();
    let slow =
        compile(GrammarSource::Lark("start: a\na: a a a | a a | /[a-z]/ | /[a-z][a-z]/ | /[a-z]+/ | /[a-y]+/".into()));
    let hostile: Vec<SessionId> = (0..8).map(|_| bench.open_for(tenant("hostile"), Priority::Normal)).collect();
    for &id in &hostile {
        bench.feed(id, vec![u32::from(b'a'); 4]);
        bench.constrain(id, &slow);
        for _ in 0..50 {
            drop(bench.generate(id, GenerateOptions::greedy(200)));
            bench.scheduler.handle(Command::Cancel { id, run: bench.next });
        }
        let _ = bench.generate(id, GenerateOptions::greedy(200));
    }
    let id = bench.open_for(tenant("other"), Priority::Normal);
    bench.feed(id, vec![u32::from(b'a'); 4]);
    bench.constrain(id, &regex("[a-z]{20}"));
    let reader = bench.generate(id, GenerateOptions::greedy(20));
    let begin = std::time::Instant::now();
    let mut said = 0;
    bench.until(|_| {
        said += drain(&reader).tokens.len();
        said == 20
    });
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

fn tenant(name: &str) -> Tenant {
    Tenant { name: name.into(), ..Tenant::default() }
}

/// A grammar that takes the whole of its time at each token.
#[test]
fn a_slow_grammar_keeps_nobody_waiting() {
    let fake = Fake { script: looping(), ..Fake::default() };
    let mut bench = Bench::new(fake, EngineConfig::default());
    let slow =
        compile(GrammarSource::Lark("start: a\na: a a a | a a | /[a-z]/ | /[a-z][a-z]/ | /[a-z]+/ | /[a-y]+/".into()));
    let (hostile, other) = (bench.ready(4), bench.ready(4));
    bench.constrain(hostile, &slow);
    let bad = bench.generate(hostile, GenerateOptions::greedy(200));
    let good = bench.generate(other, GenerateOptions::greedy(200));
    let begin = std::time::Instant::now();
    let mut tokens = 0;
    bench.until(|_| {
        tokens += drain(&good).tokens.len();
        tokens == 200
    });
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}: a millisecond of patience a step", begin.elapsed());
    // The other one ends in an error or at its length, but it ends.
    let mut ended = false;
    for _ in 0..20_000 {
        bench.scheduler.step();
        ended |= match bad.try_take().item {
            Some(Ok(Some(chunk))) => chunk.finish.is_some(),
            Some(Err(error)) => matches!(error, Error::Constraint(_)),
            Some(Ok(None)) | None => false,
        };
        if ended {
            break;
        }
    }
    assert!(ended);
}
