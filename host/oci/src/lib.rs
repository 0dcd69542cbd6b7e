//! Components pulled from and pushed to OCI registries, in the layout that wkg
//! and others use: a manifest whose config has the media type
//! `application/vnd.wasm.config.v0+json` and whose one layer is the component,
//! `application/wasm`.
//!
//! Source: <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>.
//!
//! [`Client`] is the way in. What it returns is checked against the digest that a
//! [`Reference`] pins, or that its tag stands for.
//!
//! A component's size is bounded while it is read. The size of manifests, tokens
//! and error messages is not: oci-client reads those as a whole, and only the
//! deadline ends that. Where strangers choose the registry, pull in a process
//! whose memory is bounded.

mod artifact;
mod client;
mod credentials;
mod digest;
mod error;
mod pull;
mod push;
mod reference;

pub use client::{Client, Transport};
pub use credentials::Credentials;
pub use digest::{Digest, InvalidDigest};
pub use error::Error;
pub use pull::Pulled;
pub use reference::{InvalidReference, Reference};
