use std::thread;

use proptest::prelude::*;

use super::*;

/// What one thread does to guards of its own.
#[derive(Debug, Clone)]
enum Step {
    Hold(u64),
    Grow(u64),
    Shrink(u64),
    Resize(u64),
    Split(u64),
    Drop,
}

fn step() -> impl Strategy<Value = Step> {
    let amount = prop_oneof![4 => 0_u64..60, 1 => Just(u64::MAX)];
    prop_oneof![
        amount.clone().prop_map(Step::Hold),
        amount.clone().prop_map(Step::Grow),
        amount.clone().prop_map(Step::Shrink),
        amount.clone().prop_map(Step::Resize),
        amount.prop_map(Step::Split),
        Just(Step::Drop),
    ]
}

fn apply(step: &Step, quota: &Arc<Quota>, held: &mut Vec<Held>) {
    let last = held.last_mut();
    // A refusal is one of the outcomes; the sums are what is tested.
    let _ = match (step, last) {
        (Step::Hold(amount), _) => quota.try_hold(*amount).map(|guard| held.push(guard)),
        (Step::Grow(by), Some(guard)) => guard.grow(*by),
        (Step::Resize(to), Some(guard)) => guard.resize(*to),
        (Step::Shrink(by), Some(guard)) => {
            guard.shrink(*by);
            Ok(())
        }
        (Step::Split(amount), Some(guard)) => {
            let part = guard.split(*amount);
            held.push(part);
            Ok(())
        }
        (Step::Drop, Some(_)) => {
            held.pop();
            Ok(())
        }
        (_, None) => Ok(()),
    };
}

proptest! {
    #[test]
    fn many_threads_never_hold_more_than_the_limit_and_all_of_it_comes_back(
        limit in 0_u64..200,
        programs in prop::collection::vec(prop::collection::vec(step(), 0..80), 1..6),
    ) {
        let quota = Quota::new(Stock::Memory, limit);
        let kept: Vec<Vec<Held>> = thread::scope(|scope| {
            let run = |steps: &Vec<Step>| {
                let mut held = Vec::new();
                for step in steps {
                    apply(step, &quota, &mut held);
                    assert!(quota.used() <= limit, "{} of {limit} after {step:?}", quota.used());
                }
                held
            };
            let threads: Vec<_> = programs.iter().map(|steps| scope.spawn(move || run(steps))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let sum: u64 = kept.iter().flatten().map(Held::amount).sum();
        prop_assert_eq!(quota.used(), sum);
        drop(kept);
        prop_assert_eq!(quota.used(), 0);
    }
}

#[test]
fn a_refusal_takes_nothing_and_says_whether_waiting_helps() {
    let quota = Quota::new(Stock::Instances, 4);
    let mut held = quota.try_hold(3).unwrap();
    let busy = held.grow(2).unwrap_err();
    assert_eq!((busy.limit, busy.value, busy.retry_after), (Stock::Instances.into(), 4, Some(RETRY)));
    assert_eq!((held.amount(), quota.used()), (3, 3));
    assert_eq!(quota.try_hold(5).unwrap_err().retry_after, None);
}

#[test]
fn a_smaller_limit_takes_nothing_away_and_gives_nothing_more() {
    let quota = Quota::new(Stock::Handles, 10);
    let mut held = quota.try_hold(8).unwrap();
    quota.set_limit(5);
    assert!(quota.try_hold(1).is_err());
    held.shrink(4);
    let one = quota.try_hold(1).unwrap();
    assert!(quota.try_hold(1).is_err());
    drop((held, one));
    assert_eq!(quota.used(), 0);
}
