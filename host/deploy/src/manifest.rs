//! What is deployed, and what is remembered of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::record::VersionNumber;

/// Bytes of a `spin.toml` at most.
const LONGEST_SPIN_TOML: usize = 256 * 1024;
/// Bytes of a note, and of who deployed, at most.
const LONGEST_NOTE: usize = 4096;
/// Bytes of a component's facts as JSON at most.
const LONGEST_FACTS: usize = 64 * 1024;
/// Bytes of a component's id at most.
const LONGEST_ID: usize = 64;
/// Components of one application at most.
const MOST_COMPONENTS: usize = 256;

/// A version of an application, as it is given to be deployed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The text of `spin.toml`, at most 256 KiB. It is kept as it is given:
    /// whoever deploys has read it.
    pub spin_toml: String,
    /// The components by their ids in `spin.toml`: 1 to 256.
    pub components: BTreeMap<String, Component>,
    /// What whoever deployed says about it, at most 4 KiB.
    pub note: String,
    /// Who deployed it, as the caller knows them, at most 4 KiB.
    pub by: String,
    /// When, in seconds since 1970.
    pub created_unix_s: u64,
}

/// A component of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// What [`crate::State::put_component`] said.
    pub digest: Digest,
    /// What the caller knows about it and wants to be told again, at most
    /// 64 KiB as JSON: the imports that it asks for, those that are granted,
    /// its limits.
    pub facts: serde_json::Value,
}

/// A version of an application, as it was deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Its number.
    pub number: VersionNumber,
    /// The text of `spin.toml`.
    pub spin_toml: String,
    /// The components by their ids in `spin.toml`.
    pub components: BTreeMap<String, Deployed>,
    /// What whoever deployed said about it.
    pub note: String,
    /// Who deployed it.
    pub by: String,
    /// When, in seconds since 1970.
    pub created_unix_s: u64,
}

/// A component of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployed {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub bytes: u64,
    /// What the caller knew about it.
    pub facts: serde_json::Value,
}

impl Version {
    /// The file of a version.
    ///
    /// # Errors
    /// It would not read back as the same, for example for its depth.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, InvalidManifest> {
        let unreadable = |error: serde_json::Error| InvalidManifest::Unreadable(error.to_string());
        let bytes = serde_json::to_vec_pretty(self).map_err(unreadable)?;
        let read: Self = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if read != *self {
            return Err(InvalidManifest::Unreadable("a number has more digits than can be kept".to_owned()));
        }
        Ok(bytes)
    }

    /// What its components are, each once.
    pub(crate) fn digests(&self) -> BTreeSet<Digest> {
        self.components.values().map(|component| component.digest).collect()
    }
}

/// Why a manifest is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidManifest {
    /// An application of nothing, or of too much.
    #[error("an application has 1 to {MOST_COMPONENTS} components, and this one has {0}")]
    Components(usize),
    /// An id that is empty, long or has other characters.
    #[error(
        "`{}` cannot be the id of a component: write 1 to {LONGEST_ID} of the characters a-z, A-Z, 0-9, `-` and `_`",
        .0.escape_debug()
    )]
    Id(String),
    /// What would be written could not be read again.
    #[error("what is told about the components cannot be kept: {0}; nest it less deeply")]
    Unreadable(String),
    /// A text that is too long.
    #[error("{what} has {bytes} bytes, and {limit} is the limit: make it shorter")]
    TooLong {
        /// Which.
        what: String,
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it may have.
        limit: usize,
    },
}

impl Manifest {
    pub(crate) fn check(&self) -> Result<(), InvalidManifest> {
        short("spin.toml", self.spin_toml.len(), LONGEST_SPIN_TOML)?;
        short("the note", self.note.len(), LONGEST_NOTE)?;
        short("the name of who deploys", self.by.len(), LONGEST_NOTE)?;
        if !(1..=MOST_COMPONENTS).contains(&self.components.len()) {
            return Err(InvalidManifest::Components(self.components.len()));
        }
        for (id, component) in &self.components {
            let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if !(1..=LONGEST_ID).contains(&id.len()) || !id.bytes().all(good) {
                return Err(InvalidManifest::Id(id.chars().take(LONGEST_ID).collect()));
            }
            let facts = component.facts.to_string();
            short(&format!("what is told about the component `{id}`"), facts.len(), LONGEST_FACTS)?;
        }
        Ok(())
    }
}

fn short(what: &str, bytes: usize, limit: usize) -> Result<(), InvalidManifest> {
    if bytes > limit {
        return Err(InvalidManifest::TooLong { what: what.to_owned(), bytes, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let component = Component { digest: Digest::of(b"x"), facts: serde_json::json!({"imports": []}) };
        Manifest { components: BTreeMap::from([("front".to_owned(), component)]), ..Manifest::default() }
    }

    #[test]
    fn what_is_too_long_is_named() {
        assert_eq!(manifest().check(), Ok(()));
        let long = Manifest { note: "x".repeat(5000), ..manifest() };
        let error = long.check().unwrap_err().to_string();
        assert_eq!(error, "the note has 5000 bytes, and 4096 is the limit: make it shorter");
        let long = Manifest { spin_toml: "x".repeat(300_000), ..manifest() };
        assert!(long.check().unwrap_err().to_string().starts_with("spin.toml has 300000 bytes"));
        let mut long = manifest();
        long.components.get_mut("front").unwrap().facts = serde_json::json!("x".repeat(70_000));
        assert!(long.check().unwrap_err().to_string().contains("component `front`"));
    }

    #[test]
    fn ids_and_their_number_are_bounded() {
        let component = manifest().components["front"].clone();
        for id in ["", "a b", "a/b", "é", &"x".repeat(65)] {
            let components = BTreeMap::from([(id.to_owned(), component.clone())]);
            assert!(matches!(Manifest { components, ..manifest() }.check(), Err(InvalidManifest::Id(_))), "{id}");
        }
        assert_eq!(Manifest::default().check(), Err(InvalidManifest::Components(0)));
        let components = (0..257).map(|n| (n.to_string(), component.clone())).collect();
        assert_eq!(Manifest { components, ..manifest() }.check(), Err(InvalidManifest::Components(257)));
    }
}
