//! Checks of sessions as programs use them: whatever is done to a session, it
//! says what one that was prefilled afresh with its tokens says.

use std::time::Duration;

use super::begun;
use super::engine::{generate, said, session};
use crate::backend::LoadedModel;
use crate::options::GenerateOptions;
use crate::{Engine, EngineConfig, SessionOptions, Token};

const PROMPT: &str = "One, two, three, four, five, six, seven, eight, nine, ten. One, two, three, four,";

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shares = (load().backend)().unwrap().abilities().copy;
    runtime.block_on(async {
        let engine = Engine::start("conformance", load(), EngineConfig::default()).unwrap();
        a_beginning_is_found_in_its_scope(&engine, shares).await;
        whatever_is_done_the_text_is_the_same(&engine).await;
        if shares {
            branches_share_every_batch(&engine).await;
        }
        engine.shutdown().await;
    });
}

fn options(n: u32) -> GenerateOptions {
    GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(n) }
}

fn tokens(engine: &Engine, text: &str) -> Vec<Token> {
    begun(&**engine.tokenizer(), text)
}

async fn a_beginning_is_found_in_its_scope(engine: &Engine, shares: bool) {
    let prompt = tokens(engine, PROMPT);
    let n = u32::try_from(prompt.len()).unwrap();
    let scoped = |scope: &str| SessionOptions { scope: scope.into(), ..SessionOptions::default() };
    let mut first = engine.open_session(scoped("one")).unwrap();
    assert_eq!(first.prefill(prompt.clone()).await.unwrap().cached, 0);
    let want = generate(&mut first, options(8)).await;
    let mut other = engine.open_session(scoped("two")).unwrap();
    assert_eq!(other.prefill(prompt.clone()).await.unwrap().cached, 0, "another scope");
    let mut again = engine.open_session(scoped("one")).unwrap();
    let info = again.prefill(prompt.clone()).await.unwrap();
    assert_eq!(info.cached + info.computed, n);
    assert_eq!(info.cached >= 16, shares, "beginnings are shared as said: {info:?}");
    want.is_said_by(&generate(&mut again, options(8)).await, "from the prefix cache");
}

async fn whatever_is_done_the_text_is_the_same(engine: &Engine) {
    let want = generate(&mut session(engine, PROMPT).await, options(12)).await;
    let n = u32::try_from(tokens(engine, PROMPT).len()).unwrap();

    let mut whole = session(engine, PROMPT).await;
    want.begins(&generate(&mut whole, options(5)).await.tokens, "the first tokens");
    assert_eq!(whole.rewind(n).await.unwrap(), n);
    assert_eq!(whole.len(), n);
    let mut same = want.is_said_by(&generate(&mut whole, options(12)).await, "rewound");

    let mut parent = session(engine, PROMPT).await;
    let mut child = parent.fork().await.unwrap();
    drop(parent);
    assert_eq!(child.len(), n);
    same += want.is_said_by(&generate(&mut child, options(12)).await, "a fork whose parent is gone");

    let mut parked = session(engine, PROMPT).await;
    let first = generate(&mut parked, options(5)).await.tokens;
    parked.park().await.unwrap();
    let rest = generate(&mut parked, options(7)).await.tokens;
    same += want.begins(&[first, rest].concat(), "parked for a while");

    let mut saved = session(engine, PROMPT).await;
    saved.save("a name").await.unwrap();
    drop(saved);
    let mut restored = engine.restore_session(SessionOptions::default(), "a name").await.unwrap().unwrap();
    same += want.is_said_by(&generate(&mut restored, options(12)).await, "restored");
    assert!(same >= 24, "of four runs of twelve tokens only {same} could be compared");
    assert!(engine.restore_session(SessionOptions::default(), "another").await.unwrap().is_none());
    let elsewhere = SessionOptions { scope: "elsewhere".into(), ..SessionOptions::default() };
    assert!(engine.restore_session(elsewhere, "a name").await.unwrap().is_none(), "another scope");
}

async fn branches_share_every_batch(engine: &Engine) {
    let mut trunk = session(engine, PROMPT).await;
    let want = generate(&mut trunk.fork().await.unwrap(), options(10)).await;
    let mut branches = [trunk.fork().await.unwrap(), trunk.fork().await.unwrap(), trunk.fork().await.unwrap()];
    let before = engine.metrics().decode_steps.get();
    let options = GenerateOptions { flush_after: Duration::from_secs(9), top_logprobs: Some(2), ..options(10) };
    let runs: Vec<_> = branches.iter_mut().map(|branch| branch.generate(options.clone()).unwrap()).collect();
    for run in runs {
        want.is_said_by(&said(run, None).await, "a branch among others");
    }
    // Nine batches each, had every branch its own: 27.
    let steps = engine.metrics().decode_steps.get() - before;
    assert!(steps <= 14, "{steps} batches for three branches of ten tokens");
}
