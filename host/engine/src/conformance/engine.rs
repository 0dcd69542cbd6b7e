//! Checks of the engine over the backend.

use super::begun;
use crate::backend::{LoadedModel, Token};
use crate::options::{Finish, GenerateOptions};
use crate::{Engine, EngineConfig, Generation, Session, SessionOptions};

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

/// Below this distance of the log-probabilities of the two most likely tokens
/// the model is undecided: how many rows a batch has may move logits by a little
/// (kernels sum in another order), and the two change places.
const UNDECIDED: f32 = 1.0;

/// What came of a run.
pub(super) struct Said {
    pub(super) tokens: Vec<Token>,
    /// How far each of them was ahead of the next one.
    ahead: Vec<f32>,
    pub(super) text: String,
    pub(super) finish: Finish,
}

impl Said {
    /// Compares the tokens of a run, or its first ones, with what `tokens` say at
    /// the same places, and returns how many are the same. The first difference
    /// ends it, since the texts are different ones from there on; it is a fault
    /// where the model was decided.
    pub(super) fn begins(&self, tokens: &[Token], what: &str) -> usize {
        for (place, (mine, other)) in self.tokens.iter().zip(tokens).enumerate() {
            let ahead = self.ahead[place];
            if mine != other && ahead < UNDECIDED {
                return place;
            }
            assert_eq!(other, mine, "{what}: token {place} is another one, though decided by {ahead}");
        }
        self.tokens.len().min(tokens.len())
    }

    /// The same for two whole runs.
    pub(super) fn is_said_by(&self, other: &Self, what: &str) -> usize {
        assert_eq!((other.tokens.len(), other.finish), (self.tokens.len(), self.finish), "{what}");
        let same = self.begins(&other.tokens, what);
        if same == self.tokens.len() {
            assert_eq!(other.text, self.text, "{what}");
        }
        same
    }
}

pub(super) async fn generate(session: &mut Session, options: GenerateOptions) -> Said {
    said(session.generate(GenerateOptions { top_logprobs: Some(2), ..options }).unwrap(), None).await
}

/// Reads a run to its end, cancelling it after so many tokens.
pub(super) async fn said(mut run: Generation, cancel_after: Option<usize>) -> Said {
    let (mut tokens, mut ahead, mut text) = (Vec::new(), Vec::new(), String::new());
    while let Some(chunk) = run.next().await.unwrap() {
        for sampled in &chunk.tokens {
            tokens.push(sampled.token);
            ahead.push(sampled.alternatives[0].logprob - sampled.alternatives[1].logprob);
        }
        text += &chunk.text;
        if let Some(finish) = chunk.finish {
            assert!(run.next().await.unwrap().is_none(), "nothing after the finish");
            return Said { tokens, ahead, text, finish };
        }
        if cancel_after.is_some_and(|after| tokens.len() >= after) {
            run.cancel();
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
    let with_logprobs = || GenerateOptions { top_logprobs: Some(2), ..options() };
    let runs: Vec<_> = sessions.iter_mut().map(|s| s.generate(with_logprobs()).unwrap()).collect();
    let mut same = 0;
    for (run, want) in runs.into_iter().zip(&alone) {
        assert_eq!((want.tokens.len(), want.finish), (8, Finish::Length));
        same += want.is_said_by(&said(run, None).await, "a run among others");
    }
    assert!(same >= 8, "of four runs of eight tokens only {same} could be compared");
    assert!(engine.metrics().batch_sequences_max.get() >= 2, "runs were not batched together");
}

async fn the_session_goes_on_where_the_run_ended(engine: &Engine) {
    let options = |n| GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(n) };
    let whole = generate(&mut session(engine, "Once upon a time").await, options(6)).await;
    let mut parts = session(engine, "Once upon a time").await;
    let first = generate(&mut parts, options(2)).await;
    let second = generate(&mut parts, options(4)).await;
    whole.begins(&[first.tokens, second.tokens].concat(), "a run in two parts");
}
