//! What the handler does with grammars.

use crate::model::bindings::nala::llm::constraint::{Grammar, Source};
use crate::model::bindings::nala::llm::model::{self, Model};
use crate::model::bindings::nala::llm::session::{Finish, Session};
use crate::model::{open, options, say};

fn regex(model: &Model, text: &str) -> Grammar {
    Grammar::compile(model, &Source::Regex(text.into())).unwrap()
}

fn prompted() -> (Model, Session) {
    let (model, session) = open();
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    (model, session)
}

/// Runs that follow a grammar, also in forks and after going back.
pub(crate) fn grammars() -> String {
    let (model, session) = prompted();
    let grammar = regex(&model, "(yes|no), not today[.!]");
    session.constrain(Some(&grammar)).unwrap();
    drop(grammar);
    let child = session.fork().unwrap();
    let run = session.generate(&options(100)).unwrap();
    let (mut text, mut forced, mut finish) = (String::new(), 0, None);
    while let Some(chunk) = run.next().unwrap() {
        text += &chunk.text;
        forced += chunk.tokens.iter().filter(|token| token.forced).count();
        finish = chunk.finish;
    }
    let same = say(&child, 100) == text;
    session.rewind(3).unwrap();
    let again = say(&session, 100) == text;
    session.rewind(3).unwrap();
    session.constrain(None).unwrap();
    let free = say(&session, 3);
    let warned = Grammar::compile(&model, &Source::JsonSchema(r#"{"type":"object","colour":1}"#.into()));
    let json = Grammar::compile(&model, &Source::AnyJson).unwrap();
    let gbnf = Grammar::compile(&model, &Source::Gbnf("root ::= \"a\" [0-9]+".into())).unwrap();
    let lark = Grammar::compile(&model, &Source::Lark("start: \"a\" /[0-9]+/".into())).unwrap();
    session.constrain(Some(&gbnf)).unwrap();
    let number = say(&session, 3);
    format!(
        "{text:?} {} {} {same} {again} {free:?} warned {} {} {} {number:?}",
        matches!(finish, Some(Finish::ConstraintDone)),
        forced > 5,
        warned.unwrap().warnings().len(),
        json.warnings().len(),
        lark.warnings().len(),
    )
}

/// Grammars that cannot be, and calls at the wrong time.
pub(crate) fn refused() -> String {
    let (model, session) = prompted();
    let long = format!("[{}]", "x".repeat(9_000));
    let sources = [
        Source::JsonSchema("{".into()),
        Source::JsonSchema(r#"{"type":"wizard"}"#.into()),
        Source::JsonSchema("[".repeat(100_000)),
        Source::Regex("(".into()),
        Source::Regex(long),
        Source::Lark("start: nothing".into()),
        Source::Gbnf("root ::= nothing".into()),
        Source::JsonSchema(" ".repeat(300_000)),
    ];
    let told: Vec<_> = sources.iter().map(|source| format!("{:?}", Grammar::compile(&model, source).err())).collect();
    let grammar = regex(&model, "[0-9]{3}");
    let run = session.generate(&options(50)).unwrap();
    let busy = session.constrain(Some(&grammar)).err();
    while run.next().unwrap().is_some() {}
    session.constrain(Some(&grammar)).unwrap();
    // Not what the grammar allows.
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let left = session.generate(&options(5)).unwrap().next().err();
    format!("{}\nbusy {busy:?}\nleft {left:?}", told.join("\n"))
}

/// As many handles and sessions with a grammar as may be.
pub(crate) fn held() -> String {
    let (model, session) = prompted();
    let mut handles = Vec::new();
    let error = loop {
        // Equal grammars count each time.
        match Grammar::compile(&model, &Source::AnyJson) {
            Ok(grammar) => handles.push(grammar),
            Err(error) => break error,
        }
    };
    let count = handles.len();
    // The session's own share.
    drop(handles.pop());
    let last = handles.pop().unwrap();
    session.constrain(Some(&last)).unwrap();
    let full = session.fork().err();
    handles.pop();
    let child = session.fork().is_ok();
    format!("{} {error:?} {full:?} {child}", count > 2)
}

/// A grammar that another model's vocabulary made.
pub(crate) fn of_another_model() -> String {
    let (_, session) = prompted();
    let other = Model::open(&model::available()[1]).unwrap();
    format!("{:?}", session.constrain(Some(&regex(&other, "[0-9]"))))
}

/// A grammar that takes as long as grammars can.
pub(crate) fn compile() -> String {
    let model = open().0;
    let pattern = format!("({})", vec!["(a|b|c|d)*x{1,40}"; 400].join("|"));
    let source = Source::Regex(pattern);
    format!("{:?}", Grammar::compile(&model, &source).map(drop))
}
