//! Building the walls, in the one order in which it can be done.

use std::sync::atomic::{AtomicBool, Ordering};

use landlock::RulesetStatus;
use rustix::thread::SecureComputingMode;

use crate::error::SandboxError;
use crate::feature::{Feature, Missing};
use crate::files::{self, Confined};
use crate::filter::{self, Filters};
use crate::plan::Plan;
use crate::process;
use crate::report::{CallsReport, Policy, Report};
use crate::support::Support;

/// A second set of filters could not be set any more, and would say so with an
/// error that explains nothing.
static BUILT: AtomicBool = AtomicBool::new(false);

impl Plan {
    /// Gives up every right that is not in the plan, for good, and says what is
    /// enforced. See the crate's documentation for when to call it.
    ///
    /// # Errors
    /// A place of the plan is not there, the plan was enforced already, the
    /// kernel refuses what it should have, or, with [`Policy::Required`], it
    /// lacks a piece. Lacks that the kernel tells beforehand are found before
    /// anything is changed.
    pub fn enforce(&self, policy: Policy) -> Result<Report, SandboxError> {
        let support = Support::probe();
        let missing = support.missing();
        if policy == Policy::Off {
            return Ok(Report {
                policy,
                support,
                enforced: Vec::new(),
                missing,
                calls: None,
                process: None,
                absent: Vec::new(),
            });
        }
        if policy == Policy::Required && !missing.is_empty() {
            return Err(SandboxError::Missing { kernel: support.kernel, missing });
        }
        // What can fail for the plan's sake is compiled before anything is given up.
        let filters = match filter::architecture() {
            Ok(architecture) if support.no_seccomp.is_none() => Some(Filters::of(self, architecture)?),
            _ => None,
        };
        if BUILT.swap(true, Ordering::SeqCst) {
            return Err(SandboxError::Already);
        }
        process::harden()?;
        let confined = files::confine(self)?;
        let process = process::drop_capabilities(self)?;
        let calls = match &filters {
            Some(filters) => {
                filters.set()?;
                Some(CallsReport { allowed: filters.allowed, limited: filters.limited })
            }
            None => None,
        };
        // Read back, not believed.
        let filtered = rustix::thread::secure_computing_mode() == Ok(SecureComputingMode::Filter);
        let (enforced, missing) = outcome(&confined, calls.is_some() && filtered, &support, missing);
        if policy == Policy::Required && !missing.is_empty() {
            return Err(SandboxError::Missing { kernel: support.kernel, missing });
        }
        Ok(Report { policy, support, enforced, missing, calls, process: Some(process), absent: confined.absent })
    }
}

/// What the kernel said it enforces, beside what it was expected to lack.
fn outcome(
    confined: &Confined,
    filtered: bool,
    support: &Support,
    mut missing: Vec<Missing>,
) -> (Vec<Feature>, Vec<Missing>) {
    let landlocked =
        confined.status.ruleset != RulesetStatus::NotEnforced && files::is_there(&confined.status.landlock);
    let holds = |feature: Feature| match feature {
        Feature::SystemCalls => filtered,
        Feature::EarlierThreads => landlocked && (support.other_threads == 0 || confined.status.all_threads),
        _ => landlocked && !missing.iter().any(|missing| missing.feature == feature),
    };
    let (enforced, not): (Vec<Feature>, Vec<Feature>) = Feature::ALL.into_iter().partition(|feature| holds(*feature));
    for feature in not {
        if !missing.iter().any(|missing| missing.feature == feature) {
            missing.push(Missing { feature, why: "the kernel says that it is not in force".to_owned() });
        }
    }
    (enforced, missing)
}
