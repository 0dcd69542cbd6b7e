//! Random programs on several sessions at once: each session says what it says
//! when it does the same alone.
//!
//! A session whose text is another one from an undecided token on (see [`Said`])
//! is compared no further.

use std::time::Duration;

use super::begun;
use super::engine::{self, Said};
use crate::backend::{LoadedModel, Token};
use crate::options::{Finish, GenerateOptions};
use crate::{Engine, EngineConfig, Error, Session, SessionOptions};

/// Programs that are run, with sessions each, and what each session does.
const PROGRAMS: u64 = 3;
const SESSIONS: usize = 4;
const ACTS: usize = 8;
/// The most tokens that a session comes to hold.
const MOST: u32 = 96;

const TEXT: &str = "One, two, three, four, five, six, seven, eight, nine, ten. Once upon a time there was a fox. \
    The sky is blue and the grass is green. Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. ";

/// What was done to a session, with all that is needed to do it again.
#[derive(Clone)]
enum Act {
    Prefill(Vec<Token>),
    /// Exactly so many tokens came of it.
    Generate(u32),
    Rewind(u32),
    Evict(u32, u32),
    Park,
}

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut verdict = Verdict::default();
        for seed in 0..PROGRAMS {
            let engine = Engine::start("conformance", load(), EngineConfig::default()).unwrap();
            let actors = acted_together(&engine, seed).await;
            engine.shutdown().await;
            let engine = Engine::start("conformance", load(), EngineConfig::default()).unwrap();
            for (number, actor) in actors.into_iter().enumerate() {
                verdict.judge(&engine, &actor, &format!("program {seed}, session {number}")).await;
            }
            engine.shutdown().await;
        }
        let Verdict { compared, undecided } = verdict;
        assert!(compared >= 100, "{compared} tokens were compared, {undecided} sessions left off undecided");
    });
}

/// Numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(n)).unwrap()
    }
}

/// A session, what was done to it and what it said.
struct Actor {
    session: Option<Session>,
    dice: Dice,
    acts: Vec<Act>,
    said: Vec<Token>,
}

/// Every session takes a turn at its own pace, all at once; the first of them is
/// forked on the way.
async fn acted_together(engine: &Engine, seed: u64) -> Vec<Actor> {
    let mut actors: Vec<Actor> = (0..SESSIONS).map(|number| Actor::new(engine, seed * 97 + number as u64)).collect();
    rounds(engine, &mut actors, ACTS / 2).await;
    let fork = actors[0].fork(seed).await;
    actors.push(fork);
    rounds(engine, &mut actors, ACTS / 2).await;
    for actor in &mut actors {
        actor.session = None;
    }
    actors
}

async fn rounds(engine: &Engine, actors: &mut [Actor], acts: usize) {
    let text = begun(&**engine.tokenizer(), TEXT);
    let turns = actors.iter_mut().map(|actor| Box::pin(actor.act(&text, acts)));
    all(turns.collect()).await;
}

/// Drives futures beside each other on this task.
async fn all<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    std::future::poll_fn(move |context| {
        futures.retain_mut(|future| std::pin::Pin::new(future).poll(context).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

impl Actor {
    fn new(engine: &Engine, seed: u64) -> Self {
        // Some sessions share a scope, and with it what they begin with.
        let scope = if seed.is_multiple_of(2) { "even" } else { "odd" };
        let options = SessionOptions { scope: scope.into(), ..SessionOptions::default() };
        let session = Some(engine.open_session(options).unwrap());
        Self { session, dice: Dice(seed), acts: Vec::new(), said: Vec::new() }
    }

    async fn fork(&mut self, seed: u64) -> Self {
        let session = Some(self.session.as_mut().unwrap().fork().await.unwrap());
        Self { session, dice: Dice(seed + 1000), acts: self.acts.clone(), said: self.said.clone() }
    }

    async fn act(&mut self, text: &[Token], acts: usize) {
        for _ in 0..acts {
            let session = self.session.as_mut().unwrap();
            let (len, room) = (session.len(), MOST.saturating_sub(session.len()));
            match self.dice.below(8) {
                0..3 if room > 24 => {
                    let from = self.dice.below(u32::try_from(text.len()).unwrap() / 2) as usize;
                    let count = 3 + self.dice.below(16) as usize;
                    let begin = text.iter().take(usize::from(len == 0));
                    let tokens: Vec<Token> = begin.chain(text.iter().skip(1 + from).take(count)).copied().collect();
                    session.prefill(tokens.clone()).await.unwrap();
                    self.acts.push(Act::Prefill(tokens));
                }
                3..6 if len > 0 && room > 12 => {
                    let cancel_after = (self.dice.below(3) == 0).then(|| 1 + self.dice.below(4) as usize);
                    let said = say(session, 4 + self.dice.below(8), cancel_after).await.tokens;
                    self.acts.push(Act::Generate(u32::try_from(said.len()).unwrap()));
                    self.said.extend(said);
                }
                6 if len > 8 => {
                    let (at, count) = (2 + self.dice.below(3), 1 + self.dice.below(3));
                    match session.evict(at, count).await {
                        Ok(()) => self.acts.push(Act::Evict(at, count)),
                        Err(Error::Unsupported(_)) => {}
                        Err(error) => panic!("evict: {error}"),
                    }
                }
                7 if len > 8 && self.dice.below(2) == 0 => {
                    let to = len - 1 - self.dice.below(len / 2);
                    session.rewind(to).await.unwrap();
                    self.acts.push(Act::Rewind(to));
                }
                _ if len > 0 => {
                    session.park().await.unwrap();
                    self.acts.push(Act::Park);
                }
                _ => {}
            }
        }
    }
}

/// Generates, maybe cancelling on the way.
async fn say(session: &mut Session, max_new: u32, cancel_after: Option<usize>) -> Said {
    let options = GenerateOptions {
        ignore_end: true,
        top_logprobs: Some(2),
        flush_after: Duration::ZERO,
        ..GenerateOptions::greedy(max_new)
    };
    let said = engine::said(session.generate(options).unwrap(), cancel_after).await;
    assert!(!matches!(said.finish, Finish::Preempted | Finish::ContextFull), "there is room for all");
    said
}

/// What came of comparing.
#[derive(Default)]
struct Verdict {
    compared: usize,
    undecided: usize,
}

impl Verdict {
    /// Does the same with a session that is alone.
    async fn judge(&mut self, engine: &Engine, actor: &Actor, what: &str) {
        let scope = format!("alone: {what}");
        let mut session =
            engine.open_session(SessionOptions { scope: scope.into(), ..SessionOptions::default() }).unwrap();
        let mut together = actor.said.as_slice();
        for (number, act) in actor.acts.iter().enumerate() {
            match act {
                Act::Prefill(tokens) => drop(session.prefill(tokens.clone()).await.unwrap()),
                Act::Rewind(to) => drop(session.rewind(*to).await.unwrap()),
                Act::Evict(at, count) => session.evict(*at, *count).await.unwrap(),
                Act::Park => session.park().await.unwrap(),
                Act::Generate(0) => {}
                Act::Generate(count) => {
                    let alone = say(&mut session, *count, None).await;
                    let (said, rest) = together.split_at(*count as usize);
                    assert_eq!(alone.tokens.len(), said.len(), "{what}: act {number}");
                    let same = alone.begins(said, &format!("{what}, act {number}"));
                    self.compared += same;
                    if same < said.len() {
                        self.undecided += 1;
                        return;
                    }
                    together = rest;
                }
            }
        }
    }
}
