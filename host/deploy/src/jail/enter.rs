//! What the helper does to itself.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::{Jail, JailLimits};

/// Files that may be open at once: input, output, messages, and what a runtime
/// opens for itself.
const OPEN_FILES: u64 = 32;

impl Jail {
    /// Puts this process into the jail, for good. To be called by the helper before
    /// anything else: the parent cannot do it in time, and nothing that ran before
    /// is bounded.
    ///
    /// # Errors
    /// The system refused a limit; the helper must end then.
    pub fn enter(limits: &JailLimits) -> io::Result<()> {
        // Who waited for it is gone: nobody wants the output any more.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        set(Resource::Core, 0, 0)?;
        // A signal at the limit that tells what happened, and the end a second later.
        let seconds = limits.cpu_seconds();
        set(Resource::Cpu, seconds, seconds.saturating_add(1))?;
        set(Resource::Fsize, limits.output_bytes, limits.output_bytes)?;
        set(Resource::Nofile, OPEN_FILES, OPEN_FILES)?;
        // Not the address space, of which a runtime sets much aside and uses little.
        set(Resource::Data, limits.memory_bytes, limits.memory_bytes)
    }
}

fn set(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) }).map_err(io::Error::from)
}
