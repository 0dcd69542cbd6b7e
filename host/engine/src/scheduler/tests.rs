//! The scheduler over the fake backend, with a clock that the test moves.

mod adapters;
mod embeddings;
mod fairness;
mod grammars;
mod guesses;
mod pressure;
mod random;
mod reserve;
mod sessions;
mod steps;
mod stops;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver};

use super::{Progress, Scheduler};
use crate::affinity::Affinity;
use crate::backend::DecodeError;
use crate::clock::ManualClock;
use crate::command::{self, Command, CopyCommand, CopyTo, NewSession, Seat, SessionId, SessionState};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::fake::{END, Fake};
use crate::metrics::EngineMetrics;
use crate::options::{Chunk, Finish, GenerateOptions, PrefillInfo, Priority, Tenant};
use crate::outbox::{FlushPolicy, Reader, outbox};

/// What a batch takes whatever it holds.
const STEP: Duration = Duration::from_millis(10);
/// What a token adds to it.
const CHEAP: Duration = Duration::from_micros(200);

/// A scheduler with its fake and its clock.
struct Bench {
    scheduler: Scheduler<ManualClock>,
    fake: Fake,
    clock: ManualClock,
    metrics: EngineMetrics,
    next: u64,
    steps: Arc<AtomicU64>,
}

type Reply = Receiver<Result<PrefillInfo, Error>>;

fn copying(id: SessionId, to: CopyTo, reply: command::Reply<()>) -> Command {
    Command::Copy(CopyCommand { id, to, reply })
}

impl Bench {
    fn new(fake: Fake, config: EngineConfig) -> Self {
        let clock = ManualClock::default();
        let metrics = EngineMetrics::default();
        let steps = Arc::new(AtomicU64::new(0));
        let model = fake.load();
        let backend = Box::new(fake.backend());
        let affinity = Affinity::of_this_thread();
        let steps_too = Arc::clone(&steps);
        let scheduler =
            Scheduler::new(backend, model.tokenizer, config, metrics.clone(), steps_too, clock.clone(), affinity);
        Self { scheduler, fake, clock, metrics, next: 0, steps }
    }

    /// One whose batches take time.
    fn timed(mut fake: Fake, config: EngineConfig, base: Duration, token: Duration) -> Self {
        let clock = ManualClock::default();
        let ticking = clock.clone();
        fake.before_decode = Arc::new(move |batch| {
            let tokens = u32::try_from(batch.len()).unwrap();
            ticking.advance(base + token * tokens);
            Ok(())
        });
        let ticking = clock.clone();
        fake.before_embedding = Arc::new(move |part| ticking.advance(token * u32::try_from(part.len()).unwrap()));
        let ticking = clock.clone();
        fake.before_copy = Arc::new(move |tokens| ticking.advance(token / 64 * u32::try_from(tokens).unwrap()));
        let mut bench = Self::new(fake, config);
        bench.scheduler.clock = clock.clone();
        bench.clock = clock;
        bench
    }

    fn open(&mut self) -> SessionId {
        self.open_for(Tenant::default(), Priority::Normal)
    }

    fn open_for(&mut self, tenant: Tenant, priority: Priority) -> SessionId {
        self.next += 1;
        let id = SessionId(self.next);
        self.scheduler.handle(Command::Open(NewSession { tenant, priority, ..new_session(id, "") }));
        id
    }

    fn prefill(&mut self, id: SessionId, n: usize) -> Reply {
        let (reply, result) = oneshot::channel();
        self.scheduler.handle(Command::Prefill { id, tokens: vec![u32::from(b'0'); n], reply });
        result
    }

    fn generate(&mut self, id: SessionId, options: GenerateOptions) -> Reader {
        self.next += 1;
        let flush = FlushPolicy { tokens: options.flush_tokens.max(1) as usize, after: options.flush_after };
        let (writer, reader) = outbox(flush, self.scheduler.config.outbox_tokens as usize);
        self.scheduler.handle(Command::Generate { id, run: self.next, options: Box::new(options), outbox: writer });
        reader
    }

    fn close(&mut self, id: SessionId) {
        let at_step = self.steps.load(std::sync::atomic::Ordering::Relaxed);
        self.scheduler.handle(Command::Close { id, at_step });
    }

    /// A session with a prompt of `n` tokens, already prefilled.
    fn ready(&mut self, n: usize) -> SessionId {
        let id = self.open();
        let mut reply = self.prefill(id, n);
        self.until(|_| reply.try_recv().is_ok());
        id
    }

    /// Steps until something holds; a scheduler that stops before is stuck.
    fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..10_000 {
            if holds(self) {
                return;
            }
            match self.scheduler.step() {
                Progress::Worked => {}
                Progress::Waiting(time) => self.clock.advance(time),
                Progress::Idle => {
                    assert!(holds(self), "the scheduler is idle");
                    return;
                }
            }
        }
        panic!("10,000 steps were not enough");
    }

    /// Steps until nothing is left to do; time passes as it must.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            match self.scheduler.step() {
                Progress::Worked => {}
                Progress::Waiting(time) => self.clock.advance(time),
                Progress::Idle => return,
            }
        }
        panic!("10,000 steps were not enough");
    }

    fn cells_used(&self) -> i64 {
        self.metrics.kv_cells_used.get()
    }
}

fn new_session(id: SessionId, scope: &str) -> NewSession {
    NewSession {
        id,
        seat: Seat::take(&Arc::default(), u32::MAX).unwrap(),
        state: Arc::new(SessionState::default()),
        max_tokens: u32::MAX,
        scope: scope.into(),
        tenant: Tenant::default(),
        priority: Priority::Normal,
        adapter: None,
    }
}

/// Everything the reader has: text, tokens, finish.
fn drain(reader: &Reader) -> Chunk {
    let mut all = Chunk::default();
    while let Some(Ok(Some(chunk))) = reader.try_take().item {
        all.tokens.extend(chunk.tokens);
        all.text += &chunk.text;
        all.finish = chunk.finish;
    }
    all
}

fn bench() -> Bench {
    Bench::new(Fake::default(), EngineConfig { prefill_chunk: 8, ..EngineConfig::default() })
}

#[test]
fn a_prompt_in_batches_then_text() {
    let mut bench = bench();
    let id = bench.ready(100);
    assert_eq!(bench.fake.batches.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [64, 36]);
    let run = bench.generate(id, GenerateOptions::greedy(5));
    bench.settle();
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("abcde", Some(Finish::Length)));
    // The prefill's own logits gave the first token, and the last one is not decoded.
    assert_eq!(bench.fake.fills().len(), 2 + 4);
}

#[test]
fn running_generations_share_every_batch() {
    let mut bench = bench();
    let ids: Vec<_> = (0..16).map(|_| bench.ready(4)).collect();
    let before = bench.fake.fills().len();
    let runs: Vec<_> = ids.iter().map(|&id| bench.generate(id, GenerateOptions::greedy(9))).collect();
    bench.settle();
    for run in &runs {
        assert_eq!(drain(run).text, "abcdefghi");
    }
    assert_eq!(bench.fake.fills()[before..], [16; 8]);
    assert_eq!(bench.metrics.batch_sequences_max.get(), 16);
}

#[test]
fn a_long_prompt_goes_beside_a_stream_in_chunks() {
    let mut bench = bench();
    let id = bench.ready(4);
    let run = bench.generate(id, GenerateOptions::greedy(50));
    let other = bench.open();
    let mut reply = bench.prefill(other, 40);
    let before = bench.fake.batches.lock().unwrap().len();
    bench.until(|_| reply.try_recv().is_ok());
    let sizes: Vec<_> = bench.fake.batches.lock().unwrap()[before..].iter().map(Vec::len).collect();
    assert_eq!(sizes, [1 + 8; 5], "a chunk of 8 beside each token");
    assert_eq!(drain(&run).tokens.len(), 1 + 5, "the stream got a token with every batch");
}

#[test]
fn the_models_end_and_stop_tokens_end_a_run() {
    let mut bench = Bench::new(Fake::saying("hi"), EngineConfig::default());
    let id = bench.ready(3);
    let run = bench.generate(id, GenerateOptions::greedy(9));
    bench.settle();
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("hi", Some(Finish::StopToken)));
    assert_eq!(all.tokens.last().unwrap().token, END);
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 5, "the end token is not in the session");

    let mut bench = self::bench();
    let id = bench.ready(3);
    let run = bench.generate(id, GenerateOptions { stop_tokens: vec![u32::from(b'c')], ..GenerateOptions::greedy(9) });
    bench.settle();
    assert_eq!(drain(&run).text, "ab");
    let run = bench.generate(id, GenerateOptions { stop_text: vec!["de".into()], ..GenerateOptions::greedy(9) });
    bench.settle();
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("c", Some(Finish::StopText(0))));
}

#[test]
fn a_dropped_session_is_free_before_the_next_batch() {
    let mut bench = bench();
    let (stays, goes) = (bench.ready(4), bench.ready(4));
    let kept = bench.generate(stays, GenerateOptions::greedy(50));
    let gone = bench.generate(goes, GenerateOptions::greedy(50));
    bench.scheduler.step();
    assert_eq!(bench.fake.fills().last(), Some(&2));
    bench.close(goes);
    assert_eq!(gone.try_take().item.unwrap().unwrap().unwrap().tokens.len(), 2);
    assert_eq!(gone.try_take().item, Some(Err(Error::Cancelled)));
    bench.scheduler.step();
    assert_eq!(bench.fake.fills().last(), Some(&1));
    assert_eq!(bench.cells_used(), 4 + 2);
    bench.settle();
    assert_eq!(drain(&kept).tokens.len(), 50);
    bench.close(stays);
    assert_eq!(bench.cells_used(), 0);
    assert_eq!(bench.metrics.sessions.get(), 0);
}

#[test]
fn cancelling_keeps_what_was_generated() {
    let mut bench = bench();
    let id = bench.ready(4);
    let run = bench.generate(id, GenerateOptions::greedy(50));
    let number = bench.next;
    bench.scheduler.step();
    bench.scheduler.handle(Command::Cancel { id, run: number });
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("ab", Some(Finish::Cancelled)));
    let second = bench.generate(id, GenerateOptions::greedy(2));
    bench.scheduler.handle(Command::Cancel { id, run: number });
    bench.settle();
    assert_eq!(drain(&second).finish, Some(Finish::Length), "a late cancel of the first run spares the second");
}

#[test]
fn a_slow_reader_pauses_its_own_run_only() {
    let config = EngineConfig { outbox_tokens: 4, ..EngineConfig::default() };
    let mut bench = Bench::new(Fake::default(), config);
    let (slow, fast) = (bench.ready(4), bench.ready(4));
    let slow = bench.generate(slow, GenerateOptions::greedy(20));
    let fast = bench.generate(fast, GenerateOptions::greedy(20));
    let mut text = String::new();
    bench.until(|_| {
        let chunk = drain(&fast);
        text += &chunk.text;
        chunk.finish.is_some()
    });
    assert_eq!(text.len(), 20);
    assert_eq!(bench.scheduler.step(), Progress::Idle);
    let taken = slow.try_take();
    assert_eq!(taken.item.unwrap().unwrap().unwrap().tokens.len(), 4);
    assert!(taken.resume);
    bench.scheduler.handle(Command::Wake);
    assert_eq!(bench.scheduler.step(), Progress::Worked);
}

#[test]
fn a_deadline_ends_a_run() {
    let mut bench = bench();
    let id = bench.ready(4);
    let deadline = Some(Duration::from_millis(100));
    let run = bench.generate(id, GenerateOptions { deadline, ..GenerateOptions::greedy(500) });
    bench.scheduler.step();
    bench.clock.advance(Duration::from_millis(99));
    bench.scheduler.step();
    bench.clock.advance(Duration::from_millis(1));
    bench.scheduler.step();
    let all = drain(&run);
    assert_eq!((all.tokens.len(), all.finish), (3, Some(Finish::Deadline)));
}

#[test]
fn a_full_session_says_so() {
    let mut fake = Fake::default();
    fake.limits.sequence_tokens = 10;
    let mut bench = Bench::new(fake, EngineConfig::default());
    let id = bench.ready(7);
    assert_eq!(bench.prefill(id, 4).try_recv().unwrap(), Err(Error::ContextFull { free: 3 }));
    let run = bench.generate(id, GenerateOptions::greedy(9));
    bench.settle();
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("abc", Some(Finish::ContextFull)));
    let run = bench.generate(id, GenerateOptions::greedy(9));
    assert_eq!(run.try_take().item, Some(Err(Error::ContextFull { free: 0 })));
}

#[test]
fn a_failed_batch_leaves_the_tokens_of_its_sessions_as_they_were() {
    let failing = Arc::new(std::sync::Mutex::new(false));
    let switch = Arc::clone(&failing);
    let fake = Fake {
        before_decode: Arc::new(move |_| match *switch.lock().unwrap() {
            true => Err(DecodeError::Failed("the machine is on fire".into())),
            false => Ok(()),
        }),
        ..Fake::default()
    };
    let mut bench = Bench::new(fake, EngineConfig::default());
    let id = bench.ready(4);
    *failing.lock().unwrap() = true;
    let mut reply = bench.prefill(id, 6);
    bench.settle();
    let error = reply.try_recv().unwrap().unwrap_err();
    assert!(error.to_string().contains("on fire"), "{error}");
    *failing.lock().unwrap() = false;
    // Their state may be lost: it is computed again when it is needed.
    assert_eq!(bench.cells_used(), 0);
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 4);
    let run = bench.generate(id, GenerateOptions::greedy(2));
    bench.settle();
    assert_eq!(drain(&run).text, "ab");
}

#[test]
fn an_abandoned_prefill_is_undone() {
    let mut bench = bench();
    let id = bench.ready(4);
    drop(bench.prefill(id, 200));
    bench.settle();
    assert_eq!(bench.cells_used(), 4);
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 4);
}

#[test]
fn nonsense_is_refused() {
    let mut bench = bench();
    let id = bench.open();
    let run = bench.generate(id, GenerateOptions::greedy(1));
    assert!(matches!(run.try_take().item, Some(Err(Error::InvalidArgument(_)))), "an empty session");
    let _first = bench.prefill(id, 4);
    let mut second = bench.prefill(id, 4);
    assert!(matches!(second.try_recv().unwrap(), Err(Error::InvalidArgument(_))), "two prefills at once");
}
