//! The pieces of the walls, and which kernel brought each.

use std::fmt;

use serde::Serialize;

/// One piece that a kernel has or lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Landlock: files and folders outside the plan cannot be opened, made,
    /// removed or run.
    Files,
    /// Landlock: files outside the plan cannot be cut by `truncate(2)` either.
    Truncation,
    /// Landlock: TCP ports outside the plan cannot be bound or connected to.
    TcpPorts,
    /// Landlock: device files that are opened later take no `ioctl(2)`.
    Devices,
    /// Landlock: no signal and no abstract Unix socket reaches other processes.
    Scopes,
    /// Landlock holds for threads that were there before, too.
    EarlierThreads,
    /// Seccomp: only listed system calls reach the kernel's code, in all threads.
    SystemCalls,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Files,
        Self::Truncation,
        Self::TcpPorts,
        Self::Devices,
        Self::Scopes,
        Self::EarlierThreads,
        Self::SystemCalls,
    ];

    /// The version of landlock's interface that brought it, from the list in
    /// <https://docs.kernel.org/userspace-api/landlock.html>. None for seccomp.
    #[must_use]
    pub fn landlock_abi(self) -> Option<u32> {
        match self {
            Self::Files => Some(1),
            Self::Truncation => Some(3),
            Self::TcpPorts => Some(4),
            Self::Devices => Some(5),
            Self::Scopes => Some(6),
            Self::EarlierThreads => Some(8),
            Self::SystemCalls => None,
        }
    }

    /// The first Linux that has it. Distributions carry some back to older ones.
    #[must_use]
    pub fn since_linux(self) -> &'static str {
        match self {
            Self::Files => "5.13",
            Self::Truncation => "6.2",
            Self::TcpPorts => "6.7",
            Self::Devices => "6.10",
            Self::Scopes => "6.12",
            Self::EarlierThreads => "7.0",
            // Where filters can be set for all threads at once.
            Self::SystemCalls => "3.17",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Truncation => "truncation of files",
            Self::TcpPorts => "TCP ports",
            Self::Devices => "control of devices",
            Self::Scopes => "signals and abstract sockets",
            Self::EarlierThreads => "files for threads started earlier",
            Self::SystemCalls => "system calls",
        })
    }
}

/// A piece that is not there, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Which.
    pub feature: Feature,
    /// Why, and what would bring it.
    pub why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.feature, self.why)
    }
}
