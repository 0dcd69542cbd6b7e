//! Threads of this module's own.

use crate::affinity;
use crate::error::Error;

/// For what hardly calls anything.
pub(super) const SMALL_STACK: usize = 256 << 10;
/// For compiling: the grammar library recurses over rules that refer to rules.
/// Only what is touched becomes memory, and all of it is given back.
pub(super) const DEEP_STACK: usize = 512 << 20;

/// Starts a thread that nobody waits for.
pub(super) fn spawn(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(|| {
        affinity::step_back();
        body();
    });
    thread.map(drop).map_err(|error| {
        tracing::error!(%error, thread = name, "a thread cannot be started");
        Error::Busy
    })
}
