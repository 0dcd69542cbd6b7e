//! Room that tenants leave to each other.

use super::*;
use crate::clock::Clock;

const CELLS: u32 = 4096;
/// What of these is left to others.
const LEFT: u32 = 512;

fn tenant(name: &str) -> Tenant {
    Tenant { name: name.into(), ..Tenant::default() }
}

fn few_cells() -> Bench {
    let mut fake = Fake::default();
    (fake.limits.kv_cells, fake.limits.sequences, fake.limits.sequence_tokens) = (CELLS, 64, CELLS);
    Bench::timed(fake, EngineConfig { max_draft: 0, ..EngineConfig::default() }, STEP, CHEAP)
}

/// A session of a tenant that has computed `n` tokens of its own.
fn filled(bench: &mut Bench, tenant: &str, n: usize) -> SessionId {
    let id = bench.open_for(self::tenant(tenant), Priority::Normal);
    let tokens = format!("{:04}", id.0).bytes().cycle().map(u32::from).take(n).collect();
    bench.feed(id, tokens);
    id
}

fn is_placed(bench: &Bench, id: SessionId) -> bool {
    bench.scheduler.sequences[&id].seq.is_some()
}

#[test]
fn who_takes_all_it_can_leaves_room_for_a_question_of_another() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    for _ in 0..20 {
        filled(&mut bench, "hog", 300);
    }
    assert!(bench.scheduler.cells.available() >= LEFT, "{}", bench.scheduler.cells.available());
    assert!(bench.scheduler.cells.available() < LEFT + 300, "no more than that");
    let parked = bench.metrics.parked.get();
    let asked = filled(&mut bench, "other", 400);
    assert_eq!(bench.metrics.parked.get(), parked, "nobody had to go for it");
    bench.close(asked);
    // Who has its share and no more need not leave any.
    filled(&mut bench, "other", LEFT as usize - 50);
    assert_eq!(bench.metrics.parked.get(), parked);
    assert!(bench.scheduler.cells.available() < LEFT);
    // Nor does it when nobody has come for a long time.
    bench.clock.advance(Duration::from_secs(61));
    for _ in 0..3 {
        filled(&mut bench, "hog", 300);
    }
    assert!(bench.scheduler.cells.available() < LEFT, "{}", bench.scheduler.cells.available());
}

#[test]
fn a_prompt_that_needs_nearly_everything_has_it() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let begin = bench.clock.now();
    let id = filled(&mut bench, "hog", CELLS as usize - 100);
    assert!(is_placed(&bench, id) && bench.clock.now() - begin < Duration::from_secs(10));
}

#[test]
fn a_prompt_that_leaves_room_is_not_refused_for_it() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let busy = filled(&mut bench, "hog", 3400);
    let run = bench.generate(busy, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(100) });
    let begin = bench.clock.now();
    // Nobody can be parked for it, and another run of the same tenant has its turn.
    filled(&mut bench, "hog", 300);
    let waited = bench.clock.now() - begin;
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    drop(run);
}

#[test]
fn idle_sessions_of_who_holds_most_are_parked_first() {
    let mut bench = few_cells();
    let oldest = filled(&mut bench, "other", 400);
    let hogs: Vec<SessionId> = (0..20).map(|_| filled(&mut bench, "hog", 300)).collect();
    assert!(is_placed(&bench, oldest));
    assert!(!is_placed(&bench, hogs[0]) && is_placed(&bench, hogs[19]), "among those the oldest");
    assert!(bench.metrics.parked.get() > 5);
}

#[test]
fn what_is_kept_for_later_is_dropped_where_it_would_hold_others_up_again() {
    for owes in [false, true] {
        let mut bench = few_cells();
        let id = filled(&mut bench, "hog", 2000);
        let other = filled(&mut bench, "other", 8);
        let run = bench.generate(other, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(1000) });
        if owes {
            let owner = bench.scheduler.sequences[&id].owner.clone();
            let now = bench.clock.now();
            bench.scheduler.company.saw(&owner, Duration::from_secs(1), now);
        }
        bench.close(id);
        for _ in 0..10 {
            bench.scheduler.step();
        }
        assert_eq!(bench.scheduler.prefixes.ram_bytes() == 0, owes);
        assert!(bench.scheduler.cells.idle() < LEFT, "they are not in the way of others");
        drop(run);
    }
}

#[test]
fn a_run_that_was_parked_goes_on_though_its_tenant_owes_and_others_may_come() {
    let mut bench = few_cells();
    let id = filled(&mut bench, "hog", 1000);
    let run = bench.generate(id, GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(50) });
    let owner = bench.scheduler.sequences[&id].owner.clone();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let now = bench.clock.now();
    bench.scheduler.company.saw(&owner, Duration::from_secs(1), now);
    assert!(bench.scheduler.park(id));
    let begin = bench.clock.now();
    bench.until(|_| drain(&run).finish.is_some());
    assert!(bench.clock.now() - begin < Duration::from_secs(3));
    assert_eq!(bench.metrics.preempted.get(), 0);
}

#[test]
fn runs_of_others_do_not_go_for_room_that_is_to_be_left_to_them() {
    let mut bench = few_cells();
    let endless = || GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(2000) };
    let busy = filled(&mut bench, "hog", 2700);
    let mut runs = vec![bench.generate(busy, endless())];
    for _ in 0..3 {
        let id = filled(&mut bench, "other", 100);
        runs.push(bench.generate(id, endless()));
    }
    let steps = |bench: &mut Bench, n: usize| {
        for _ in 0..n {
            bench.scheduler.step();
            runs.iter().for_each(|run| drop(drain(run)));
        }
    };
    // They were served more.
    steps(&mut bench, 130);
    let id = bench.open_for(tenant("hog"), Priority::Normal);
    let mut reply = bench.prefill(id, 300);
    steps(&mut bench, 20);
    assert_eq!(bench.metrics.parked.get(), 0, "nobody went for it");
    steps(&mut bench, 2000);
    assert!(reply.try_recv().is_ok_and(|done| done.is_ok()), "it has its turn");
}

#[test]
fn a_session_that_has_nearly_everything_goes_on() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let id = filled(&mut bench, "hog", 3590);
    let begin = bench.clock.now();
    for _ in 0..10 {
        bench.feed(id, vec![u32::from(b'a'); 3]);
    }
    assert!(bench.clock.now() - begin < Duration::from_secs(1), "{:?}", bench.clock.now() - begin);
}

#[test]
fn who_waits_for_what_a_prompt_holds_does_not_wait_for_it_token_by_token() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let id = bench.open_for(tenant("hog"), Priority::Normal);
    let _reply = bench.prefill(id, 3000);
    bench.scheduler.step();
    let owner = bench.scheduler.sequences[&id].owner.clone();
    let now = bench.clock.now();
    bench.scheduler.company.saw(&owner, Duration::from_secs(1), now);
    let begin = bench.clock.now();
    filled(&mut bench, "other", 3000);
    let waited = bench.clock.now() - begin;
    assert!(waited < Duration::from_secs(4), "{waited:?}");
}

#[test]
fn a_session_that_cannot_be_parked_is_passed_over() {
    let mut bench = few_cells();
    let large = filled(&mut bench, "hog", 2500);
    let small = filled(&mut bench, "other", 1000);
    // What a token's state takes is known from then on.
    let any = filled(&mut bench, "other", 8);
    bench.park(any).unwrap();
    let bytes = bench.scheduler.bytes_a_token * 1500.0;
    bench.scheduler.budget = super::super::snapshot::Budget::new(bytes as u64);
    filled(&mut bench, "third", 800);
    assert!(is_placed(&bench, large) && !is_placed(&bench, small));
}

#[test]
fn many_tenants_may_have_what_is_left_to_them() {
    let mut bench = few_cells();
    for n in 0..20 {
        let id = filled(&mut bench, &format!("t{n}"), 8);
        bench.close(id);
    }
    for _ in 0..12 {
        filled(&mut bench, "hog", 300);
    }
    let parked = bench.metrics.parked.get();
    filled(&mut bench, "t3", 300);
    assert_eq!(bench.metrics.parked.get(), parked, "its share is less, and it is a question");
}

#[test]
fn several_prompts_at_once_leave_room_together() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    for _ in 0..10 {
        filled(&mut bench, "hog", 300);
    }
    let mut replies: Vec<Reply> = (0..8)
        .map(|_| {
            let id = bench.open_for(tenant("hog"), Priority::Normal);
            bench.prefill(id, 200)
        })
        .collect();
    let mut least = CELLS;
    bench.until(|bench| {
        least = least.min(bench.scheduler.cells.available());
        replies.retain_mut(|reply| reply.try_recv().is_err());
        replies.is_empty()
    });
    assert!(least >= LEFT, "{least}");
}
