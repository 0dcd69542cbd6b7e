//! What is deployed: components as blobs named by their digest, and the
//! versions of each tenant's applications, in a folder that is whole after a
//! crash at any moment; and a jail, in which components are compiled.
//!
//! [`State`] is the way in. Each change of it has one moment at which it
//! happens, the renaming or removal of one small record. What was written
//! before that moment is named by nothing yet, and is cleared away when the
//! folder is opened the next time; so a folder holds a change or does not hold
//! it, and never a part of it. A change is answered only once it would outlive
//! a power failure.
//!
//! [`Jail`] runs a helper as a process of its own, with limits on its time, its
//! memory and what it writes: a compiler reads what strangers send.
//!
//! Nothing here runs, compiles or serves.

mod digest;
mod disk;
mod draft;
mod error;
mod index;
mod jail;
mod layout;
mod manifest;
mod name;
mod record;
mod scan;
mod state;

#[cfg(test)]
mod power_loss;

pub use digest::{Digest, InvalidDigest};
pub use error::Error;
pub use jail::{Compiled, InvalidLimits, Jail, JailError, JailLimits, Slowness};
pub use manifest::{Component, Deployed, InvalidManifest, Manifest, Version};
pub use name::{AppName, InvalidName, TenantName};
pub use record::VersionNumber;
pub use state::{Collected, History, Listed, State, TenantLimits, Usage};
