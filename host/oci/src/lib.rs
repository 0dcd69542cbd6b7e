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
//! A registry is believed nothing. All that it sends is bounded before it is kept:
//! components by the caller, manifests, tokens, lists of tags and words of errors here;
//! one deadline bounds the whole. It may lead elsewhere, as registries do for tokens and
//! for what they keep in a storage of others: five times, never from TLS to plain text,
//! and with [`Reach::Listed`] to public addresses only. What is shown to a registry is
//! shown to nobody else, but that a password goes to whoever gives the tokens for it.
//!
//! The conversation is our own, over reqwest, since the clients there are read manifests
//! and errors without a bound and follow whatever redirect; the names of references are
//! read by oci-spec, challenges by http-auth.
//! How many bytes the head of an answer has is bounded by hyper (some 400 KiB).

mod artifact;
mod challenge;
mod client;
mod credentials;
mod digest;
mod download;
mod error;
mod pull;
mod push;
mod reference;
mod session;
mod tags;
mod web;

pub use client::{Client, Progress, Transport};
pub use credentials::Credentials;
pub use digest::{Digest, InvalidDigest};
pub use error::Error;
pub use pull::{Pulled, component_of};
pub use reference::{InvalidReference, Reference};
pub use web::{Listed, Reach};
