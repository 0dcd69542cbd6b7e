//! What a long operation tells its caller while it runs.

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Another process is pulling the same file; waiting until it is done.
    Waiting,
    /// Asking the package index where the file is.
    Finding,
    /// Bytes arrive over the network.
    Downloading,
    /// The file is taken out of the archive it came in, and its digest checked.
    Unpacking,
    /// The digest of bytes on disk is computed.
    Verifying,
}

/// Receives the course of a long operation. The library prints nothing.
pub trait Progress {
    /// A new stage begins, which ends at `total` bytes if that is known.
    fn stage(&mut self, stage: Stage, total: Option<u64>);

    /// The current stage has reached `done` bytes. It may go back, when a
    /// download has to start again.
    fn reached(&mut self, done: u64);
}

/// A [`Progress`] that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _: Stage, _: Option<u64>) {}
    fn reached(&mut self, _: u64) {}
}
