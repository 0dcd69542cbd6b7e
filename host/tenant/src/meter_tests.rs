use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;

fn meter() -> (Arc<ManualClock>, Arc<Meter>) {
    let clock = Arc::new(ManualClock::default());
    (Arc::clone(&clock), Arc::new(Meter::new(Usage::default(), clock)))
}

fn cell_milliseconds(meter: &Meter) -> u64 {
    meter.snapshot().get(Counter::KvCellMilliseconds)
}

#[test]
fn cells_count_by_the_time_that_they_are_held() {
    let (clock, meter) = meter();
    let mut first = meter.hold_cells(100);
    clock.advance(Duration::from_secs(2));
    let second = meter.hold_cells(50);
    clock.advance(Duration::from_secs(1));
    first.set(10);
    drop(second);
    clock.advance(Duration::from_millis(500));
    assert_eq!(cell_milliseconds(&meter), 200_000 + 150_000 + 5_000);
    drop(first);
    clock.advance(Duration::from_secs(100));
    assert_eq!(cell_milliseconds(&meter), 355_000);
}

proptest! {
    #[test]
    fn looking_changes_nothing_and_no_fraction_is_lost(steps in prop::collection::vec((0_u64..3_000, 0_u64..50), 1..60)) {
        let (clock, meter) = meter();
        let mut held = meter.hold_cells(0);
        let mut before = 0;
        let (mut exact, mut cells) = (0_u128, 0_u64);
        for (nanoseconds, next) in steps {
            clock.advance(Duration::from_nanos(nanoseconds));
            exact += u128::from(nanoseconds) * u128::from(cells);
            let now = cell_milliseconds(&meter);
            prop_assert!(now >= before);
            before = now;
            held.set(next);
            cells = next;
        }
        // At each change less than a microsecond moves from one sum to the next.
        let error = exact.abs_diff(meter.cells().total * 1_000);
        prop_assert!(error < 60 * 50 * 1_000, "{error}");
    }
}

#[test]
fn counters_of_all_threads_are_added_and_stay_at_the_end() {
    let (_, meter) = meter();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| meter.add(Counter::TokensOut, 3)));
        }
    });
    assert_eq!(meter.snapshot().get(Counter::TokensOut), 120_000);
    meter.add(Counter::Errors, u64::MAX);
    meter.add(Counter::Errors, 1);
    assert_eq!(meter.snapshot().get(Counter::Errors), u64::MAX);
}

#[test]
fn names_are_told_apart() {
    let names: std::collections::BTreeSet<_> = Counter::all().map(Counter::name).collect();
    assert_eq!(names.len(), Counter::all().count());
}
