//! The process that starts a class's process, and starts it again.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::backoff::Backoff;
use crate::link::from_stdin;
use crate::pass;

/// What a link is handed to the front with.
const LINK: u8 = b'l';

/// A keeper, as the front sees it, before anything runs that could wait for it.
#[derive(Debug)]
pub struct Keeper {
    pub(crate) socket: UnixStream,
}

impl Keeper {
    /// Starts a keeper: a program that calls [`keep`].
    ///
    /// To be called before the right to start programs is given up. The keeper is in a
    /// process group of its own, so that a signal from the terminal is the front's
    /// alone to act on.
    ///
    /// # Errors
    /// The program cannot be started.
    #[allow(clippy::zombie_processes, reason = "it ends after this process, or this process ends for want of it")]
    pub fn start(mut program: Command) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        program.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
        // It is never waited for: that it has ended is seen by its socket, and its number
        // goes to whoever adopts it when this process ends.
        program.spawn()?;
        Ok(Self { socket })
    }
}

/// What a keeper waits for.
enum Event {
    /// The front has ended, or is about to.
    FrontGone,
    /// The process has.
    Ended,
}

/// The work of a keeper: starts what `process` makes, with a link as its standard
/// input, and starts it again whenever it ends, later each time that it ends soon.
/// Returns when the front is gone and the process has ended, which is killed if that
/// takes longer than `patience`.
///
/// # Errors
/// Standard input is no link of [`Keeper::start`], or the system has no sockets left.
pub fn keep(class: &str, process: impl Fn() -> Command, patience: Duration) -> io::Result<()> {
    let front = UnixStream::from(from_stdin()?);
    let (tell, events) = channel();
    watch_front(front.try_clone()?, tell.clone());
    let mut backoff = Backoff::new();
    loop {
        let (ours, theirs) = UnixStream::pair()?;
        let started = Instant::now();
        let spawned = {
            // Gone at once: it holds the other end of the link, which is to be the process's
            // alone.
            let mut command = process();
            command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).spawn()
        };
        match spawned {
            Err(error) => tracing::error!(class, %error, "the process of a class cannot be started"),
            Ok(mut child) => {
                tracing::info!(class, pid = child.id(), "the process of a class was started");
                // A front that is gone is told of by its event.
                let _gone = pass::send(&front, LINK, ours.as_fd());
                drop(ours);
                watch_process(&child, tell.clone())?;
                match events.recv() {
                    Ok(Event::Ended) => {
                        let status = child.wait()?;
                        tracing::warn!(class, %status, "the process of a class has ended");
                    }
                    Ok(Event::FrontGone) | Err(_) => return end(class, &mut child, &events, patience),
                }
            }
        }
        let pause = backoff.after(started.elapsed());
        match events.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            // Of a process that has ended there is nothing more to hear.
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// The process ends by itself when its link does; one that hangs is killed.
fn end(class: &str, child: &mut Child, events: &Receiver<Event>, patience: Duration) -> io::Result<()> {
    if events.recv_timeout(patience).is_err() {
        tracing::warn!(class, "the process of a class does not end; it is killed");
        child.kill()?;
    }
    child.wait().map(drop)
}

/// Reads until the other end is closed. Nothing is ever sent.
fn watch_front(mut front: UnixStream, tell: Sender<Event>) {
    std::thread::spawn(move || {
        let mut byte = [0];
        loop {
            match front.read(&mut byte) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        let _ended = tell.send(Event::FrontGone);
    });
}

/// Tells when a process has ended, and leaves it to be waited for: until then its number
/// is nobody else's.
fn watch_process(child: &Child, tell: Sender<Event>) -> io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    std::thread::spawn(move || {
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {
        }
        let _ended = tell.send(Event::Ended);
    });
    Ok(())
}
