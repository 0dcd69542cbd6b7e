//! Values of variables out of a file `.env` beside the manifest, as Spin has them.
//!
//! Rules: <https://spinframework.dev/dynamic-configuration#environment-variable-provider>.

mod lines;

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
    /// It is there and cannot be read, a line of it is wrong, or one asks for something of
    /// the environment. The line is not shown: it may be a secret.
    pub(crate) fn beside(manifest: &Path) -> Result<Self, Help> {
        let path = beside(manifest);
        let unreadable = |reason: String, help: &str| {
            let what = format!("{} cannot be read: {reason}", path.display());
            Help { what, help: help.to_owned() }
        };
        let text = match nala_manifest::file::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(unreadable(error.to_string(), "make it a file of text that can be read, or remove it"));
            }
        };
        let values = lines::read(&text).map_err(|wrong| unreadable(wrong.to_string(), wrong.help()))?;
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
        // The words stand in an earlier line as well, which is sound.
        let error = read("A=b\nNOTES='se cret words'\n\nSPIN_VARIABLE_KEY=se cret words\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("line 4 is no NAME=VALUE") && !text.contains("cret"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".env")).unwrap();
        assert!(DotEnv::beside(&folder.path().join("spin.toml")).is_err());
        // Whoever opened a pipe would wait for a writer, and a device has no end.
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(".env")).unwrap();
        let error = DotEnv::beside(&folder.path().join("spin.toml")).unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }

    #[test]
    fn nothing_comes_out_of_the_environment() {
        // It is set wherever tests run.
        let (name, secret) = ("PATH", std::env::var("PATH").unwrap());
        for value in [
            format!("${{{name}}}"),
            format!("${name}"),
            format!("\"${{{name}}}\""),
            format!("\"${name}\""),
            format!("key-${{{name}}}"),
            format!("'a'${name}"),
            format!("$none_such${name}"),
            format!("\\\\${name}"),
        ] {
            let error = read(&format!("A='b'\nSPIN_VARIABLE_KEY={value}\n")).unwrap_err();
            let (text, help) = (error.to_string(), error.help);
            assert!(text.contains("line 2 has a `$`") && help.contains("single quotes"), "{value}: {text} {help}");
            assert!(!text.contains(&secret) && !text.contains(name), "{value}: {text}");
        }
        for literal in [format!("'${{{name}}}'"), format!("\\${{{name}}}"), format!("\"\\${{{name}}}\"")] {
            let said = read(&format!("SPIN_VARIABLE_KEY={literal}\n")).unwrap();
            assert_eq!(said.variable("key"), Some(format!("${{{name}}}").into()), "{literal}");
        }
    }
}
