//! Failures that come fast are answered late.
//!
//! A component that fails at once costs a connection's thread little each time, and a
//! client that asks it again at once can have that thread do nothing else. So once a
//! component has failed often in a short time, its next failures are told later, and who
//! waits for one asks for nothing meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures that are told at once.
const FREE: f64 = 50.0;
/// How many a second are forgotten.
const FORGOTTEN: f64 = 50.0;
/// How much later each one beyond those is told than the one before it,
const STEP: Duration = Duration::from_millis(2);
/// and how late at the most.
const LATEST: Duration = Duration::from_millis(250);

/// The failures of a component for one tenant.
#[derive(Debug, Default)]
pub(crate) struct Setback(Mutex<Option<Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    /// Those that were not forgotten by then.
    count: f64,
    at: Instant,
}

impl Setback {
    /// Notes a failure, and says how long it is to be kept back.
    pub(crate) fn failed(&self, now: Instant) -> Duration {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.map_or(0.0, |Failures { count, at }| {
            let forgotten = now.saturating_duration_since(at).as_secs_f64() * FORGOTTEN;
            (count - forgotten).max(0.0)
        });
        // More than what is late at the most would only be remembered for longer.
        let most = FREE + LATEST.as_secs_f64() / STEP.as_secs_f64();
        let count = (before + 1.0).min(most);
        *known = Some(Failures { count, at: now });
        STEP.mul_f64((count - FREE).max(0.0)).min(LATEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_failures_is_slowed_down_and_forgotten_soon() {
        let setback = Setback::default();
        let begin = Instant::now();
        let free = FREE as u32;
        assert!((0..free).all(|_| setback.failed(begin).is_zero()));
        assert_eq!(setback.failed(begin), STEP);
        let last = (0..10_000).map(|_| setback.failed(begin)).last();
        assert_eq!(last, Some(LATEST));
        let later = begin + Duration::from_secs(4);
        assert!(setback.failed(later).is_zero(), "it is forgotten");
        // One now and then is never late.
        let steady = (1..1000).map(|n| setback.failed(later + Duration::from_millis(25) * n));
        assert!(steady.max().unwrap().is_zero());
    }
}
