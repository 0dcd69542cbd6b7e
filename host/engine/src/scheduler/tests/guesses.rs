//! Speculation: what comes out is the same, and takes fewer batches.

use super::sessions::{chained, looping};
use super::*;
use crate::backend::{Backend, BatchEntry};
use crate::fake::Script;
use crate::options::Sampling;

fn guessing() -> Bench {
    Bench::timed(Fake { script: looping(), ..Fake::default() }, EngineConfig::default(), STEP, CHEAP)
}

/// The same few letters again and again, but now and then another one, so that some
/// guesses are wrong.
fn drifting() -> Script {
    Arc::new(|tokens| match tokens.last() {
        Some(&t) if tokens.len() % 23 != 0 && (u32::from(b'a')..u32::from(b'g')).contains(&t) => t + 1,
        _ => u32::from(b'a'),
    })
}

/// Tokens of a run, and the batches it took.
fn run(bench: &mut Bench, options: GenerateOptions) -> (Vec<u32>, usize) {
    let id = bench.ready(20);
    let before = bench.fake.fills().len();
    let reader = bench.generate(id, options);
    bench.settle();
    let tokens = drain(&reader).tokens.iter().map(|t| t.token).collect();
    (tokens, bench.fake.fills().len() - before)
}

#[test]
fn a_text_that_repeats_itself_takes_fewer_batches() {
    let mut bench = guessing();
    let (plain, batches) = run(&mut bench, GenerateOptions { draft: Some(0), ..GenerateOptions::greedy(200) });
    assert_eq!((plain.len(), batches), (200, 199));
    let (guessed, batches) = run(&mut bench, GenerateOptions::greedy(200));
    assert_eq!(guessed, plain);
    assert!(batches < 80, "{batches} batches for 200 tokens");
    let (drafted, accepted) = (bench.metrics.drafted_tokens.get(), bench.metrics.accepted_tokens.get());
    assert!(accepted > 100 && accepted <= drafted, "{accepted} of {drafted}");
}

#[test]
fn draws_with_a_seed_are_the_same() {
    let mut bench = guessing();
    let sampling = Sampling { temperature: 1.5, seed: Some(5), ..Sampling::GREEDY };
    let options = GenerateOptions { sampling, ignore_end: true, ..GenerateOptions::greedy(100) };
    let (plain, _) = run(&mut bench, GenerateOptions { draft: Some(0), ..options.clone() });
    let (guessed, _) = run(&mut bench, options);
    assert!(bench.metrics.drafted_tokens.get() > 0);
    assert_eq!(guessed, plain);
}

#[test]
fn where_each_token_costs_as_much_as_a_step_none_is_guessed() {
    let fake = Fake { script: looping(), ..Fake::default() };
    let mut bench = Bench::timed(fake, EngineConfig::default(), Duration::ZERO, CHEAP);
    let (_, batches) = run(&mut bench, GenerateOptions::greedy(200));
    assert_eq!(batches, 199);
    assert_eq!(bench.metrics.drafted_tokens.get(), 0);
}

#[test]
fn wrong_guesses_change_nothing() {
    let fake = Fake { script: drifting(), ..Fake::default() };
    let mut bench = Bench::timed(fake, EngineConfig::default(), STEP, CHEAP);
    let (plain, _) = run(&mut bench, GenerateOptions { draft: Some(0), ..GenerateOptions::greedy(250) });
    let (guessed, batches) = run(&mut bench, GenerateOptions::greedy(250));
    assert_eq!(guessed, plain);
    let (drafted, accepted) = (bench.metrics.drafted_tokens.get(), bench.metrics.accepted_tokens.get());
    assert!(accepted > 50 && accepted < drafted, "{accepted} of {drafted} in {batches} batches");
}

#[test]
fn runs_end_where_they_would_have_ended() {
    let mut bench = guessing();
    let (plain, _) = run(&mut bench, GenerateOptions { draft: Some(0), ..GenerateOptions::greedy(100) });
    for length in [1, 2, 63, 64, 65, 66, 67, 68] {
        let (guessed, _) = run(&mut bench, GenerateOptions::greedy(length));
        assert_eq!(guessed, plain[..length as usize]);
    }
    // The session holds what was said and goes on from there.
    let id = bench.ready(20);
    let mut said = Vec::new();
    for length in [60, 1, 39] {
        let reader = bench.generate(id, GenerateOptions::greedy(length));
        bench.settle();
        said.extend(drain(&reader).tokens.iter().map(|t| t.token));
    }
    assert_eq!(said, plain);
    let held = &bench.scheduler.sequences[&id];
    assert_eq!((held.tokens.len(), held.todo()), (120, 1), "wrong guesses left nothing behind");
}

/// A small model whose opinion is the large one's, but for each seventh token.
fn small(cells: u32, sequences: u32) -> Box<dyn Backend> {
    let chained = chained();
    let script: Script = Arc::new(move |tokens| if tokens.len() % 7 == 0 { 33 } else { chained(tokens) });
    let mut fake = Fake { script, ..Fake::default() };
    (fake.limits.kv_cells, fake.limits.sequences) = (cells, sequences);
    Box::new(fake.backend())
}

fn drafting(cells: u32, sequences: u32) -> Bench {
    let fake = Fake { script: chained(), ..Fake::default() };
    let mut bench = Bench::timed(fake, EngineConfig::default(), STEP, CHEAP);
    bench.scheduler.draft = Some(super::super::draft::DraftModel::new(small(cells, sequences)));
    bench
}

#[test]
fn a_draft_model_guesses_what_no_text_could() {
    let mut bench = drafting(4096, 32);
    let (plain, batches) = run(&mut bench, GenerateOptions { draft: Some(0), ..GenerateOptions::greedy(200) });
    assert_eq!(batches, 199);
    let (guessed, batches) = run(&mut bench, GenerateOptions::greedy(200));
    assert_eq!(guessed, plain);
    assert!(batches < 80, "{batches} batches for 200 tokens");
    let (drafted, accepted) = (bench.metrics.drafted_tokens.get(), bench.metrics.accepted_tokens.get());
    assert!(accepted > 100 && accepted < drafted, "{accepted} of {drafted}");
}

#[test]
fn a_draft_model_without_room_for_all_forgets_and_changes_nothing() {
    for (cells, sequences) in [(4096, 2), (300, 32), (60, 1)] {
        let mut bench = drafting(cells, sequences);
        let ids: Vec<_> = (0..4).map(|n| bench.ready(20 + n)).collect();
        let options = GenerateOptions::greedy(120);
        let runs: Vec<_> = ids.iter().map(|&id| bench.generate(id, options.clone())).collect();
        bench.settle();
        for (run, n) in runs.iter().zip(20..) {
            let said: Vec<u32> = drain(run).tokens.iter().map(|t| t.token).collect();
            let mut tokens = vec![u32::from(b'0'); n];
            let want: Vec<u32> = (0..120)
                .map(|_| {
                    tokens.push(chained()(&tokens));
                    tokens[tokens.len() - 1]
                })
                .collect();
            assert_eq!(said, want, "{cells} cells, {sequences} sequences");
        }
        for id in ids {
            bench.close(id);
        }
        assert_eq!(bench.cells_used(), 0);
    }
}

/// Knows only its end, as a recurrent model does.
struct OneWay(crate::fake::FakeBackend);

impl Backend for OneWay {
    fn limits(&self) -> crate::BackendLimits {
        self.0.limits()
    }
    fn decode(&mut self, batch: &[BatchEntry]) -> Result<(), DecodeError> {
        self.0.decode(batch)
    }
    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.0.logits(index)
    }
    fn truncate(&mut self, seq: crate::SeqId, len: u32) -> bool {
        len == 0 && self.0.truncate(seq, 0)
    }
}

#[test]
fn a_model_that_cannot_step_back_stops_guessing_and_loses_nothing() {
    let fake = Fake { script: drifting(), ..Fake::default() };
    let mut bench = Bench::timed(fake.clone(), EngineConfig::default(), STEP, CHEAP);
    let (plain, _) = run(&mut bench, GenerateOptions { draft: Some(0), ..GenerateOptions::greedy(150) });
    let mut bench = Bench::timed(fake, EngineConfig::default(), STEP, CHEAP);
    bench.scheduler.backend = Box::new(OneWay(bench.fake.backend()));
    bench.scheduler.abilities = crate::Abilities::default();
    let (guessed, _) = run(&mut bench, GenerateOptions::greedy(150));
    assert_eq!(guessed, plain);
    assert!(!bench.scheduler.can_reject);
}
