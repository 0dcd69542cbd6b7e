//! What the operator says of an authorization server.

use std::path::{Path, PathBuf};

use url::Url;

/// An authorization server whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// What it calls itself, which its tokens repeat (`iss`).
    pub issuer: String,
    /// The address of this host as clients know it, which tokens for it name (`aud`).
    pub audience: Url,
    /// Where its keys are.
    pub keys: Keys,
    /// Whose requests with its tokens are.
    pub whose: Whose,
    /// What a token has to allow (`scope`), all of it.
    pub scopes: Vec<String>,
}

impl Issuer {
    /// What tokens for this host may call it: an address without a path can end in a slash
    /// or not.
    pub(crate) fn audiences(&self) -> [&str; 2] {
        let audience = self.audience.as_str();
        [audience, audience.trim_end_matches('/')]
    }
}

/// Where the keys of an issuer are: a JSON Web Key Set (RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// Where its metadata says (RFC 8414, OpenID Connect Discovery 1.0).
    Discovered,
    /// At an address.
    At(Url),
    /// In a file of this machine.
    File(PathBuf),
}

impl Keys {
    /// Whether somebody elsewhere is asked for them.
    #[must_use]
    pub fn are_elsewhere(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// The file that they are in.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Discovered | Self::At(_) => None,
        }
    }
}

/// Whose a request with a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Always this tenant's.
    Tenant(String),
    /// That of the tenant which this claim names.
    Claim(String),
}
