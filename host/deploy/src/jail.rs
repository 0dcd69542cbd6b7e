//! Compiling in a process of its own.
//!
//! A compiler reads what strangers send, and takes time and memory by what it
//! reads. In a process of its own it can be bounded by the system, and when it
//! fails, only that process does. The helper is a program that the caller names,
//! such as its own with a hidden verb, which calls [`Jail::enter`] before
//! anything else.
//!
//! The jail bounds what is consumed. It does not keep a compiler that was taken
//! over from what the user of the process may read and write.

mod enter;
mod limits;
mod outcome;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

pub use limits::{InvalidLimits, JailLimits};
pub use outcome::{JailError, Slowness};

/// Bytes of what the helper says that are kept.
const MESSAGE: usize = 4096;
/// How long the end of its message is waited for after the helper has ended: only
/// somebody who has left its process group can still hold it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A helper that compiles, and how it is called.
#[derive(Debug, Clone)]
pub struct Jail {
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// What was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compiled {
    /// The size of the output in bytes.
    pub bytes: u64,
}

impl Jail {
    /// A helper that is called with `arguments`, and after them the limits (as
    /// [`JailLimits`] are written), the path to read and the path to write.
    ///
    /// It has to read the limits, call [`Jail::enter`] at once, write its output,
    /// and end with 0; or say on its standard error what is wrong with the input
    /// and end with another code.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Runs the helper, without environment and input, and waits for it: at most
    /// `limits.wall` and a moment. Its output is at `output` only if it succeeded,
    /// and it and whatever it started in its process group have ended then.
    ///
    /// # Errors
    /// [`JailError`]; there is nothing at `output` then, and what was there before
    /// is as it was.
    pub fn compile(&self, input: &Path, output: &Path, limits: &JailLimits) -> Result<Compiled, JailError> {
        let draft = draft_of(output)?;
        // Left by a process that was killed; the helper may not be able to replace it.
        remove(&draft)?;
        let result = self.run(input, &draft, limits).and_then(|()| accept(&draft, output, limits));
        if result.is_err() {
            remove(&draft)?;
        }
        result
    }

    fn run(&self, input: &Path, draft: &Path, limits: &JailLimits) -> Result<(), JailError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(limits.to_string()).arg(input).arg(draft);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // So that what it starts ends with it.
        command.process_group(0);
        let child = command.spawn().map_err(|source| JailError::Start { program: self.program.clone(), source })?;
        let mut group = Group { child, reaped: false };
        let message = listen(&mut group.child);
        let ended = group.wait(limits.wall)?;
        let status = group.end()?;
        let message = message.recv_timeout(LAST_WORDS).unwrap_or_default();
        match ended {
            Ended::ByItself => outcome::of(status, &message, limits),
            Ended::Late => Err(JailError::TooSlow(Slowness::Wall(limits.wall))),
        }
    }
}

/// Whether the helper ended before its time was over.
enum Ended {
    ByItself,
    Late,
}

/// The helper with all that it starts; killed at the latest when this is dropped.
struct Group {
    child: Child,
    reaped: bool,
}

impl Group {
    fn pid(&self) -> io::Result<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Waits for the helper's end without taking its number from it.
    fn wait(&self, wall: Duration) -> Result<Ended, JailError> {
        let pidfd = pidfd_open(self.pid()?, PidfdFlags::empty()).map_err(io::Error::from)?;
        let too_long =
            || io::Error::new(io::ErrorKind::InvalidInput, "the time limit is too long for the system's clock");
        let end = Instant::now().checked_add(wall).ok_or_else(too_long)?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(Ended::Late),
                Ok(_) => return Ok(Ended::ByItself),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Kills whatever is left of the group, and takes the helper's status.
    fn end(&mut self) -> Result<ExitStatus, JailError> {
        let pid = self.pid()?;
        // The helper stays a zombie until it is waited for below, so its number
        // still names this group and no other.
        kill(pid)?;
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).map_err(io::Error::from)?;
        // Once more, for what was started between the first signal and the end.
        kill(pid)?;
        let status = self.child.wait()?;
        self.reaped = true;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.end();
        }
    }
}

fn kill(group: Pid) -> io::Result<()> {
    match kill_process_group(group, Signal::KILL) {
        // Nobody is left.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads what the helper says to its end, and keeps the beginning.
fn listen(child: &mut Child) -> Receiver<String> {
    let (send, receive) = channel();
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut part = [0; 4096];
            // Read on after that: a helper whose message is not read would stand still.
            while let Ok(read @ 1..) = stderr.read(&mut part) {
                let room = MESSAGE.saturating_sub(kept.len()).min(read);
                kept.extend_from_slice(part.get(..room).unwrap_or_default());
            }
            let _ = send.send(String::from_utf8_lossy(&kept).trim().to_owned());
        });
    }
    receive
}

/// Where the helper writes: beside the output, so that it can become it.
fn draft_of(output: &Path) -> Result<PathBuf, JailError> {
    let no_name = || JailError::Io(io::Error::new(io::ErrorKind::InvalidInput, "the path to write to names no file"));
    let mut name = output.file_name().ok_or_else(no_name)?.to_owned();
    name.push(".compiling");
    Ok(output.with_file_name(name))
}

fn accept(draft: &Path, output: &Path, limits: &JailLimits) -> Result<Compiled, JailError> {
    let metadata = match fs::symlink_metadata(draft) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Err(JailError::NoOutput),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(JailError::NoOutput),
        Err(error) => return Err(error.into()),
    };
    // The system bounds this, too, unless the helper did not enter the jail.
    if metadata.len() > limits.output_bytes {
        return Err(JailError::TooLarge { limit: limits.output_bytes });
    }
    fs::rename(draft, output)?;
    Ok(Compiled { bytes: metadata.len() })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
