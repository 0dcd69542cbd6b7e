//! What is enforced, for people and for `doctor`.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::feature::{Feature, Missing};
use crate::process::Process;
use crate::support::Support;

/// How much of the walls there has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// All of them, or an error that says what is missing.
    Required,
    /// As many as the kernel has; what it lacks is reported.
    #[default]
    BestEffort,
    /// None: nothing is changed.
    Off,
}

/// What is enforced from now on, read back from the kernel where it tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was asked for.
    pub policy: Policy,
    /// What the kernel has.
    pub support: Support,
    /// The pieces that hold. [`Feature::EarlierThreads`] is among them where
    /// there were none, too.
    pub enforced: Vec<Feature>,
    /// The pieces that do not hold, and why. With [`Policy::Off`], all that the
    /// kernel could not give anyway.
    pub missing: Vec<Missing>,
    /// The filter of system calls, where there is one.
    pub calls: Option<CallsReport>,
    /// What the process gave up by itself; none with [`Policy::Off`].
    pub process: Option<Process>,
    /// Places of the plan that are not there and were left out.
    pub absent: Vec<PathBuf>,
}

/// What the filter of system calls leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallsReport {
    /// How many system calls can be made.
    pub allowed: usize,
    /// How many of them in some forms only.
    pub limited: usize,
}

impl Report {
    /// Whether a piece holds.
    #[must_use]
    pub fn enforces(&self, feature: Feature) -> bool {
        self.enforced.contains(&feature)
    }

    /// What the operator could do better, in sentences.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        if self.process.as_ref().is_some_and(|process| process.root) {
            hints.push(
                "nala-host runs as root: give it a user of its own, so that what is beyond these walls is not root's \
                 either"
                    .to_owned(),
            );
        }
        if self.policy == Policy::BestEffort && !self.missing.is_empty() {
            hints.push(
                "parts of the sandbox are missing: a newer kernel has them; require the sandbox where it must not be \
                 missing"
                    .to_owned(),
            );
        }
        hints
    }
}

impl fmt::Display for Report {
    /// A few lines, without one at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.policy == Policy::Off {
            return write!(f, "sandbox: off");
        }
        let names: Vec<String> = self.enforced.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        write!(f, "sandbox: {names}; Linux {}", self.support.kernel)?;
        if let Some(abi) = self.support.landlock_abi {
            write!(f, ", landlock ABI {abi}")?;
        }
        if let Some(CallsReport { allowed, limited }) = self.calls {
            write!(f, "\n  {allowed} system calls, {limited} of them in some forms only")?;
        }
        if let Some(process) = &self.process {
            write!(f, "\n  ")?;
            match process.dropped_capabilities.len() {
                0 => write!(f, "no capabilities to drop")?,
                dropped => write!(f, "{dropped} capabilities dropped")?,
            }
            if !process.kept_capabilities.is_empty() {
                write!(f, ", kept: {}", process.kept_capabilities.join(" "))?;
            }
        }
        for path in &self.absent {
            write!(f, "\n  not there, so left out: {}", path.display())?;
        }
        for missing in &self.missing {
            write!(f, "\n  missing: {missing}")?;
        }
        for hint in self.hints() {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}
