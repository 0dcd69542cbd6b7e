//! How a helper ended, and what that means.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use super::JailLimits;

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// It took too long.
    #[error("compiling took longer than {0}: make the component smaller, or raise the limit")]
    TooSlow(Slowness),
    /// It needed too much memory.
    #[error("compiling needs more than {limit} bytes of memory: make the component smaller, or raise the limit")]
    TooMuchMemory {
        /// Bytes that it might have.
        limit: u64,
    },
    /// Its output is too large.
    #[error("what was compiled has more than {limit} bytes: make the component smaller, or raise the limit")]
    TooLarge {
        /// Bytes that it might have.
        limit: u64,
    },
    /// The helper refused the input.
    #[error("the component cannot be compiled: {0}")]
    Rejected(String),
    /// The helper was ended by a signal, which is a fault of the compiler and not
    /// of the input.
    #[error("the compiler crashed with signal {signal}: {message}; report this together with the component")]
    Crashed {
        /// The signal's number.
        signal: i32,
        /// What it said before.
        message: String,
    },
    /// The helper ended well, and there is no file.
    #[error("the compiler ended without an output: it is no helper for compiling")]
    NoOutput,
    /// The helper did not start.
    #[error("{} does not start: {source}", program.display())]
    Start {
        /// The helper.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("compiling could not be supervised: {0}")]
    Io(#[from] io::Error),
}

/// Which time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Slowness {
    /// CPU time.
    #[error("{0:?} of CPU time")]
    Cpu(Duration),
    /// Time by the clock.
    #[error("{0:?}")]
    Wall(Duration),
}

/// Reads the end of a helper that was not killed by us.
pub(super) fn of(status: ExitStatus, message: &str, limits: &JailLimits) -> Result<(), JailError> {
    if status.success() {
        return Ok(());
    }
    let signal = status.signal();
    let is = |wanted: Signal| signal == Some(wanted.as_raw());
    if is(Signal::XCPU) {
        return Err(JailError::TooSlow(Slowness::Cpu(limits.cpu)));
    }
    if is(Signal::XFSZ) {
        return Err(JailError::TooLarge { limit: limits.output_bytes });
    }
    if lacks_memory(message) {
        return Err(JailError::TooMuchMemory { limit: limits.memory_bytes });
    }
    Err(match signal {
        Some(signal) => JailError::Crashed { signal, message: message.to_owned() },
        None => JailError::Rejected(message.to_owned()),
    })
}

/// Memory that is not given shows only in words: Rust says this and aborts
/// where it allocates, and a mapping fails with ENOMEM, which is said like this
/// by the system's library.
fn lacks_memory(message: &str) -> bool {
    ["memory allocation of ", "Cannot allocate memory"].iter().any(|words| message.contains(words))
}
