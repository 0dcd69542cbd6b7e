//! Checks of the engine over the backend.

use super::begun;
use crate::backend::LoadedModel;
use crate::options::{Finish, GenerateOptions};
use crate::{Engine, EngineConfig, Session, SessionOptions};

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::start("conformance", load(), EngineConfig::default()).unwrap();
        together_as_alone(&engine).await;
        the_session_goes_on_where_the_run_ended(&engine).await;
        engine.shutdown().await;
        assert!(!engine.is_alive());
    });
}

pub(super) async fn session(engine: &Engine, text: &str) -> Session {
    let mut session = engine.open_session(SessionOptions::default()).unwrap();
    let tokens = begun(&**engine.tokenizer(), text);
    let n = u32::try_from(tokens.len()).unwrap();
    let info = session.prefill(tokens).await.unwrap();
    assert_eq!(info.cached + info.computed, n);
    assert_eq!(session.len(), n);
    session
}

pub(super) async fn generate(session: &mut Session, options: GenerateOptions) -> (Vec<u32>, String, Finish) {
    let mut run = session.generate(options).unwrap();
    let (mut tokens, mut text) = (Vec::new(), String::new());
    while let Some(chunk) = run.next().await.unwrap() {
        tokens.extend(chunk.tokens.iter().map(|t| t.token));
        text += &chunk.text;
        if let Some(finish) = chunk.finish {
            assert!(run.next().await.unwrap().is_none(), "nothing after the finish");
            return (tokens, text, finish);
        }
    }
    panic!("the run ended without a finish");
}

async fn together_as_alone(engine: &Engine) {
    let prompts = ["One, two, three,", "Once upon a time", "abc", "The sky is"];
    let options = || GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(8) };
    let mut alone = Vec::new();
    for prompt in prompts {
        alone.push(generate(&mut session(engine, prompt).await, options()).await);
    }
    let mut sessions = Vec::new();
    for prompt in prompts {
        sessions.push(session(engine, prompt).await);
    }
    let mut runs: Vec<_> = sessions.iter_mut().map(|s| s.generate(options()).unwrap()).collect();
    for (run, want) in runs.iter_mut().zip(&alone) {
        let mut text = String::new();
        while let Some(chunk) = run.next().await.unwrap() {
            text += &chunk.text;
        }
        assert_eq!(text, want.1, "a run among others");
        assert_eq!((want.0.len(), want.2), (8, Finish::Length));
    }
    assert!(engine.metrics().batch_sequences_max.get() >= 2, "runs were not batched together");
}

async fn the_session_goes_on_where_the_run_ended(engine: &Engine) {
    let options = |n| GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(n) };
    let whole = generate(&mut session(engine, "Once upon a time").await, options(6)).await;
    let mut parts = session(engine, "Once upon a time").await;
    let first = generate(&mut parts, options(2)).await;
    let second = generate(&mut parts, options(4)).await;
    assert_eq!([first.0, second.0].concat(), whole.0, "a run in two parts");
}
