//! Too few cells or sequences.

use super::*;
use crate::backend::Abilities;

fn tight(kv_cells: u32, sequences: u32) -> Bench {
    let mut fake = Fake::default();
    fake.limits.kv_cells = kv_cells;
    fake.limits.sequences = sequences;
    // Nothing can leave its cells, so everybody has to wait for them.
    fake.abilities = Abilities::default();
    Bench::new(fake, EngineConfig::default())
}

#[test]
fn a_prompt_waits_until_cells_are_given_back() {
    let mut bench = tight(100, 8);
    let holder = bench.ready(80);
    let waiter = bench.open();
    let mut reply = bench.prefill(waiter, 40);
    assert!(matches!(bench.scheduler.step(), Progress::Waiting(_)));
    assert_eq!(bench.metrics.queued.get(), 1);
    bench.clock.advance(Duration::from_secs(5));
    bench.close(holder);
    bench.settle();
    let info = reply.try_recv().unwrap().unwrap();
    assert_eq!((info.computed, info.queued), (40, Duration::from_secs(5)));
}

#[test]
fn a_prompt_that_waited_too_long_is_refused_as_busy() {
    let mut bench = tight(100, 8);
    let _holder = bench.ready(80);
    let waiter = bench.open();
    let mut reply = bench.prefill(waiter, 40);
    bench.until(|_| reply.try_recv().is_ok_and(|r| r == Err(Error::Busy)));
    assert_eq!(bench.clock.now_seconds(), 30);
    assert_eq!(bench.cells_used(), 80);
}

#[test]
fn a_sequence_is_waited_for_as_well() {
    let mut bench = tight(1000, 2);
    let (first, _second) = (bench.ready(4), bench.ready(4));
    let third = bench.open();
    let mut reply = bench.prefill(third, 4);
    assert!(matches!(bench.scheduler.step(), Progress::Waiting(_)));
    bench.close(first);
    bench.settle();
    assert!(reply.try_recv().unwrap().is_ok());
}

#[test]
fn a_prompt_larger_than_all_cells_is_refused_at_once() {
    let mut bench = tight(100, 8);
    let id = bench.open();
    assert_eq!(bench.prefill(id, 101).try_recv().unwrap(), Err(Error::ContextFull { free: 100 }));
}

#[test]
fn when_no_run_can_move_the_youngest_is_preempted_and_told_so() {
    let mut bench = tight(100, 8);
    let (old, young) = (bench.ready(40), bench.ready(40));
    let old_run = bench.generate(old, GenerateOptions::greedy(50));
    bench.clock.advance(Duration::from_millis(1));
    let young_run = bench.generate(young, GenerateOptions::greedy(50));
    bench.settle();
    let young_all = drain(&young_run);
    assert_eq!(young_all.finish, Some(Finish::Preempted));
    assert!(young_all.tokens.len() >= 10, "it ran as long as there was room");
    assert_eq!(drain(&old_run).finish, Some(Finish::Length));
    assert_eq!(bench.metrics.preempted.get(), 1);
    // The session says once that it lost its state, then starts afresh.
    assert_eq!(bench.prefill(young, 4).try_recv().unwrap(), Err(Error::Evicted));
    let mut reply = bench.prefill(young, 4);
    bench.settle();
    assert!(reply.try_recv().unwrap().is_ok());
}

#[test]
fn too_many_in_the_queue_are_refused_at_once() {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 100;
    fake.abilities = Abilities::default();
    let mut bench = Bench::new(fake, EngineConfig { max_queued: 2, ..EngineConfig::default() });
    let _holder = bench.ready(90);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let id = bench.open();
            bench.prefill(id, 50)
        })
        .collect();
    let id = bench.open();
    assert_eq!(bench.prefill(id, 50).try_recv().unwrap(), Err(Error::Busy));
    drop(waiting);
}

#[test]
fn who_has_paid_for_its_prompt_is_served_though_the_queue_is_full() {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 100;
    fake.abilities = Abilities::default();
    let mut bench = Bench::new(fake, EngineConfig { max_queued: 1, ..EngineConfig::default() });
    let ready = bench.ready(60);
    let waiter = bench.open();
    let _waiting = bench.prefill(waiter, 50);
    let run = bench.generate(ready, GenerateOptions::greedy(3));
    for _ in 0..4 {
        bench.scheduler.step();
    }
    assert_eq!(drain(&run).text, "abc");
}

#[test]
fn everybody_in_the_queue_waits_no_longer_than_the_head() {
    let mut bench = tight(100, 8);
    let _holder = bench.ready(80);
    let mut replies: Vec<_> = (0..3)
        .map(|_| {
            let id = bench.open();
            bench.prefill(id, 40)
        })
        .collect();
    let mut last = replies.pop().unwrap();
    bench.until(|_| last.try_recv().is_ok_and(|r| r == Err(Error::Busy)));
    assert_eq!(bench.clock.now_seconds(), 30);
}

#[test]
fn a_session_with_a_sequence_does_not_wait_for_one() {
    let mut bench = tight(1000, 2);
    let (first, _second) = (bench.ready(4), bench.ready(4));
    let third = bench.open();
    let mut waits = bench.prefill(third, 4);
    let mut goes_on = bench.prefill(first, 4);
    bench.scheduler.step();
    assert!(goes_on.try_recv().unwrap().is_ok());
    assert!(waits.try_recv().is_err(), "no sequence is free");
}

#[test]
fn prompts_that_hold_a_part_of_the_cells_each_give_way_at_once() {
    for snapshot in [true, false] {
        let mut fake = Fake::default();
        fake.limits.kv_cells = 300;
        fake.abilities.snapshot = snapshot;
        let config = EngineConfig { prefill_chunk: 4, max_draft: 0, ..EngineConfig::default() };
        let mut bench = Bench::timed(fake, config, STEP, CHEAP);
        let first = bench.ready(10);
        let run = bench.generate(first, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(120) });
        // Both fit when they begin, and the run grows meanwhile.
        let prompts = ["a", "b"].map(|name| Tenant { name: name.into(), ..Tenant::default() });
        let mut replies: Vec<(SessionId, Reply)> = prompts
            .into_iter()
            .zip([135, 135])
            .map(|(tenant, n)| {
                let id = bench.open_for(tenant, Priority::Normal);
                (id, bench.prefill(id, n))
            })
            .collect();
        let mut finish = None;
        bench.until(|bench| {
            finish = drain(&run).finish.or(finish);
            replies.retain_mut(|(id, reply)| {
                let Ok(answer) = reply.try_recv() else { return true };
                assert!(answer.is_ok(), "snapshots {snapshot}: {answer:?}");
                bench.close(*id);
                false
            });
            replies.is_empty() && finish.is_some()
        });
        assert_eq!(finish, Some(Finish::Length), "snapshots {snapshot}");
        assert_eq!(bench.metrics.preempted.get(), 0);
        assert_eq!(bench.metrics.parked.get() > 0, snapshot, "somebody gave way");
        assert!(bench.clock.now_seconds() < 5, "and nobody waited for it");
    }
}
