//! Values of variables out of a file `.env` beside the manifest, as Spin has them.
//!
//! Rules: <https://spinframework.dev/dynamic-configuration#environment-variable-provider>.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nala_manifest::variables;

use crate::console::Help;
use crate::wall;

/// Where the file of a manifest is, if it has one.
pub(crate) fn beside(manifest: &Path) -> PathBuf {
    wall::folder(manifest).join(".env")
}

/// What such a file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct DotEnv {
    values: BTreeMap<String, String>,
}

impl DotEnv {
    /// Reads the file beside a manifest; where there is none, it says nothing.
    ///
    /// # Errors
    /// It is there and cannot be read, or a line of it is wrong. The line is not shown: it
    /// may be a secret.
    pub(crate) fn beside(manifest: &Path) -> Result<Self, Help> {
        let path = beside(manifest);
        let unreadable = |reason: String, help: &str| {
            let what = format!("{} cannot be read: {reason}", path.display());
            Help { what, help: help.to_owned() }
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error.to_string(), "make it readable, or remove it")),
        };
        let mut values = BTreeMap::new();
        for entry in dotenvy::from_read_iter(text.as_bytes()) {
            let (name, value) = entry.map_err(|error| match error {
                dotenvy::Error::LineParse(line, _) => {
                    let number = text.find(line.as_str()).and_then(|at| text.get(..at));
                    let number = number.map_or(0, |before| before.matches('\n').count()) + 1;
                    unreadable(format!("line {number} is no NAME=VALUE"), "put values with spaces in quotes")
                }
                other => unreadable(other.to_string(), "make it readable, or remove it"),
            })?;
            values.insert(name, value);
        }
        Ok(Self { values })
    }

    /// The value that it gives a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.values.get(&variables::environment_name(name)).map(OsString::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DotEnv, Help> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), text).unwrap();
        DotEnv::beside(&folder.path().join("spin.toml"))
    }

    #[test]
    fn what_it_says_is_a_variable_s_value() {
        let said = read("# notes\nSPIN_VARIABLE_API_KEY='a b'\nexport SPIN_VARIABLE_HOME=x\nOTHER=y\n").unwrap();
        assert_eq!(said.variable("api_key"), Some("a b".into()));
        assert_eq!(said.variable("home"), Some("x".into()));
        assert_eq!(said.variable("other"), None);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(DotEnv::beside(&folder.path().join("spin.toml")).unwrap().variable("api_key"), None);
    }

    #[test]
    fn a_line_that_is_wrong_is_told_and_not_shown() {
        let error = read("A=b\n\nSPIN_VARIABLE_KEY=se cret words\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("line 3 is no NAME=VALUE") && !text.contains("cret"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".env")).unwrap();
        assert!(DotEnv::beside(&folder.path().join("spin.toml")).is_err());
    }
}
