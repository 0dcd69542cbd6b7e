//! Access tokens (OAuth 2.1) that say whose a request is: JWTs of authorization servers
//! that the operator trusts (RFC 9068, RFC 7519).
//!
//! The host is a resource server: it asks nobody about a token, but checks the signature by
//! the keys that its issuer publishes, which are fetched beforehand and again from time to
//! time ([`Tokens::follow`]). Where tokens come from is told to clients by protected-resource
//! metadata ([`Tokens::metadata`], RFC 9728).
//!
//! A token for another audience is refused, whoever signed it; one that is right is given to
//! nobody, neither to guests nor to servers elsewhere.

mod claims;
mod fetch;
mod issuer;
mod keys;
mod metadata;
mod provider;
mod tokens;

pub use fetch::FetchError;
pub use issuer::{Issuer, Keys, Whose};
pub use metadata::{Fault, WELL_KNOWN};
pub use tokens::{Refused, Tokens};
