//! Threads of this module's own, and how long their work may take.

use std::time::{Duration, Instant};

use nala_machine::ThreadClock;

use crate::error::Error;

/// For what hardly calls anything.
pub(super) const SMALL_STACK: usize = 256 << 10;
/// For compiling: the grammar library recurses over rules that refer to rules.
/// Only what is touched becomes memory, and all of it is given back with the thread.
pub(super) const DEEP_STACK: usize = 512 << 20;

/// Starts a thread that nobody waits for. It is as nice as the one that starts it, see
/// [`nala_machine::step_back`].
pub(super) fn spawn(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(body);
    thread.map(drop).map_err(|error| {
        tracing::error!(%error, thread = name, "a thread cannot be started");
        Error::Busy
    })
}

/// How many times as long as it may take on a CPU work may take by the clock on the wall:
/// threads that step back have little of a machine that has more to do than it can.
pub(super) const PATIENCE: u32 = 6;

/// The time of a piece of work on one thread.
#[derive(Debug)]
pub(super) struct Stopwatch {
    began: Instant,
    clock: ThreadClock,
    /// Where the thread's clock stood when it was first looked at.
    first: Option<Duration>,
}

/// How a time was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// The work took it.
    Worked,
    /// The machine had no more for it.
    Waited,
}

impl Stopwatch {
    /// Begins with the work of a thread. Nothing is asked of the system, since most work
    /// is over before somebody looks: what was done until then counts for nothing.
    pub(super) fn start(clock: ThreadClock) -> Self {
        Self { began: Instant::now(), clock, first: None }
    }

    /// Whether the work has taken longer than `time`. Else how long to wait before it can
    /// have.
    pub(super) fn look(&mut self, time: Duration, now: Instant) -> Result<Duration, Late> {
        let waited = now.saturating_duration_since(self.began);
        let longest = time.saturating_mul(PATIENCE);
        // Where the system does not tell, the wall's clock is all there is.
        let worked = self.clock.used().map_or(waited, |used| used.saturating_sub(*self.first.get_or_insert(used)));
        if worked >= time {
            return Err(Late::Worked);
        }
        if waited >= longest {
            return Err(Late::Waited);
        }
        Ok((time - worked).min(longest - waited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_late_when_it_took_its_time_and_not_when_it_got_none() {
        let second = Duration::from_secs(1);
        let mut watch = Stopwatch::start(ThreadClock::of_this_thread());
        let began = watch.began;
        // This thread does nothing meanwhile.
        assert!(watch.look(second, began).is_ok_and(|next| next <= second));
        assert!(watch.look(second, began + second * (PATIENCE - 1)).is_ok());
        assert_eq!(watch.look(second, began + second * PATIENCE), Err(Late::Waited));
        let spins = Instant::now();
        while watch.look(Duration::from_millis(30), began).is_ok() {
            assert!(spins.elapsed() < Duration::from_secs(60));
        }
        assert_eq!(watch.look(Duration::from_millis(30), began), Err(Late::Worked));
        assert!(watch.look(second * 60, began).is_ok());
    }

    #[test]
    fn a_thread_that_is_gone_has_the_wall_s_time() {
        let clock = std::thread::spawn(ThreadClock::of_this_thread).join().unwrap();
        while clock.used().is_some() {
            std::thread::yield_now();
        }
        let mut watch = Stopwatch::start(clock);
        let (began, second) = (watch.began, Duration::from_secs(1));
        assert_eq!(watch.look(second, began + second / 2), Ok(second / 2));
        assert_eq!(watch.look(second, began + second), Err(Late::Worked));
    }
}
