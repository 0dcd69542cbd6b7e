//! Random programs: whatever callers do, nothing is lost and nothing gets stuck.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Act {
    Open,
    Prefill(usize, usize),
    Generate(usize, u32),
    Cancel(usize),
    Close(usize),
    Step(usize),
    Drain(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::Open),
        (0..8usize, 0..60usize).prop_map(|(i, n)| Act::Prefill(i, n)),
        (0..8usize, 1..40u32).prop_map(|(i, n)| Act::Generate(i, n)),
        (0..8usize).prop_map(Act::Cancel),
        (0..8usize).prop_map(Act::Close),
        (1..6usize).prop_map(Act::Step),
        (0..8usize).prop_map(Act::Drain),
    ]
}

proptest! {
    #[test]
    fn no_program_gets_stuck_or_leaks(acts in proptest::collection::vec(act(), 1..120), cells in 64..200u32, sequences in 1..6u32) {
        let mut fake = Fake::default();
        fake.limits.kv_cells = cells;
        fake.limits.sequences = sequences;
        fake.limits.batch_tokens = 16;
        let mut bench = Bench::new(fake, EngineConfig { outbox_tokens: 8, prefill_chunk: 4, ..EngineConfig::default() });
        let mut open: Vec<SessionId> = Vec::new();
        let mut runs: Vec<(SessionId, u64, Reader)> = Vec::new();
        let mut replies: Vec<Reply> = Vec::new();
        for act in acts {
            let pick = |i: usize| open.get(i % open.len().max(1)).copied();
            match act {
                Act::Open => { let id = bench.open(); open.push(id); }
                Act::Prefill(i, n) => if let Some(id) = pick(i) { replies.push(bench.prefill(id, n)); },
                Act::Generate(i, n) => if let Some(id) = pick(i) {
                    let reader = bench.generate(id, GenerateOptions::greedy(n));
                    runs.push((id, bench.next, reader));
                },
                Act::Cancel(i) => if let Some((id, run, _)) = runs.get(i) {
                    bench.scheduler.handle(Command::Cancel { id: *id, run: *run });
                },
                Act::Close(i) => if let Some(id) = pick(i) { open.retain(|&o| o != id); bench.close(id); },
                Act::Step(n) => for _ in 0..n {
                    if let Progress::Waiting(time) = bench.scheduler.step() { bench.clock.advance(time); }
                },
                Act::Drain(i) => if let Some((_, _, reader)) = runs.get(i) { drain(reader); },
            }
            let held: u32 = bench.scheduler.sequences.values().map(|s| s.in_kv()).sum();
            prop_assert!(bench.cells_used() <= i64::from(held.min(cells)));
        }
        // With readers that read, everything comes to an end.
        let ended = |reader: &Reader| { drain(reader); !matches!(reader.try_take().item, None | Some(Ok(Some(_)))) };
        let mut left: Vec<_> = runs.iter().map(|r| &r.2).collect();
        bench.until(|_| { left.retain(|r| !ended(r)); left.is_empty() });
        for mut reply in replies {
            bench.until(|_| !matches!(reply.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        }
        for id in open {
            bench.close(id);
        }
        prop_assert_eq!(bench.cells_used(), 0);
        prop_assert_eq!(bench.metrics.sessions.get(), 0);
    }

    /// Requests that each fit alone all come to their end, however many they are and
    /// whoever they are for: none is refused, and none loses what it said.
    #[test]
    fn whatever_fits_alone_is_served_beside_others(
        asks in proptest::collection::vec((0..3usize, 0..3usize, 1..60usize, 1..60u32, 0..20u64), 1..24),
        cells in 128..220u32,
        sequences in 1..6u32,
    ) {
        let mut fake = Fake::default();
        fake.limits.kv_cells = cells;
        fake.limits.sequences = sequences;
        fake.limits.batch_tokens = 16;
        let config = EngineConfig { prefill_chunk: 4, ..EngineConfig::default() };
        let mut bench = Bench::timed(fake, config, Duration::from_millis(1), Duration::ZERO);
        let mut asks = asks.into_iter().peekable();
        let mut prompts: Vec<(SessionId, u32, Reply)> = Vec::new();
        let mut runs: Vec<(SessionId, u32, Reader)> = Vec::new();
        let mut pause = 0;
        while asks.peek().is_some() || !prompts.is_empty() || !runs.is_empty() {
            while let Some((tenant, priority, prompt, most, _)) = asks.next_if(|ask| pause >= ask.4) {
                let tenant = Tenant { name: ["a", "b", "c"][tenant].into(), ..Tenant::default() };
                let priority = [Priority::Background, Priority::Normal, Priority::Interactive][priority];
                let id = bench.open_for(tenant, priority);
                prompts.push((id, most, bench.prefill(id, prompt)));
                pause = 0;
            }
            pause += 1;
            if let Progress::Waiting(time) = bench.scheduler.step() { bench.clock.advance(time); }
            for (id, most, mut reply) in std::mem::take(&mut prompts) {
                match reply.try_recv() {
                    Err(_) => prompts.push((id, most, reply)),
                    Ok(answer) => {
                        prop_assert!(answer.is_ok(), "{answer:?}");
                        let options = GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(most) };
                        runs.push((id, most, bench.generate(id, options)));
                    }
                }
            }
            for (id, left, reader) in std::mem::take(&mut runs) {
                let all = drain(&reader);
                let left = left - u32::try_from(all.tokens.len()).unwrap();
                match all.finish {
                    None => runs.push((id, left, reader)),
                    Some(finish) => {
                        prop_assert_eq!((finish, left), (Finish::Length, 0));
                        bench.close(id);
                    }
                }
            }
        }
        prop_assert!(bench.clock.now_seconds() < 30, "nobody waited in vain");
        prop_assert_eq!((bench.cells_used(), bench.metrics.preempted.get()), (0, 0));
    }
}
