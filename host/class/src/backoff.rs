//! How long is waited before a process is started again.

use std::time::Duration;

/// Before the first time.
const SHORTEST: Duration = Duration::from_millis(500);
/// However often it has ended.
const LONGEST: Duration = Duration::from_secs(30);
/// A process that has lived for so long was in order.
const HEALTHY: Duration = Duration::from_secs(60);

/// Doubles with each process that ends soon, and begins anew with one that does not.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// The pause after a process that has lived for so long.
    pub(crate) fn after(&mut self, lived: Duration) -> Duration {
        if lived >= HEALTHY {
            self.next = SHORTEST;
        }
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_a_bound_and_begins_anew() {
        let mut backoff = Backoff::new();
        let soon = Duration::from_secs(1);
        let pauses: Vec<u128> = (0..8).map(|_| backoff.after(soon).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff.after(HEALTHY), SHORTEST);
        assert_eq!(backoff.after(soon), SHORTEST * 2);
    }
}
