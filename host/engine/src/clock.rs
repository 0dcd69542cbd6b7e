//! Time as the scheduler sees it, so that its tests decide how it passes.

use std::time::{Duration, Instant};

/// A monotonic clock.
pub(crate) trait Clock {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
}

/// The machine's own clock.
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is told otherwise.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct ManualClock(std::sync::Arc<std::sync::Mutex<Duration>>);

#[cfg(test)]
impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }

    pub(crate) fn now_seconds(&self) -> u64 {
        self.now().as_secs()
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}
