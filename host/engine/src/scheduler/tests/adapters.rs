//! Sessions of different adapters.

use super::*;
use crate::Token;

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
fn who_waits_under_another_adapter_is_refused_in_time() {
    let mut fake = Fake { adapters: vec!["one".into()], ..Fake::default() };
    (fake.limits.sequences, fake.abilities) = (1, crate::Abilities::default());
    (fake.limits.kv_cells, fake.limits.sequence_tokens) = (100_000, 100_000);
    let mut bench = Bench::timed(fake, EngineConfig { max_draft: 0, ..EngineConfig::default() }, STEP, CHEAP);
    let id = bench.ready(4);
    let run = bench.generate(id, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(50_000) });
    let other = open(&mut bench, Some(0));
    let mut reply = bench.prefill(other, 4);
    bench.until(|_| {
        drain(&run);
        reply.try_recv().is_ok_and(|result| result == Err(Error::Busy))
    });
    assert_eq!(bench.clock.now_seconds(), 30);
}

#[test]
fn what_was_saved_with_one_adapter_is_not_restored_with_another() {
    let mut bench = two_adapters();
    let id = open(&mut bench, Some(0));
    bench.feed(id, vec![u32::from(b'c'); 20]);
    bench.ask(|reply| copying(id, CopyTo::Save { name: "n".into() }, reply)).unwrap();
    for (adapter, fits) in [(Some(1), false), (None, false), (Some(0), true)] {
        bench.next += 1;
        let new = NewSession { adapter, ..new_session(SessionId(bench.next), "") };
        let found = bench.ask(|reply| Command::Restore { name: "n".into(), new, reply });
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
}
