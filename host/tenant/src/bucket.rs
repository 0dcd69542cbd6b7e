//! What comes again with every minute: a bucket that fills evenly, holds a
//! minute's worth, and may be in debt, because some things are only counted when
//! they are done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::limit::{Exceeded, Limit, Rate, UNLIMITED};

/// Nanoseconds of a minute. The level is counted in such parts of one thing, so
/// that a nanosecond under a limit of N fills it by exactly N of them and no
/// rounding adds up.
const PARTS: i128 = 60_000_000_000;

/// A limit for a minute.
///
/// After a pause a minute's worth may be used at once, so over any span of T
/// minutes at most T + 1 times the limit is taken, and over a long time the
/// limit. What is charged without asking may exceed this by what was under way
/// when the bucket became empty; it is a debt that later minutes pay.
#[derive(Debug)]
pub struct Bucket {
    rate: Rate,
    clock: Arc<dyn Clock>,
    /// A copy of the level's limit, to see without a lock that there is none.
    limit: AtomicU64,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    limit: u64,
    /// In parts; below zero for a debt.
    parts: i128,
    /// When `parts` was right.
    at: Duration,
}

impl Level {
    fn full(limit: u64) -> i128 {
        i128::from(limit).saturating_mul(PARTS)
    }

    fn fill(&mut self, now: Duration) {
        let passed = i128::try_from(now.saturating_sub(self.at).as_nanos()).unwrap_or(i128::MAX);
        let more = passed.saturating_mul(i128::from(self.limit));
        self.parts = self.parts.saturating_add(more).min(Self::full(self.limit));
        self.at = self.at.max(now);
    }

    /// Until there are so many parts; None if there never are.
    fn until(&self, wanted: i128) -> Option<Duration> {
        if wanted > Self::full(self.limit) {
            return None;
        }
        let missing = wanted.saturating_sub(self.parts).max(0);
        let limit = i128::from(self.limit);
        let nanoseconds = missing.checked_div(limit)?.saturating_add(i128::from(missing % limit > 0));
        Some(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }
}

impl Bucket {
    /// A full bucket, for `limit` in a minute, in the unit of `rate`.
    #[must_use]
    pub fn new(rate: Rate, limit: u64, clock: Arc<dyn Clock>) -> Self {
        let level = Mutex::new(Level { limit, parts: Level::full(limit), at: clock.now() });
        Self { rate, clock, limit: AtomicU64::new(limit), level }
    }

    /// The limit for a minute.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets another limit. What was used before stays used, and a debt a debt.
    pub fn set_limit(&self, limit: u64) {
        let mut level = self.filled();
        if limit == level.limit {
            return;
        }
        level.parts = if level.limit == UNLIMITED {
            // Nothing was counted until now.
            Level::full(limit)
        } else {
            let used = Level::full(level.limit).saturating_sub(level.parts);
            Level::full(limit).saturating_sub(used)
        };
        level.limit = limit;
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Takes `amount` if so much is there: for what is known beforehand.
    ///
    /// # Errors
    /// There is less; nothing was taken.
    pub fn take(&self, amount: u64) -> Result<(), Exceeded> {
        if amount == 0 || self.limit() == UNLIMITED {
            return Ok(());
        }
        let wanted = i128::from(amount).saturating_mul(PARTS);
        let mut level = self.filled();
        if level.parts < wanted {
            return Err(self.exceeded(&level, wanted));
        }
        level.parts -= wanted;
        Ok(())
    }

    /// Whether there is anything: asked before work whose amount is only known
    /// when it is done, see [`Bucket::charge`].
    ///
    /// # Errors
    /// The bucket is empty or in debt.
    pub fn check(&self) -> Result<(), Exceeded> {
        if self.limit() == UNLIMITED {
            return Ok(());
        }
        let level = self.filled();
        if level.parts < PARTS { Err(self.exceeded(&level, PARTS)) } else { Ok(()) }
    }

    /// Takes `amount`, though it may not be there.
    pub fn charge(&self, amount: u64) {
        if amount == 0 || self.limit() == UNLIMITED {
            return;
        }
        let mut level = self.filled();
        level.parts = level.parts.saturating_sub(i128::from(amount).saturating_mul(PARTS));
    }

    /// Whole things that are there, below zero for a debt.
    #[must_use]
    pub fn left(&self) -> i128 {
        self.filled().parts.div_euclid(PARTS)
    }

    fn exceeded(&self, level: &Level, wanted: i128) -> Exceeded {
        Exceeded { limit: Limit::Rate(self.rate), value: level.limit, retry_after: level.until(wanted) }
    }

    fn filled(&self) -> MutexGuard<'_, Level> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        level.fill(self.clock.now());
        level
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::ManualClock;

    fn bucket(limit: u64) -> (Arc<ManualClock>, Bucket) {
        let clock = Arc::new(ManualClock::default());
        (Arc::clone(&clock), Bucket::new(Rate::TokensOut, limit, clock))
    }

    proptest! {
        #[test]
        fn what_is_taken_in_any_span_stays_within_the_limit(
            limit in 1_u64..5_000,
            steps in prop::collection::vec((0_u64..20_000, 1_u64..400), 1..200),
        ) {
            let (clock, bucket) = bucket(limit);
            let mut taken: Vec<(Duration, u64)> = Vec::new();
            for (milliseconds, amount) in steps {
                clock.advance(Duration::from_millis(milliseconds));
                if bucket.take(amount).is_ok() {
                    taken.push((clock.now(), amount));
                }
            }
            for from in 0..taken.len() {
                let mut sum = 0;
                for (at, amount) in &taken[from..] {
                    sum += u128::from(*amount);
                    let span = (*at - taken[from].0).as_nanos();
                    let allowed = u128::from(limit) * (span + PARTS as u128);
                    prop_assert!(sum * PARTS as u128 <= allowed, "{sum} in {span} ns under {limit}");
                }
            }
        }

        #[test]
        fn what_is_charged_afterwards_stays_within_the_limit_over_time(
            limit in 1_u64..5_000,
            charges in prop::collection::vec(1_u64..3_000, 1..100),
        ) {
            let (clock, bucket) = bucket(limit);
            let mut sum = 0;
            for amount in &charges {
                while let Err(exceeded) = bucket.check() {
                    let wait = exceeded.retry_after.unwrap();
                    prop_assert!(!wait.is_zero());
                    clock.advance(wait);
                }
                bucket.charge(*amount);
                sum += u128::from(*amount);
            }
            // A minute's worth at the beginning, and the last one may be a debt.
            let before_last = sum - u128::from(*charges.last().unwrap());
            let allowed = u128::from(limit) * (clock.now().as_nanos() + PARTS as u128);
            prop_assert!(before_last * PARTS as u128 <= allowed, "{before_last} under {limit}");
        }

        #[test]
        fn it_is_enough_to_wait_as_long_as_is_said(limit in 1_u64..100_000, debt in 0_u64..300_000, amount in 1_u64..100_000) {
            let (clock, bucket) = bucket(limit);
            bucket.charge(debt);
            if let Err(exceeded) = bucket.take(amount) {
                let Some(wait) = exceeded.retry_after else {
                    prop_assert!(amount > limit);
                    return Ok(());
                };
                clock.advance(wait - Duration::from_nanos(1));
                prop_assert!(bucket.take(amount).is_err());
                clock.advance(Duration::from_nanos(1));
                prop_assert!(bucket.take(amount).is_ok());
            }
        }
    }

    #[test]
    fn threads_share_one_minute() {
        let (_, bucket) = bucket(1_000);
        let taken: usize = thread::scope(|scope| {
            let run = || (0..500).filter(|_| bucket.take(1).is_ok()).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1_000);
    }

    #[test]
    fn another_limit_forgives_no_debt() {
        let (clock, bucket) = bucket(60);
        bucket.charge(90);
        bucket.set_limit(600);
        assert_eq!(bucket.left(), 510);
        bucket.set_limit(60);
        assert_eq!(bucket.left(), -30);
        clock.advance(Duration::from_secs(30));
        assert_eq!(bucket.left(), 0);
        bucket.set_limit(UNLIMITED);
        assert!(bucket.take(u64::MAX).is_ok() && bucket.check().is_ok());
        bucket.set_limit(5);
        assert_eq!(bucket.left(), 5);
    }

    #[test]
    fn no_amount_overflows() {
        let (clock, bucket) = bucket(u64::MAX - 1);
        for _ in 0..40 {
            bucket.charge(u64::MAX);
        }
        assert!(bucket.check().is_err());
        clock.advance(Duration::from_secs(u64::from(u32::MAX)));
        assert!(bucket.check().is_ok());
        let zero = Bucket::new(Rate::Requests, 0, clock);
        assert_eq!(zero.take(1).unwrap_err().retry_after, None);
    }
}
