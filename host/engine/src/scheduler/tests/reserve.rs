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
fn sequences_are_left_as_well() {
    let mut bench = few_cells();
    let asked = filled(&mut bench, "other", 8);
    bench.close(asked);
    let mut hogs: Vec<SessionId> = (0..100).map(|_| filled(&mut bench, "hog", 4)).collect();
    hogs.retain(|id| is_placed(&bench, *id));
    assert!((60..=61).contains(&hogs.len()), "{}", hogs.len());
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
