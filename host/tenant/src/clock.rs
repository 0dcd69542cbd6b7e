//! Time as quotas, keys and bills see it, so that their tests decide how it
//! passes.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Two clocks: one that never goes back, and the one on the wall.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since some fixed moment; never less than before.
    fn now(&self) -> Duration;

    /// The date, which somebody may set.
    fn date(&self) -> SystemTime;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn date(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that stands still until it is told otherwise, for tests here and in
/// the rooms that use this one. Its date begins with the Unix epoch.
#[derive(Debug, Default)]
pub struct ManualClock {
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// Lets time pass, on both clocks.
    pub fn advance(&self, by: Duration) {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn date(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.now()
    }
}
