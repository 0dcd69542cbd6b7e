//! Embeddings beside batches, and whose turn they are.

use super::*;
use crate::Token;
use crate::backend::{EmbeddingInfo, Pooling};
use crate::command::EmbedCommand;

type Vectors = Receiver<Result<Vec<Vec<f32>>, Error>>;

/// The longest input.
const LONGEST: u32 = 1000;
/// The most tokens of an embedding beside a generation.
const CHUNK: u32 = 8;

fn tenant(name: &str, weight: u32) -> Tenant {
    Tenant { name: name.into(), weight, ..Tenant::default() }
}

fn bench_of(base: Duration, token: Duration) -> Bench {
    let mut fake = Fake::default();
    (fake.limits.kv_cells, fake.limits.sequence_tokens) = (100_000, 100_000);
    fake.embeddings = fake.embeddings.map(|info| EmbeddingInfo { max_tokens: LONGEST, ..info });
    Bench::timed(fake, EngineConfig { prefill_chunk: CHUNK, max_draft: 0, ..EngineConfig::default() }, base, token)
}

impl Bench {
    fn embed(&mut self, tenant: &Tenant, inputs: Vec<Vec<Token>>) -> Vectors {
        self.embed_as(tenant, Priority::Normal, inputs)
    }

    fn embed_as(&mut self, tenant: &Tenant, priority: Priority, inputs: Vec<Vec<Token>>) -> Vectors {
        let (reply, answer) = oneshot::channel();
        let (tenant, pooling) = (tenant.clone(), Pooling::Mean);
        self.scheduler.handle(Command::Embed(EmbedCommand { inputs, pooling, tenant, priority, reply }));
        answer
    }

    fn embedded(&self) -> u64 {
        self.metrics.embedded_tokens.get()
    }

    /// A generation without an end, which has begun.
    fn endless(&mut self, tenant: &Tenant, priority: Priority) -> Reader {
        let id = self.open_for(tenant.clone(), priority);
        let mut reply = self.prefill(id, 4);
        self.until(|_| reply.try_recv().is_ok());
        self.generate(id, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(50_000) })
    }

    /// So many steps: what was generated and what was embedded meanwhile.
    fn shares(&mut self, reader: &Reader, steps: usize) -> (u64, u64) {
        let before = self.embedded();
        let mut generated = 0;
        for _ in 0..steps {
            assert_eq!(self.scheduler.step(), Progress::Worked);
            generated += drain(reader).tokens.len() as u64;
        }
        (generated, self.embedded() - before)
    }
}

#[test]
fn a_flood_of_embeddings_gets_its_share_of_the_tokens_by_weight() {
    for (of_flood, of_run) in [(1, 1), (3, 1), (1, 3)] {
        let mut bench = bench_of(STEP, CHEAP);
        let (flood, run) = (tenant("flood", of_flood), tenant("run", of_run));
        let reader = bench.endless(&run, Priority::Normal);
        let _flood: Vec<_> = (0..2).map(|_| bench.embed(&flood, vec![vec![1; 500]; 1000])).collect();
        let (generated, embedded) = bench.shares(&reader, 3000);
        assert!(generated >= 3000, "every step has a token for the stream");
        let expected = generated * u64::from(of_flood) / u64::from(of_run);
        assert!(embedded.abs_diff(expected) < expected / 20, "{embedded} and not {expected} beside {generated}");
    }
}

#[test]
fn embeddings_of_the_same_tenant_go_on_beside_its_runs_by_priority() {
    for (priority, expected) in [(Priority::Normal, 8.0), (Priority::Background, 0.25), (Priority::Interactive, 4.0)] {
        let mut bench = bench_of(STEP, CHEAP);
        let own = tenant("own", 1);
        let reader = bench.endless(&own, Priority::Normal);
        let _embeddings = bench.embed_as(&own, priority, vec![vec![1; 500]; 1000]);
        let (generated, embedded) = bench.shares(&reader, 1000);
        let ratio = embedded as f64 / generated as f64;
        assert!((ratio / expected - 1.0).abs() < 0.1, "{priority:?}: {ratio} tokens a token");
    }
}

#[test]
fn nobody_waits_for_all_the_embeddings_of_somebody_else() {
    let mut bench = bench_of(STEP, CHEAP);
    let (many, one) = (tenant("many", 1), tenant("one", 1));
    let mut flood: Vec<_> = (0..4).map(|_| bench.embed(&many, vec![vec![1; 500]; 500])).collect();
    bench.until(|bench| bench.embedded() > 10_000);
    let before = bench.embedded();
    let mut answer = bench.embed(&one, vec![vec![2; 20]; 3]);
    bench.until(|_| answer.try_recv().is_ok_and(|vectors| vectors.unwrap().len() == 3));
    let waited = bench.embedded() - before;
    // The rest of one input of the other's, and then turns of tokens by tokens.
    assert!(waited <= 2 * 500 + 60 + 1500, "{waited} tokens were computed first");
    assert!(flood.iter_mut().all(|answer| answer.try_recv().is_err()));
}

#[test]
fn nobody_waits_at_the_pace_of_who_has_had_its_share() {
    let mut bench = bench_of(STEP, CHEAP);
    let reader = bench.endless(&tenant("run", 1), Priority::Normal);
    let _flood = bench.embed(&tenant("flood", 1), vec![vec![1; 1000]; 100]);
    // An input was begun, and waits until the stream has come as far.
    bench.shares(&reader, 100);
    let mut answer = bench.embed(&tenant("one", 1), vec![vec![2; 8]]);
    let mut steps = 0;
    while answer.try_recv().is_err() {
        bench.shares(&reader, 1);
        steps += 1;
    }
    assert!(steps <= 1000 / CHUNK + 2, "{steps} steps: the rest of an input in chunks of {CHUNK}");
    let (generated, embedded) = bench.shares(&reader, 1000);
    assert!(embedded < generated / 2, "what the flood had too much is made good: {embedded} beside {generated}");
}

#[test]
fn requests_of_one_tenant_take_turns() {
    let mut bench = bench_of(STEP, CHEAP);
    let own = tenant("own", 1);
    let mut long = bench.embed(&own, vec![vec![1; 100]; 500]);
    let mut short = bench.embed(&own, vec![vec![2; 100]; 2]);
    bench.until(|_| short.try_recv().is_ok());
    assert!(bench.embedded() <= 2000, "{}", bench.embedded());
    assert!(long.try_recv().is_err());
}

#[test]
fn what_waits_for_a_tenant_is_bounded_and_fills_nobody_elses_place() {
    let mut bench = bench_of(STEP, CHEAP);
    let (flood, other) = (tenant("flood", 1), tenant("other", 1));
    let mut taken: Vec<_> = (0..3).map(|_| bench.embed(&flood, vec![vec![1]; 2000])).collect();
    assert_eq!(taken.pop().unwrap().try_recv().unwrap(), Err(Error::Busy), "inputs");
    let mut answer = bench.embed(&other, vec![vec![1]; 2000]);
    assert!(answer.try_recv().is_err(), "it waits");
    let mut bench = bench_of(STEP, CHEAP);
    let mut taken: Vec<_> = (0..3).map(|_| bench.embed(&flood, vec![vec![1; 1000]; 500])).collect();
    assert_eq!(taken.pop().unwrap().try_recv().unwrap(), Err(Error::Busy), "tokens");
    drop(taken);
    bench.scheduler.step();
    assert!(bench.embed(&flood, vec![vec![1]]).try_recv().is_err(), "what nobody waits for takes no room");
}

#[test]
fn long_inputs_are_computed_in_parts_that_fit_a_step() {
    // 10 ms a token: 30 of them in a step.
    let mut bench = bench_of(STEP, Duration::from_millis(10));
    let own = tenant("own", 1);
    let mut answer = bench.embed(&own, vec![vec![1; 900], vec![2; 3]]);
    bench.settle();
    let vectors = answer.try_recv().unwrap().unwrap();
    let parts: Vec<usize> = bench.fake.embedded.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(parts[0], 64, "nothing was known yet");
    assert!(parts[1..].iter().all(|&part| part <= 30) && parts.iter().sum::<usize>() == 903, "{parts:?}");
    // At once it is the same.
    let mut at_once = bench_of(STEP, Duration::ZERO);
    let mut answer = at_once.embed(&own, vec![vec![1; 900], vec![2; 3]]);
    at_once.settle();
    assert_eq!(answer.try_recv().unwrap().unwrap(), vectors);
    // Beside a stream they are as small as those of prompts.
    let reader = bench.endless(&own, Priority::Normal);
    bench.fake.embedded.lock().unwrap().clear();
    let _answer = bench.embed(&own, vec![vec![1; 900]]);
    bench.shares(&reader, 20);
    assert!(bench.fake.embedded.lock().unwrap().iter().all(|part| part.len() <= CHUNK as usize));
}

#[test]
fn embeddings_that_nobody_waits_for_are_not_computed() {
    let mut bench = bench_of(STEP, Duration::from_millis(10));
    let own = tenant("own", 1);
    let answer = bench.embed(&own, vec![vec![1; 600]; 100]);
    bench.scheduler.step();
    drop(answer);
    // The next one is not taken for what was begun.
    let mut next = bench.embed(&own, vec![vec![2; 100]]);
    bench.settle();
    assert_eq!(bench.embedded(), 64 + 100);
    assert_eq!(bench.metrics.cancelled.get(), 1);
    let vectors = next.try_recv().unwrap().unwrap();
    let mut again = bench.embed(&own, vec![vec![2; 100]]);
    bench.settle();
    assert_eq!(again.try_recv().unwrap().unwrap(), vectors);
}
