//! Adapters, and embeddings beside batches.

use super::*;
use crate::Token;
use crate::backend::Pooling;
use crate::command::EmbedCommand;

fn two_adapters() -> Bench {
    let fake = Fake { adapters: vec!["one".into(), "two".into()], ..Fake::default() };
    Bench::new(fake, EngineConfig { prefill_chunk: 8, ..EngineConfig::default() })
}

fn open(bench: &mut Bench, adapter: Option<usize>) -> SessionId {
    bench.next += 1;
    let id = SessionId(bench.next);
    bench.scheduler.handle(Command::Open(NewSession { adapter, ..new_session(id, "") }));
    id
}

#[test]
fn sessions_of_different_adapters_share_no_batch_and_no_beginning() {
    let mut bench = two_adapters();
    let prompt: Vec<Token> = vec![u32::from(b'c'); 40];
    let all = [None, Some(0), Some(1)];
    let ids = all.map(|adapter| open(&mut bench, adapter));
    for id in ids {
        assert_eq!(bench.feed(id, prompt.clone()).cached, 0, "what another adapter computed is of no use");
    }
    let alone = ids.map(|id| {
        let said = bench.say(id, 6);
        bench.rewind(id, 40).unwrap();
        said
    });
    assert!(alone[0] != alone[1] && alone[1] != alone[2]);
    let runs = ids.map(|id| bench.generate(id, GenerateOptions::greedy(6)));
    let before = bench.fake.fills().len();
    bench.settle();
    for (run, want) in runs.iter().zip(&alone) {
        let said: Vec<Token> = drain(run).tokens.iter().map(|token| token.token).collect();
        assert_eq!(said, *want);
    }
    assert!(bench.fake.fills()[before..].iter().all(|&fill| fill == 1), "one adapter a batch");
    let again = open(&mut bench, Some(1));
    assert_eq!(bench.feed(again, prompt.clone()).cached, 32, "its own beginning is shared");
    let child = bench.fork(again);
    assert!(child.is_ok());
}

#[test]
fn what_was_saved_with_one_adapter_is_not_restored_with_another() {
    let mut bench = two_adapters();
    let id = open(&mut bench, Some(0));
    bench.feed(id, vec![u32::from(b'c'); 20]);
    bench.ask(|reply| Command::Save { id, name: "n".into(), reply }).unwrap();
    for (adapter, fits) in [(Some(1), false), (None, false), (Some(0), true)] {
        bench.next += 1;
        let new = NewSession { adapter, ..new_session(SessionId(bench.next), "") };
        let found = bench.ask(|reply| Command::Restore { name: "n".into(), new, reply });
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
}

#[test]
fn embeddings_are_computed_between_the_batches_of_runs() {
    let mut bench = two_adapters();
    let id = bench.ready(4);
    let run = bench.generate(id, GenerateOptions::greedy(200));
    // More than a step may take at once.
    let inputs: Vec<Vec<Token>> = (0..10).map(|n| vec![n + 1; 60]).collect();
    let (reply, mut answer) = oneshot::channel();
    bench.scheduler.handle(Command::Embed(EmbedCommand { inputs: inputs.clone(), pooling: Pooling::Mean, reply }));
    let (before, mut vectors) = (bench.fake.fills().len(), None);
    bench.until(|_| {
        vectors = answer.try_recv().ok();
        vectors.is_some()
    });
    let vectors = vectors.unwrap().unwrap();
    assert_eq!(vectors.len(), 10);
    let batches = bench.fake.fills().len() - before;
    assert!(batches >= 8, "the run went on meanwhile: {batches} batches");
    assert!(drain(&run).tokens.len() >= 8);
    // Alone each is the same.
    let (reply, mut answer) = oneshot::channel();
    let alone = vec![inputs[3].clone()];
    bench.scheduler.handle(Command::Embed(EmbedCommand { inputs: alone, pooling: Pooling::Mean, reply }));
    bench.settle();
    assert_eq!(answer.try_recv().unwrap().unwrap()[0], vectors[3]);
}

#[test]
fn embeddings_that_nobody_waits_for_are_not_computed() {
    let mut bench = two_adapters();
    let (reply, answer) = oneshot::channel();
    let inputs = vec![vec![1; 60]; 100];
    bench.scheduler.handle(Command::Embed(EmbedCommand { inputs, pooling: Pooling::Mean, reply }));
    bench.scheduler.step();
    drop(answer);
    bench.settle();
    assert!(bench.metrics.embedded_tokens.get() <= 120);
    assert_eq!(bench.metrics.cancelled.get(), 1);
}
