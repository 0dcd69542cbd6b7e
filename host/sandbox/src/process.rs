//! What the process gives up by itself, on every kernel.

use std::io;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::Serialize;

use crate::error::SandboxError;
use crate::plan::Plan;

/// Ports below this one need a capability, unless
/// `net.ipv4.ip_unprivileged_port_start` says otherwise.
const UNPRIVILEGED: u16 = 1024;

/// What the process gave up, and with how much it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// It runs as root.
    pub root: bool,
    /// Capabilities that it had and gave up, by their names in `capabilities(7)`.
    pub dropped_capabilities: Vec<String>,
    /// Those that it keeps.
    pub kept_capabilities: Vec<String>,
    /// Programs that it starts cannot gain rights (`no_new_privs`), as the
    /// kernel reads it back.
    pub no_new_privileges: bool,
    /// Neither a core file nor another process of this user shows its memory.
    pub not_dumpable: bool,
}

fn failed(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> SandboxError {
    move |error| SandboxError::Process { what, source: io::Error::from(error) }
}

/// Everything but the capabilities, which are still needed to open places.
pub(crate) fn harden() -> Result<(), SandboxError> {
    // What others may not read, they may not list either.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(failed("turning core files off"))?;
    // Also keeps other processes of the same user from attaching, and makes the
    // process's files in /proc root's.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(failed("hiding the process's memory"))?;
    rustix::thread::set_no_new_privs(true).map_err(failed("setting no_new_privs"))
}

/// Drops the capabilities of the calling thread and of its later children, but
/// for those that `plan` may need.
pub(crate) fn drop_capabilities(plan: &Plan) -> Result<Process, SandboxError> {
    let keep = kept(plan);
    let had = rustix::thread::capabilities(None).map_err(failed("reading the capabilities"))?;
    // The bounding set can only be cut by whoever has SETPCAP; it matters only for programs
    // that are started, and those gain nothing by `no_new_privs`.
    if had.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter().filter(|capability| !keep.contains(*capability)) {
            // A kernel refuses those that it does not know.
            let _unknown = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    // Kernels before 4.3 have no such set.
    let _none = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets {
        effective: had.effective & keep,
        permitted: had.permitted & keep,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).map_err(failed("dropping capabilities"))?;
    let has = rustix::thread::capabilities(None).map_err(failed("reading the capabilities"))?;
    Ok(Process {
        root: rustix::process::geteuid().is_root(),
        dropped_capabilities: names(had.permitted - has.permitted),
        kept_capabilities: names(has.permitted),
        no_new_privileges: rustix::thread::no_new_privs().map_err(failed("reading no_new_privs"))?,
        not_dumpable: rustix::process::dumpable_behavior().map_err(failed("reading whether memory is hidden"))?
            == DumpableBehavior::NotDumpable,
    })
}

/// Root keeps opening files of other users (a mounted volume's, for example);
/// which ones is landlock's to say. Models may be locked in memory.
fn kept(plan: &Plan) -> CapabilitySet {
    let mut keep = CapabilitySet::DAC_OVERRIDE | CapabilitySet::IPC_LOCK;
    if plan.bind.iter().any(|port| (1..UNPRIVILEGED).contains(port)) {
        keep |= CapabilitySet::NET_BIND_SERVICE;
    }
    keep
}

/// Their names; numbers for those that are newer than the list.
fn names(set: CapabilitySet) -> Vec<String> {
    let named = set.iter_names().map(|(name, _)| format!("CAP_{name}"));
    let known = CapabilitySet::all().iter_names().fold(CapabilitySet::empty(), |all, (_, one)| all | one);
    let unknown = (0..u64::BITS).filter(|bit| (set - known).bits() >> bit & 1 == 1);
    named.chain(unknown.map(|bit| format!("capability {bit}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_ports_keep_the_capability_that_they_need() {
        assert!(!kept(&Plan::new().bind(0).bind(3000)).contains(CapabilitySet::NET_BIND_SERVICE));
        assert!(kept(&Plan::new().bind(443)).contains(CapabilitySet::NET_BIND_SERVICE));
    }

    #[test]
    fn capabilities_are_called_by_their_names() {
        let newer = CapabilitySet::from_bits_retain(1 << 50);
        assert_eq!(names(CapabilitySet::SYS_ADMIN | newer), ["CAP_SYS_ADMIN", "capability 50"]);
    }
}
