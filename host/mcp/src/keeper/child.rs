//! A program that runs.

use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Known;
use super::pass::Open;

/// What a program has of the environment of this one, as other clients of the protocol
/// have it.
const INHERITED: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// How long a program has to end by itself, and then to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// The longest line of its standard error that is shown, in bytes,
const LONGEST_LINE: u64 = 1024;
/// and how many are in a second.
const MOST_LINES: u32 = 50;

/// A program, for whoever has to see to its end.
pub(super) struct Started {
    watched: UnixStream,
    ending: JoinHandle<()>,
}

impl Started {
    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ending.is_finished()
    }

    /// Has it end, though somebody may need it.
    pub(super) fn give_up(&self) {
        // As if the other end had been closed.
        let _gone = self.watched.shutdown(Shutdown::Both);
    }

    /// Waits until it has ended.
    pub(super) fn wait(self) {
        let _panicked = self.ending.join();
    }
}

/// Starts a program. Two threads look after it.
pub(super) fn start(known: &Known) -> io::Result<(Open, Started)> {
    let (stream, theirs) = UnixStream::pair()?;
    let (life, watched) = UnixStream::pair()?;
    let mut command = Command::new(&known.command);
    command.args(&known.arguments).current_dir(&known.folder).env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(&known.environment);
    command.stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)));
    command.stdout(Stdio::from(OwnedFd::from(theirs))).stderr(Stdio::piped());
    // A group of its own, which is ended as a whole.
    command.process_group(0);
    // Had before there is a program that nobody would look after.
    let (give, take) = std::sync::mpsc::channel();
    let name = known.name.clone();
    let again = watched.try_clone()?;
    let ending = std::thread::Builder::new().spawn(move || {
        if let Ok(child) = take.recv() {
            end(&name, child, watched);
        }
    })?;
    let child = command.spawn();
    // It holds the program's ends.
    drop(command);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", known.command));
    let mut child = child.map_err(named)?;
    let name = known.name.clone();
    if let Some(stderr) = child.stderr.take() {
        // Without a thread for it, what it writes there is not read.
        let _unread = std::thread::Builder::new().spawn(move || show(&name, stderr));
    }
    // It waits for that, and does nothing else.
    let _taken = give.send(child);
    Ok((Open { stream: stream.into(), life: life.into() }, Started { watched: again, ending }))
}

/// Waits until nobody needs a program any more, and sees to it that it ends.
fn end(name: &str, mut child: Child, mut watched: UnixStream) {
    let mut byte = [0];
    loop {
        match watched.read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for signal in [Signal::TERM, Signal::KILL] {
        if is_over(&mut child) {
            break;
        }
        tracing::debug!(server = name, ?signal, "a program does not end by itself");
        // Its number is nobody else's as long as it was not waited for.
        if let Some(group) = group {
            let _gone = kill_process_group(group, signal);
        }
    }
    let _status = child.wait();
    // What it has started ends with it.
    if let Some(group) = group {
        let _gone = kill_process_group(group, Signal::KILL);
    }
}

/// Whether a program ends within some time.
fn is_over(child: &mut Child) -> bool {
    let by = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < by => std::thread::sleep(LOOK),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// Shows what a program says beside the protocol, and not more than that of it.
fn show(name: &str, stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr);
    let (mut second, mut shown) = (Instant::now(), 0);
    loop {
        let mut line = Vec::new();
        match (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if second.elapsed() >= Duration::from_secs(1) {
            (second, shown) = (Instant::now(), 0);
        }
        shown += 1;
        let text: String = String::from_utf8_lossy(&line).chars().filter(|sign| !sign.is_control()).collect();
        if shown <= MOST_LINES && !text.trim().is_empty() {
            tracing::info!(server = name, "{text}");
        }
    }
}
