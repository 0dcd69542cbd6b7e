//! The name of an application, which is also one of a component, a package and a crate.

use std::str::FromStr;

/// The longest name, in characters.
const MAX: usize = 64;

/// Names that a package cannot have, or that would stand for another one: Rust's words,
/// the crates that are always there, and those that the templates use.
const TAKEN: &str = "\
    abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro match mod move mut \
    nala-sdk override priv proc-macro pub ref return self static std struct super test trait true try \
    type typeof unsafe unsized use virtual wasip2 where while yield";

/// A name that is good for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectName(String);

impl ProjectName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the file that Cargo makes, without its ending.
    pub(crate) fn file_stem(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl FromStr for ProjectName {
    type Err = String;

    /// As the identifiers of components in Spin's manifest, and in lower case only.
    fn from_str(text: &str) -> Result<Self, String> {
        let good = "such as my-app: words of lower-case letters and digits that begin with a letter, with `-` between";
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if !text.split('-').all(is_word) {
            return Err(format!("write a name {good}"));
        }
        if text.len() > MAX {
            return Err(format!("the name has {} characters, and at most {MAX} are taken", text.len()));
        }
        if TAKEN.split_whitespace().any(|word| word == text) {
            return Err("Rust or Cargo use this word for something else: choose another, such as my-app".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_good_for_a_component_a_package_and_a_folder() {
        for name in ["a", "my-app", "app2", "a-b-c"] {
            assert_eq!(name.parse::<ProjectName>().unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in
            ["", "-", "a-", "A", "a_b", "a b", "a/b", "..", "1a", "a-1", "é", "fn", "unsafe", "std", "nala-sdk", &long]
        {
            assert!(name.parse::<ProjectName>().is_err(), "{name}");
        }
    }
}
