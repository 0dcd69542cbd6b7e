//! What a thread takes, and how far it steps back behind others.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use nix::time::ClockId;
use rustix::process::{getpid, getpriority_process, setpriority_process};
use rustix::time::clock_gettime;

/// The least that a thread can be favoured, as by nice(1).
const LEAST: i32 = 19;

/// Has the calling thread be so much nicer than the process, as by nice(1): it steps back
/// behind those of its threads that are less nice.
///
/// The distance is one to the process, and not to what the thread was: a thread inherits
/// from the one that starts it, and distances would add up. Whoever has stepped back
/// needs a privilege to come forward again, and so does what it starts. So a thread that
/// must keep to time is started by one that has not.
///
/// On Linux niceness is the thread's own, whatever POSIX says, and that of the first
/// thread stands for the process's (setpriority(2), "C library/kernel differences").
///
/// # Errors
/// The system does not let it; the thread is as nice as before.
pub fn step_back(by: i32) -> io::Result<()> {
    setpriority_process(None, niceness_behind(by)?)?;
    Ok(())
}

/// How nice a thread is that has [stepped back](step_back) so far.
///
/// # Errors
/// The system does not tell.
pub fn niceness_behind(by: i32) -> io::Result<i32> {
    Ok(getpriority_process(Some(getpid()))?.saturating_add(by).min(LEAST))
}

/// The clock of a thread's CPU time, which all threads of the process can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadClock(ClockId);

impl ThreadClock {
    /// That of the calling thread.
    #[must_use]
    pub fn of_this_thread() -> Self {
        // As pthread_getcpuclockid(3) makes it: the complement of the thread's number, the
        // bit that says it is one thread's, and CPUCLOCK_SCHED (include/linux/posix-timers_types.h).
        let thread = rustix::thread::gettid().as_raw_pid();
        Self(ClockId::from_raw((!thread << 3) | 0b110))
    }

    /// What the thread has used. None: it has ended, or the system does not tell.
    #[must_use]
    pub fn used(self) -> Option<Duration> {
        nix::time::clock_gettime(self.0).ok().map(Duration::from)
    }
}

thread_local! {
    static LENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Notes that another thread has used so much CPU time for the calling one, which waited
/// for it.
pub fn note_lent(time: Duration) {
    LENT.set(LENT.get().saturating_add(time));
}

/// What the calling thread has used so far, with [what was lent to it](note_lent).
#[must_use]
pub fn worked() -> Duration {
    let now = clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default().saturating_add(LENT.get())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    fn own() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[test]
    fn steps_back_do_not_add_up() {
        let (process, first, second) = std::thread::spawn(|| {
            let process = niceness_behind(0).unwrap();
            step_back(5).unwrap();
            let first = own();
            let second = std::thread::spawn(|| {
                step_back(10).unwrap();
                own()
            });
            (process, first, second.join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((first, second), ((process + 5).min(LEAST), (process + 10).min(LEAST)));
        assert_eq!(own(), process, "only they step back");
        assert_eq!(niceness_behind(1000).unwrap(), LEAST);
    }

    #[test]
    fn what_is_lent_counts_for_who_waited() {
        let before = worked();
        note_lent(Duration::from_secs(100));
        let used = worked() - before;
        assert!(used >= Duration::from_secs(100) && used < Duration::from_secs(110), "{used:?}");
        let other = std::thread::spawn(worked).join().unwrap();
        assert!(other < Duration::from_secs(10), "{other:?}");
    }

    #[test]
    fn a_thread_s_time_is_read_from_another() {
        let ((clocks, clock), (end, ended)) = (channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            clocks.send(ThreadClock::of_this_thread()).unwrap();
            // It waits, then computes, then waits.
            ended.recv().unwrap();
            let (begin, own) = (Instant::now(), ThreadClock::of_this_thread());
            while own.used().unwrap() < Duration::from_millis(50) {
                assert!(begin.elapsed() < Duration::from_secs(60));
            }
            clocks.send(own).unwrap();
            ended.recv().unwrap();
        });
        let of_thread = clock.recv().unwrap();
        assert!(of_thread.used().unwrap() < Duration::from_millis(50));
        assert_ne!(of_thread, ThreadClock::of_this_thread());
        end.send(()).unwrap();
        assert_eq!(clock.recv().unwrap(), of_thread);
        let used = of_thread.used().unwrap();
        assert!(used >= Duration::from_millis(50) && used < Duration::from_secs(1), "{used:?}");
        end.send(()).unwrap();
        thread.join().unwrap();
        let begin = Instant::now();
        while of_thread.used().is_some() {
            assert!(begin.elapsed() < Duration::from_secs(10), "it has ended");
        }
    }
}
