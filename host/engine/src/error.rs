//! Why a call to the engine failed.

use thiserror::Error;

/// Why a call to the engine failed.
///
/// The texts are for people: they say what was wrong and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is out of its range or contradicts another one.
    #[error("{0}")]
    InvalidArgument(String),
    /// The tokens do not fit into the context.
    #[error("the context is full: {free} more tokens fit")]
    ContextFull {
        /// How many tokens would still fit.
        free: u32,
    },
    /// The engine has no room at the moment.
    #[error("the engine is at capacity; try again later")]
    Busy,
    /// What the tenant may keep is used up.
    #[error("{0}")]
    Quota(String),
    /// The KV cells were taken back; the tokens must be prefilled again.
    #[error("the session's KV cells were reclaimed; prefill its tokens again")]
    Evicted,
    /// The model cannot do this.
    #[error("{0}")]
    Unsupported(String),
    /// The work was cancelled, or the engine is shutting down.
    #[error("cancelled")]
    Cancelled,
    /// A grammar was refused, or what it describes can no longer be produced.
    #[error("{0}")]
    Constraint(String),
    /// The backend failed.
    #[error("the inference backend failed: {0}")]
    Backend(String),
}
