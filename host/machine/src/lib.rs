//! What this machine has, and what this process is granted of it: CPUs, memory, caches,
//! features, topology ([`Machine`]). How much it has to do ([`Load`]), and what energy it
//! takes for that ([`Energy`]). And what a thread takes of that ([`ThreadClock`]), and
//! whom it leaves it to ([`step_back`]).
//!
//! The machine is read from `/proc` and `/sys` through [`Filesystem`], so that
//! each parser is tested on trees of other machines. A file that is missing or
//! unreadable means "not known", never an error: containers hide many of them.

mod cache;
mod cgroup;
mod cpu;
mod cpu_list;
mod energy;
mod filesystem;
mod grant;
mod heat;
mod load;
mod memory;
mod pressure;
mod thread;
mod topology;

pub use cache::{Cache, CacheGroup, CacheKind, Caches};
pub use cpu::{Architecture, Cpu};
pub use cpu_list::CpuList;
pub use energy::{Energy, Method, Reading, Scope, Sensor, Spent};
pub use filesystem::{Filesystem, MemoryTree, RealFilesystem};
pub use grant::{Affinity, CpuGrant, Quota, granted_cpus, granted_cpus_of};
pub use heat::{ClockRate, Temperature};
pub use load::{CpuTimes, GroupCpu, Load, LoadAverages};
pub use memory::{HugePages, Memory, MemoryUse, Resident};
pub use pressure::{Pressure, Waited};
pub use thread::{ThreadClock, niceness_behind, note_lent, step_back, worked};
pub use topology::{NumaNode, Topology};

use serde::Serialize;

/// What [`Machine::probe`] finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: Cpu,
    /// The CPUs this process may use.
    pub grant: CpuGrant,
    /// Cores and NUMA nodes.
    pub topology: Topology,
    /// Caches.
    pub caches: Caches,
    /// Memory and pages.
    pub memory: Memory,
}

impl Machine {
    /// This machine, as this process sees it.
    #[must_use]
    pub fn probe() -> Self {
        Self::probe_of(&RealFilesystem, &Affinity::of_this_process())
    }

    /// The machine that `fs` describes, for a process that the scheduler keeps
    /// on the CPUs of `affinity`.
    #[must_use]
    pub fn probe_of(fs: &dyn Filesystem, affinity: &Affinity) -> Self {
        Self {
            cpu: Cpu::read(fs),
            grant: granted_cpus_of(fs, affinity),
            topology: Topology::read(fs),
            caches: Caches::read(fs),
            memory: Memory::read(fs, rustix::param::page_size()),
        }
    }
}

#[cfg(test)]
mod tests;
