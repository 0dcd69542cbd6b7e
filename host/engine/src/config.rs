//! What an operator can set, with the defaults in force.

use std::time::Duration;

/// Settings of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// The most sessions open at a time; further ones are refused as busy.
    pub max_sessions: u32,
    /// The most prefills and runs that wait for a sequence or KV cells; further
    /// ones are refused as busy.
    pub max_queued: u32,
    /// How long work may wait for a sequence or KV cells before it is refused
    /// as busy.
    pub max_wait: Duration,
    /// The most prompt tokens in a batch that also carries running generations.
    /// Smaller: their tokens come more evenly. Larger: prompts are done sooner.
    pub prefill_chunk: u32,
    /// How long a batch that carries prompts should take: as long as a hang-up
    /// waits at the most to be noticed, and a stream for its next token.
    pub step_time: Duration,
    /// Tokens that are kept for a slow reader before its run pauses.
    pub outbox_tokens: u32,
    /// Bytes of RAM for the state of sessions that are parked or saved.
    pub snapshot_bytes: u64,
    /// The most sessions that can be saved in a scope.
    pub max_saved: u32,
    /// The most tokens that are guessed ahead for a run, from what its session
    /// held before. How many are, from none on, follows from what batches were
    /// measured to take and from how often guesses came true. 0: never.
    pub max_draft: u32,
    /// What tenants put up with from each other.
    pub company: CompanyConfig,
}

/// How far a tenant's prompts, and the moving of states for it, may hold up the streams
/// of others. Without others at work none of it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompanyConfig {
    /// How long a batch that carries prompts should take, in place of
    /// [`EngineConfig::step_time`].
    pub step_time: Duration,
    /// For how long a tenant of weight 1 may hold others up at once; with more weight
    /// for longer.
    pub at_once: Duration,
    /// And for which part of all time: one in so many, at least 1.
    pub part: u32,
    /// By how many percent steps may be longer for prompts of who has held others up
    /// for that long.
    pub stretch: u32,
}

impl Default for CompanyConfig {
    fn default() -> Self {
        Self { step_time: Duration::from_millis(50), at_once: Duration::from_millis(50), part: 50, stretch: 35 }
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            max_sessions: 256,
            max_queued: 128,
            max_wait: Duration::from_secs(30),
            prefill_chunk: 128,
            step_time: Duration::from_millis(300),
            outbox_tokens: 256,
            snapshot_bytes: 1 << 30,
            max_saved: 64,
            max_draft: 8,
            company: CompanyConfig::default(),
        }
    }
}
