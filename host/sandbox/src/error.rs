//! Why the walls do not stand.

use std::io;
use std::path::PathBuf;

use crate::feature::Missing;

/// Why a plan cannot be enforced. The process may be confined in part; it is
/// meant to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The walls are required, and the kernel lacks a piece of them.
    #[error(
        "the sandbox is required and Linux {kernel} cannot give all of it: {}. \
         Use a kernel that has it, or ask for as much as there is",
        missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Missing {
        /// The kernel's release.
        kernel: String,
        /// All that it lacks.
        missing: Vec<Missing>,
    },
    /// A place of the plan cannot be opened.
    #[error("{} is to be kept within the sandbox and cannot be opened: {source}. Create it first, or leave it out", path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A rule for a place was refused.
    #[error("the kernel takes no sandbox rule for {}: {source}", path.display())]
    Rule {
        /// The place.
        path: PathBuf,
        /// What landlock says.
        source: Box<landlock::RulesetError>,
    },
    /// Landlock failed where the kernel has it.
    #[error("landlock cannot be turned on: {0}")]
    Landlock(#[source] Box<landlock::RulesetError>),
    /// The filter of system calls failed where the kernel has it.
    #[error("system calls cannot be filtered: {0}")]
    Seccomp(#[from] seccompiler::Error),
    /// A right of the process itself cannot be given up.
    #[error("{what} failed: {source}")]
    Process {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The walls stand already; they can only be built once.
    #[error("this process is in its sandbox already: enforce one plan, once")]
    Already,
}
