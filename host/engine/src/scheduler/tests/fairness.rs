//! Whose tokens come first when there is not enough for all.

use super::*;
use crate::clock::Clock;

fn tenant(name: &str, weight: u32) -> Tenant {
    Tenant { name: name.into(), weight, ..Tenant::default() }
}

fn few_sequences(sequences: u32) -> Bench {
    let mut fake = Fake::default();
    fake.limits.sequences = sequences;
    (fake.limits.kv_cells, fake.limits.sequence_tokens) = (100_000, 100_000);
    Bench::timed(fake, EngineConfig { prefill_chunk: 32, max_draft: 0, ..EngineConfig::default() }, STEP, CHEAP)
}

fn endless() -> GenerateOptions {
    GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(50_000) }
}

/// Long runs for a tenant.
fn runs(bench: &mut Bench, tenant: &Tenant, priority: Priority, n: usize) -> Vec<Reader> {
    let ids: Vec<_> = (0..n).map(|_| bench.open_for(tenant.clone(), priority)).collect();
    for &id in &ids {
        let mut reply = bench.prefill(id, 4);
        bench.until(|_| reply.try_recv().is_ok());
    }
    ids.into_iter().map(|id| bench.generate(id, endless())).collect()
}

/// Steps so often, taking out what comes, and counts each reader's tokens. None ends.
fn count(bench: &mut Bench, readers: &[&Reader], steps: usize) -> Vec<usize> {
    let mut counts = vec![0; readers.len()];
    for _ in 0..steps {
        assert_ne!(bench.scheduler.step(), Progress::Idle);
        for (count, reader) in counts.iter_mut().zip(readers) {
            let all = drain(reader);
            assert_eq!(all.finish, None);
            *count += all.tokens.len();
        }
    }
    counts
}

#[test]
fn a_tenant_with_one_run_is_not_kept_out_by_one_with_many() {
    let mut bench = few_sequences(4);
    let many = runs(&mut bench, &tenant("many", 1), Priority::Normal, 8);
    let mut all: Vec<&Reader> = many.iter().collect();
    count(&mut bench, &all, 500);
    let one = bench.open_for(tenant("one", 1), Priority::Normal);
    let mut reply = bench.prefill(one, 4);
    let begin = bench.fake.fills().len();
    bench.until(|_| reply.try_recv().is_ok());
    let waited = bench.fake.fills().len() - begin;
    assert!(waited <= 80, "{waited} steps: 256 tokens of four runs, and little more");
    let run = bench.generate(one, endless());
    all.push(&run);
    let counts = count(&mut bench, &all, 2000);
    let (of_one, of_many) = (counts[8], counts[..8].iter().sum::<usize>());
    assert!(of_one > 1900, "{counts:?}");
    assert!(of_many > 5500, "the others keep their places: {counts:?}");
    assert!(counts.iter().all(|&n| n > 0), "nobody starves: {counts:?}");
    assert_eq!(bench.metrics.preempted.get(), 0);
}

/// Steps beside a run of the tenant `one`, with something done before each, and gives the
/// times of the steps, in milliseconds.
fn times_beside(bench: &mut Bench, mut before_each: impl FnMut(&mut Bench)) -> Vec<u128> {
    let run = runs(bench, &tenant("one", 1), Priority::Normal, 1);
    let mut times = Vec::new();
    for _ in 0..2000 {
        before_each(bench);
        let before = bench.clock.now();
        count(bench, &[&run[0]], 1);
        times.push((bench.clock.now() - before).as_millis());
    }
    times
}

/// Has `hog` begin one long prompt after another beside a run of somebody else. Gives the
/// times of the steps, and how many prompts were computed.
fn times_beside_prompts_of(bench: &mut Bench, hog: &Tenant) -> (Vec<u128>, usize) {
    let mut asked = 0;
    let mut prompt = |bench: &mut Bench| {
        let id = bench.open_for(hog.clone(), Priority::Normal);
        asked += 1;
        // None begins as another one does.
        let tokens = format!("{asked:04}").bytes().cycle().map(u32::from).take(600).collect();
        let (reply, result) = oneshot::channel();
        bench.scheduler.handle(Command::Prefill { id, tokens, reply });
        (id, result)
    };
    let (mut id, mut reply) = prompt(bench);
    let mut done = 0;
    let times = times_beside(bench, |bench| {
        if reply.try_recv().is_ok() {
            done += 1;
            bench.close(id);
            (id, reply) = prompt(bench);
        }
    });
    (times, done)
}

fn longer(times: &[u128], than: u128) -> usize {
    times.iter().filter(|time| **time > than).count()
}

#[test]
fn prompts_of_another_tenant_make_few_steps_long() {
    let mut bench = few_sequences(64);
    let (times, done) = times_beside_prompts_of(&mut bench, &tenant("hog", 1));
    // Ten without a prompt, sixteen with a chunk of one.
    assert!(longer(&times[..20], 14) >= 1, "what is short is computed soon: {times:?}");
    let later = &times[200..];
    assert!(longer(later, 15) <= later.len() / 100, "{times:?}");
    assert!(longer(later, 12) > later.len() * 8 / 10, "what is spare is used: {times:?}");
    assert!(done > 30, "600 tokens, some 14 of them in each step: {done}");
}

#[test]
fn weight_lets_a_tenant_hold_others_up_for_longer() {
    let [few, many] = [1, 10].map(|weight| {
        let (times, _) = times_beside_prompts_of(&mut few_sequences(64), &tenant("hog", weight));
        longer(&times, 15)
    });
    assert!(many > 4 * few, "{few} and {many} steps");
}

#[test]
fn copies_of_states_of_another_tenant_make_few_steps_long() {
    let mut bench = few_sequences(64);
    let hog = tenant("hog", 1);
    let id = bench.open_for(hog.clone(), Priority::Normal);
    let mut filled = bench.prefill(id, 32_000);
    bench.until(|_| filled.try_recv().is_ok());
    let (mut saving, mut saved) = (None, 0);
    let save = |bench: &mut Bench, saving: &mut Option<oneshot::Receiver<Result<(), Error>>>, saved: &mut usize| {
        if saving.as_mut().is_some_and(|saving| saving.try_recv().is_err()) {
            return;
        }
        *saved += usize::from(saving.is_some());
        let (reply, result) = oneshot::channel();
        bench.scheduler.handle(copying(id, CopyTo::Save { name: "n".into() }, reply));
        *saving = Some(result);
    };
    let times = times_beside(&mut bench, |bench| save(bench, &mut saving, &mut saved));
    assert!(longer(&times, 50) <= times.len() / 100, "a hundred each: {times:?}");
    assert!((2..=15).contains(&saved), "{saved}");
    // The run is over.
    bench.close(SessionId(2));
    for _ in 0..100 {
        save(&mut bench, &mut saving, &mut saved);
        bench.scheduler.step();
    }
    assert!(saved > 100, "nobody waits for it: {saved}");
}

#[test]
fn a_tenant_waits_for_its_own_prompts() {
    let mut bench = few_sequences(64);
    let (times, _) = times_beside_prompts_of(&mut bench, &tenant("one", 1));
    assert!(times.iter().filter(|time| **time > 14).count() > times.len() * 9 / 10, "{times:?}");
}

#[test]
fn prompts_are_computed_in_turn_by_weight() {
    let mut bench = few_sequences(32);
    let heavy = tenant("heavy", 3);
    let light = tenant("light", 1);
    let mut replies = Vec::new();
    for _ in 0..10 {
        for tenant in [&light, &heavy] {
            let id = bench.open_for(tenant.clone(), Priority::Normal);
            replies.push((tenant.name.clone(), bench.prefill(id, 300)));
        }
    }
    let mut done: Vec<Arc<str>> = Vec::new();
    while done.len() < 8 {
        bench.scheduler.step();
        replies.retain_mut(|(name, reply)| {
            let ended = reply.try_recv().is_ok();
            if ended {
                done.push(Arc::clone(name));
            }
            !ended
        });
    }
    let of_heavy = done.iter().filter(|name| &***name == "heavy").count();
    assert!((5..=7).contains(&of_heavy), "three of four: {done:?}");
}

#[test]
fn somebody_at_the_screen_does_not_wait_for_background_work() {
    let mut bench = few_sequences(2);
    let own = tenant("t", 1);
    let background = runs(&mut bench, &own, Priority::Background, 4);
    let all: Vec<&Reader> = background.iter().collect();
    count(&mut bench, &all, 100);
    let id = bench.open_for(own.clone(), Priority::Interactive);
    let mut reply = bench.prefill(id, 4);
    let begin = bench.fake.fills().len();
    bench.until(|_| reply.try_recv().is_ok());
    let waited = bench.fake.fills().len() - begin;
    assert!(waited <= 20, "{waited} steps");
    // What was raised later counts as well.
    let other = bench.open_for(own, Priority::Background);
    bench.scheduler.handle(Command::Prioritise { id: other, priority: Priority::Interactive });
    let mut reply = bench.prefill(other, 4);
    let begin = bench.fake.fills().len();
    bench.until(|_| reply.try_recv().is_ok());
    assert!(bench.fake.fills().len() - begin <= 20);
}

#[test]
fn of_runs_that_cannot_move_the_lowest_priority_gives_way() {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 100;
    let mut bench = Bench::new(fake, EngineConfig::default());
    let own = tenant("t", 1);
    let low = bench.open_for(own.clone(), Priority::Background);
    let high = bench.open_for(own, Priority::Interactive);
    for id in [low, high] {
        let mut reply = bench.prefill(id, 40);
        bench.until(|_| reply.try_recv().is_ok());
    }
    let first = bench.generate(low, GenerateOptions::greedy(50));
    bench.clock.advance(Duration::from_millis(1));
    let second = bench.generate(high, GenerateOptions::greedy(50));
    let mut end = None;
    bench.until(|_| {
        end = drain(&second).finish.or(end);
        end.is_some()
    });
    assert_eq!(end, Some(Finish::Length), "the younger one has the higher priority");
    assert_eq!(bench.metrics.parked.get(), 1);
    bench.close(high);
    bench.settle();
    assert_eq!(drain(&first).finish, Some(Finish::Length), "and the other one goes on afterwards");
}

/// Runs that hold to their answers whatever the steps take: the reads of all of them
/// until each has ended.
fn ends(bench: &mut Bench, readers: &[Reader], within: usize) -> Vec<(usize, Option<Finish>)> {
    let mut ends = vec![(0, None); readers.len()];
    for _ in 0..within {
        bench.scheduler.step();
        for ((tokens, finish), reader) in ends.iter_mut().zip(readers) {
            let all = drain(reader);
            *tokens += all.tokens.len();
            *finish = all.finish.or(*finish);
        }
        if ends.iter().all(|(_, finish)| finish.is_some()) {
            break;
        }
    }
    ends
}

#[test]
fn runs_of_one_owner_take_turns_however_slow_the_steps_are() {
    let mut fake = Fake::default();
    fake.limits.sequences = 4;
    (fake.limits.kv_cells, fake.limits.sequence_tokens) = (100_000, 100_000);
    let config = EngineConfig { max_draft: 0, ..EngineConfig::default() };
    // A second a token: a run of fifty takes longer than anybody may wait.
    let mut bench = Bench::timed(fake, config, Duration::from_secs(1), CHEAP);
    let own = tenant("t", 1);
    let first = bench.open_for(own, Priority::Normal);
    let mut reply = bench.prefill(first, 4);
    bench.until(|_| reply.try_recv().is_ok());
    // Choices of one request: they begin where its prompt ends, and have their first
    // token at once.
    let ids: Vec<SessionId> = (0..12).map(|_| bench.fork(first).unwrap()).collect();
    let options = GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(50) };
    let readers: Vec<Reader> = ids.into_iter().map(|id| bench.generate(id, options.clone())).collect();
    let ends = ends(&mut bench, &readers, 2000);
    assert!(ends.iter().all(|end| *end == (50, Some(Finish::Length))), "{ends:?}");
    assert_eq!(bench.metrics.preempted.get(), 0);
    assert!(bench.metrics.parked.get() >= 8, "those with a place gave it up: {}", bench.metrics.parked.get());
}

#[test]
fn who_reads_nothing_keeps_no_place_from_others() {
    for snapshot in [true, false] {
        let mut fake = Fake::default();
        fake.limits.sequences = 3;
        fake.abilities.snapshot = snapshot;
        (fake.limits.kv_cells, fake.limits.sequence_tokens) = (100_000, 100_000);
        let config = EngineConfig { outbox_tokens: 16, max_draft: 0, ..EngineConfig::default() };
        let mut bench = Bench::timed(fake, config, STEP, CHEAP);
        let stalled = runs(&mut bench, &tenant("silent", 1), Priority::Normal, 3);
        while bench.scheduler.step() == Progress::Worked {}
        let id = bench.open_for(tenant("other", 1), Priority::Normal);
        let mut reply = bench.prefill(id, 4);
        let begin = bench.fake.fills().len();
        bench.until(|_| reply.try_recv().is_ok());
        assert!(bench.fake.fills().len() - begin <= 3, "at once, and not when others give up");
        let run = bench.generate(id, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(12) });
        bench.until(|_| drain(&run).finish.is_some());
        bench.close(id);
        // And who was silent finds the answer as it would have been.
        let mut silent = vec![0; 3];
        for _ in 0..200 {
            bench.scheduler.step();
            for (count, reader) in silent.iter_mut().zip(&stalled) {
                *count += drain(reader).tokens.len();
            }
        }
        assert!(silent.iter().all(|&n| n > 100), "snapshots {snapshot}: {silent:?}");
        assert_eq!(bench.metrics.preempted.get(), 0);
    }
}

#[test]
fn a_tenant_has_no_more_runs_at_a_time_than_it_may() {
    let mut bench = few_sequences(8);
    let limited = Tenant { max_runs: 2, ..tenant("limited", 1) };
    let ids: Vec<_> = (0..5).map(|_| bench.open_for(limited.clone(), Priority::Normal)).collect();
    for &id in &ids {
        let mut reply = bench.prefill(id, 4);
        bench.until(|_| reply.try_recv().is_ok());
    }
    let readers: Vec<Reader> = ids.iter().map(|&id| bench.generate(id, endless())).collect();
    let all: Vec<&Reader> = readers.iter().collect();
    // Each has its first token from the logits of its prompt.
    let going = |counts: &[usize]| -> Vec<bool> { counts.iter().map(|&n| n > 1).collect() };
    let counts = count(&mut bench, &all, 100);
    assert_eq!(going(&counts), [true, true, false, false, false], "{counts:?}");
    // Those that are held back keep no place from others.
    let others = runs(&mut bench, &tenant("other", 1), Priority::Normal, 6);
    let of_others: Vec<&Reader> = others.iter().collect();
    let counts = count(&mut bench, &of_others, 100);
    assert!(counts.iter().all(|&n| n > 90), "{counts:?}");
    // When one is over the next one goes on.
    bench.close(ids[0]);
    count(&mut bench, &all[1..], 50);
    let counts = count(&mut bench, &all[1..], 50);
    assert_eq!(going(&counts), [true, true, false, false], "{counts:?}");
}
