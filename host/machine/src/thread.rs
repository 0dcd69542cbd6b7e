//! How far a thread steps back behind others.

use std::io;

use rustix::process::{getpid, getpriority_process, setpriority_process};

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

#[cfg(test)]
mod tests {
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
}
