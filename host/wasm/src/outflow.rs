//! Bodies that come fast go out at a bounded rate.
//!
//! A component that answers without end costs its own CPU time little and the host's much:
//! each part of a body is handed on and written to a socket by threads that all tenants
//! share. So what a tenant's component sends in a second is bounded, far above what answers
//! of models take and far below what a machine can copy. Parts count for more than their
//! bytes, since many small ones cost more than a large one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What goes out in a second, in bytes.
const RATE: u64 = 64 << 20;
/// What goes out at once after a while of less.
const BURST: u64 = 4 << 20;
/// What a part costs besides its bytes.
const PART: u64 = 4 << 10;

/// What a component has sent for one tenant.
#[derive(Debug, Default)]
pub(crate) struct Outflow(Mutex<Option<Instant>>);

impl Outflow {
    /// Notes a part that goes out, and says how long its body has to wait before the next
    /// one. Counted as the generic cell rate algorithm does (ITU-T I.371): one time is kept,
    /// at which all that was sent would have been at the rate.
    pub(crate) fn sent(&self, bytes: u64, now: Instant) -> Duration {
        let cost = |amount: u64| Duration::from_secs_f64(amount as f64 / RATE as f64);
        let mut paid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = paid.map_or(now, |paid| paid.max(now));
        let until = from + cost(bytes.saturating_add(PART));
        *paid = Some(until);
        until.saturating_duration_since(now).saturating_sub(cost(BURST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_fast_goes_out_at_the_rate_and_the_rest_at_once() {
        let outflow = Outflow::default();
        let begin = Instant::now();
        assert!(outflow.sent(1 << 20, begin).is_zero(), "an answer of a megabyte is no flood");
        // A writer that is never held up otherwise, for ten seconds.
        let (mut now, mut sent) = (begin, 0);
        while now < begin + Duration::from_secs(10) {
            now += outflow.sent(60 << 10, now) + Duration::from_micros(1);
            sent += 64 << 10;
        }
        let rate = sent as f64 / 10.0 / RATE as f64;
        assert!((0.9..1.2).contains(&rate), "{rate}");
        // Tokens of many streams are never late.
        let later = now + Duration::from_secs(1);
        let steady = (0..40_000).map(|n| outflow.sent(300, later + Duration::from_micros(100) * n));
        assert!(steady.max().unwrap().is_zero());
    }
}
