//! Why a request got no response from its guest.

use std::time::Duration;

use nala_tenant::Exceeded;
use thiserror::Error;

use crate::control::{End, RequestControl};
use crate::outcome::{Outcome, Stopped};

/// How long the answer of a failed request waits for the reason.
const END_WAIT: Duration = Duration::from_secs(1);

/// What a client is told to wait when every instance is busy.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Why a request got no response from its guest. Other requests notice nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandleError {
    /// The guest trapped: it panicked, aborted or did something undefined.
    #[error("the handler trapped: {reason}")]
    Trap {
        /// wasmtime's name of the trap, or the guest's own words.
        reason: String,
    },
    /// The guest used up its CPU time.
    #[error("the handler used up its CPU time")]
    CpuLimit,
    /// The guest was refused more memory and ended.
    #[error("the handler ran out of memory")]
    MemoryLimit,
    /// The request took longer than its wall time.
    #[error("the handler did not finish within its wall time")]
    WallLimit,
    /// The guest returned without setting a response, or with an error.
    #[error("the handler gave no response: {reason}")]
    NoResponse {
        /// What it did instead.
        reason: String,
    },
    /// The tenant has used up what it may.
    #[error("{0}")]
    Tenant(Exceeded),
    /// No room for another instance.
    #[error("too many requests are being handled")]
    AtCapacity,
}

impl HandleError {
    /// Whether it was the guest's own doing.
    pub(crate) fn is_fault(&self) -> bool {
        match self {
            Self::Trap { .. } | Self::CpuLimit | Self::MemoryLimit | Self::WallLimit | Self::NoResponse { .. } => true,
            Self::Tenant(_) | Self::AtCapacity => false,
        }
    }

    /// What happened and what can be done, for the client.
    #[must_use]
    pub fn message(&self) -> String {
        let advice = match self {
            // It says so itself.
            Self::Tenant(exceeded) => return exceeded.to_string(),
            Self::Trap { .. } => "this is a fault of the handler; its log tells more",
            Self::CpuLimit => "raise the component's `cpu` limit, or do less in one request",
            Self::MemoryLimit => "raise the component's `memory` limit, or use less",
            Self::WallLimit => "raise the component's `wall` limit, or ask for less",
            Self::NoResponse { .. } => "this is a fault of the handler",
            Self::AtCapacity => "try again later",
        };
        format!("{self}; {advice}")
    }

    /// When it is worth to try again, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Tenant(exceeded) => exceeded.retry_after,
            Self::AtCapacity => Some(RETRY),
            _ => None,
        }
    }

    /// A word for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "trap",
            Self::CpuLimit => "cpu_limit",
            Self::MemoryLimit => "memory_limit",
            Self::WallLimit => "wall_limit",
            Self::NoResponse { .. } => "no_response",
            Self::AtCapacity => "at_capacity",
            Self::Tenant(_) => "tenant_limit",
        }
    }

    /// Reads what wasmtime returned for a request.
    pub(crate) async fn classify(error: &wasmtime::Error, control: &RequestControl) -> Self {
        // The answer can overtake the news of how the instance ended.
        let _ = tokio::time::timeout(END_WAIT, control.ended()).await;
        if let Some(reason) = control.stopped() {
            return stopped(reason);
        }
        match control.end() {
            Some(End::NotMade(error)) => error.clone(),
            Some(End::Trapped(_) | End::Failed(_)) if control.memory_refused() => {
                control.exceeded().map_or(Self::MemoryLimit, Self::Tenant)
            }
            Some(End::Trapped(reason)) => Self::Trap { reason: reason.clone() },
            Some(End::Failed(reason)) => Self::NoResponse { reason: reason.clone() },
            Some(End::Returned) | None => Self::NoResponse { reason: error.root_cause().to_string() },
        }
    }

    /// Reads why an instance could not be made, or a call into it failed.
    pub(crate) fn of(error: &wasmtime::Error, outcome: &Outcome) -> Self {
        if let Some(reason) = outcome.stopped() {
            stopped(reason)
        } else if outcome.memory_refused() {
            outcome.exceeded().map_or(Self::MemoryLimit, Self::Tenant)
        } else if error.is::<wasmtime::PoolConcurrencyLimitError>() {
            Self::AtCapacity
        } else {
            Self::Trap { reason: error.root_cause().to_string() }
        }
    }
}

/// The error that a limit ends in.
pub(crate) fn stopped(reason: Stopped) -> HandleError {
    match reason {
        Stopped::Cpu => HandleError::CpuLimit,
        Stopped::Wall => HandleError::WallLimit,
    }
}

/// Raised in the guest when its CPU time is used up.
#[derive(Debug, Error)]
#[error("the CPU time of this request is used up")]
pub(crate) struct CpuUsedUp;
