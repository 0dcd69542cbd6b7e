//! Scripts that ask a server through official clients.

use std::path::PathBuf;
use std::process::Command;

use crate::host::Host;
use crate::paths;

/// What runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// Python with the newest clients.
    Python,
    /// Python with the major version of OpenAI's client before the newest.
    PythonBefore,
    /// Node.js with npm's clients.
    Node,
}

impl Runner {
    fn program(self) -> PathBuf {
        match self {
            Self::Python => paths::installed(".venv/bin/python"),
            Self::PythonBefore => paths::installed(".venv-openai2/bin/python"),
            Self::Node => paths::installed(".venv/bin/node"),
        }
    }

    fn folder(self) -> PathBuf {
        paths::root().join(match self {
            Self::Python | Self::PythonBefore => "tests/python",
            Self::Node => "tests/node",
        })
    }
}

/// Runs a script against a host. It has to end well and with the line `ok`.
pub fn holds(host: &Host, runner: Runner, script: &str) {
    let output = Command::new(runner.program())
        .arg(runner.folder().join(script))
        .env("NALA_URL", host.url(""))
        // Nothing is written into the checkout, and no proxy is asked for this machine.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap_or_else(|error| panic!("{runner:?} does not start: {error}"));
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.lines().last() == Some("ok"),
        "{script}, run by {runner:?}, ended with {}:\n{said}{errors}",
        output.status
    );
}
