//! Why a pool was not made, and why a model of it cannot be had.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::engine::StartError;

/// Why a pool cannot be made of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Two models have one name.
    #[error("two models are named {name}; give each a name of its own")]
    Twice {
        /// The name.
        name: String,
    },
    /// The resident models need more than there is.
    #[error(
        "the models that stay loaded need {} and the memory budget is {}; raise the budget, keep fewer models, or \
         give them fewer KV cells",
        Bytes(*needed),
        Bytes(*budget)
    )]
    Residents {
        /// Bytes that all resident models need.
        needed: u64,
        /// Bytes that there are.
        budget: u64,
    },
    /// A model could never be loaded.
    #[error(
        "the model {name} needs {} but {} of the memory budget can be had for it; raise the budget, or choose a \
         smaller model or fewer KV cells",
        Bytes(*needed),
        Bytes(*room)
    )]
    TooLarge {
        /// The model.
        name: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that the budget leaves beside the resident models.
        room: u64,
    },
}

/// Why a model was not loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadFailure {
    /// Its loader said so.
    #[error("{0}")]
    Load(Box<dyn StdError + Send + Sync>),
    /// Its engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its loader panicked; the log tells more.
    #[error("loading it ended in a panic; the log tells more, please report it")]
    Panicked,
    /// Others hold the memory that it needs.
    #[error("no memory of the budget is left for it")]
    NoRoom,
    /// The pool was shut down meanwhile.
    #[error("the models are being shut down")]
    ShutDown,
}

/// Why a model of a pool cannot be had now. The texts are for people.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The pool has no model of this name.
    #[error("there is no model {name}; there are: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The time for waiting is over, and it is still loading or finds no room.
    /// Trying again later can succeed.
    #[error("the model {name} cannot be had now: {why}; try again later")]
    Busy {
        /// The model.
        name: String,
        /// What it waits for.
        why: Waiting,
    },
    /// It cannot be loaded.
    #[error("the model {name} cannot be loaded: {failure}")]
    Failed {
        /// The model.
        name: String,
        /// What went wrong.
        failure: Arc<LoadFailure>,
    },
    /// The pool was shut down.
    #[error("the models are being shut down")]
    ShutDown,
}

/// What a model waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// It is being loaded, for longer than a caller waits.
    Load {
        /// How long the caller has waited.
        waited: Duration,
    },
    /// Memory that models in use hold.
    Room {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that there are.
        budget: u64,
        /// Who holds them, for people.
        holders: Vec<String>,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load { waited } => write!(f, "it is still being loaded after {} s", waited.as_secs()),
            Self::Room { needed, budget, holders } => {
                let (needed, budget) = (Bytes(*needed), Bytes(*budget));
                write!(f, "it needs {needed}, and the memory budget of {budget} is taken by {}", holders.join(", "))
            }
        }
    }
}

/// Bytes, for people.
pub(super) struct Bytes(pub(super) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < 1 << 20 => write!(f, "{bytes} bytes"),
            bytes => write!(f, "{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        }
    }
}
