//! Components that are elsewhere when they are asked for: at an address, in a registry, or
//! a package of one. [`Fetcher::fetch`] is the one way in; it gives a file.
//!
//! What was fetched is kept by its digest, and hashed again each time it is asked for: a
//! second start needs no network, and a file that was changed is fetched anew. What is
//! named by a digest is the same for ever. What a package's version stands for is noted
//! when it is fetched first, and is asked for by that digest from then on; a tag is looked
//! up each time.
//!
//! What comes is bounded in bytes and in time; how the network is treated, and what a
//! registry may do, is in `nala-oci`.

mod cache;
mod error;
mod fetcher;
mod package;

pub use error::Error;
pub use fetcher::{Fetched, Fetcher, Network, Settings, Wanted, Was};
