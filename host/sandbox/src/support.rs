//! What this kernel has, without changing anything.

use std::fs;

use landlock::{LandlockStatus, RestrictSelf};
use serde::Serialize;

use crate::feature::{Feature, Missing};
use crate::filter;

/// What the running kernel has for the walls, as far as this process sees it:
/// a container may hide some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Support {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The version of landlock's interface that can be used: the kernel's, or
    /// the newest that we know.
    pub landlock_abi: Option<u32>,
    /// Why there is no landlock, where there is none.
    pub no_landlock: Option<String>,
    /// Why there are no filters of system calls, where there are none.
    pub no_seccomp: Option<String>,
    /// Threads of this process besides the calling one.
    pub other_threads: usize,
}

impl Support {
    /// Asks the kernel.
    #[must_use]
    pub fn probe() -> Self {
        let (landlock_abi, no_landlock) = landlock();
        Self {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            landlock_abi,
            no_landlock,
            no_seccomp: no_seccomp(),
            other_threads: other_threads(),
        }
    }

    /// What the walls lack here. That landlock cannot reach other threads counts
    /// only where there are any.
    #[must_use]
    pub fn missing(&self) -> Vec<Missing> {
        let lacks = |feature: &Feature| self.why_not(*feature).map(|why| Missing { feature: *feature, why });
        Feature::ALL.iter().filter_map(lacks).collect()
    }

    fn why_not(&self, feature: Feature) -> Option<String> {
        let Some(needed) = feature.landlock_abi() else { return self.no_seccomp.clone() };
        if let Some(why) = &self.no_landlock {
            // Said once, where it matters most.
            return Some(match feature {
                Feature::Files => why.clone(),
                Feature::EarlierThreads if self.other_threads == 0 => return None,
                _ => "there is no landlock".to_owned(),
            });
        }
        if self.landlock_abi.is_some_and(|abi| abi >= needed) {
            return None;
        }
        let needs = format!(
            "needs landlock ABI {needed} (Linux {}); Linux {} has ABI {}",
            feature.since_linux(),
            self.kernel,
            self.landlock_abi.unwrap_or_default(),
        );
        match (feature, self.other_threads) {
            (Feature::EarlierThreads, 0) => None,
            (Feature::EarlierThreads, others) => Some(format!("{needs}, and {others} other threads run already")),
            _ => Some(needs),
        }
    }
}

fn landlock() -> (Option<u32>, Option<String>) {
    // Asked for nothing, it only asks for the version.
    let status = match RestrictSelf::default().no_new_privs(false).apply() {
        Ok(status) => status.landlock,
        Err(error) => return (None, Some(format!("the kernel cannot be asked for landlock: {error}"))),
    };
    match status {
        LandlockStatus::Available { effective_abi, .. } => (u32::try_from(effective_abi as i32).ok(), None),
        LandlockStatus::NotEnabled => {
            let why = "landlock is built into this kernel but off: boot with `landlock` in `lsm=`";
            (None, Some(why.to_owned()))
        }
        _ => {
            let why = "this kernel has no landlock, or a container hides it: \
                it needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK";
            (None, Some(why.to_owned()))
        }
    }
}

fn no_seccomp() -> Option<String> {
    if let Err(why) = filter::architecture() {
        return Some(why);
    }
    // PR_GET_SECCOMP is answered by every kernel with CONFIG_SECCOMP.
    if rustix::thread::secure_computing_mode().is_err() {
        return Some("this kernel has no seccomp: it needs CONFIG_SECCOMP".to_owned());
    }
    // Filters are an option of their own. The list is there since Linux 4.14; where it cannot
    // be read, trying tells.
    match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if !actions.split_whitespace().any(|action| action == "errno") => {
            Some("this kernel's seccomp has no filters: it needs CONFIG_SECCOMP_FILTER".to_owned())
        }
        _ => None,
    }
}

/// How many threads run besides this one. One where it cannot be told, which
/// is to say that nobody knows that there are none.
fn other_threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(landlock_abi: Option<u32>, other_threads: usize) -> Support {
        Support {
            kernel: "6.1.0".to_owned(),
            landlock_abi,
            no_landlock: landlock_abi.is_none().then(|| "none here".to_owned()),
            no_seccomp: None,
            other_threads,
        }
    }

    fn features(support: &Support) -> Vec<Feature> {
        support.missing().into_iter().map(|missing| missing.feature).collect()
    }

    #[test]
    fn an_older_kernel_lacks_what_came_later() {
        use Feature::{Devices, EarlierThreads, Scopes, TcpPorts, Truncation};
        assert_eq!(features(&support(Some(2), 0)), [Truncation, TcpPorts, Devices, Scopes]);
        assert_eq!(features(&support(Some(6), 0)), []);
        assert_eq!(features(&support(Some(7), 3)), [EarlierThreads]);
        assert_eq!(features(&support(Some(8), 3)), []);
    }

    #[test]
    fn what_is_missing_names_the_kernel_that_has_it() {
        let missing = support(Some(2), 0).missing();
        assert_eq!(missing[1].to_string(), "TCP ports: needs landlock ABI 4 (Linux 6.7); Linux 6.1.0 has ABI 2");
        assert!(support(Some(7), 3).missing()[0].why.ends_with("and 3 other threads run already"));
    }

    #[test]
    fn without_landlock_only_system_calls_are_left() {
        let mut support = support(None, 0);
        assert_eq!(support.missing().len(), 5);
        assert_eq!(support.missing()[0].why, "none here");
        support.no_seccomp = Some("no filters".to_owned());
        assert_eq!(features(&support).last(), Some(&Feature::SystemCalls));
    }
}
