//! Scripts that ask a server through official clients.

use std::path::{Path, PathBuf};
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
    fn command(self, script: &str) -> Command {
        let (program, folder) = match self {
            Self::Python => (".venv/bin/python", "tests/python"),
            Self::PythonBefore => (".venv-openai2/bin/python", "tests/python"),
            Self::Node => (".venv/bin/node", "tests/node"),
        };
        let mut command = Command::new(paths::installed(program));
        command
            .arg(paths::root().join(folder).join(script))
            // Nothing is written into the checkout, and no proxy is asked for this machine.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NO_PROXY", "127.0.0.1");
        command
    }
}

/// Runs a script against a host. It has to end well, with a line that begins with `ok`.
pub fn holds(host: &Host, runner: Runner, script: &str) {
    ends_well(runner.command(script).env("NALA_URL", host.url("")));
}

/// Sends about so many requests that are made from the server's own description.
pub fn survives_requests(host: &Host, about: u32) {
    let mut command = Runner::Python.command("openapi_fuzz.py");
    // Each bound and each kind of mistake once would be thousands more.
    command.arg(about.to_string()).env("NALA_URL", host.url("")).env("NALA_FUZZ_PHASES", "fuzzing");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" requests: "), "{said}");
}

/// Runs a script over files; it has to end in the same way.
pub fn accepts(runner: Runner, script: &str, files: &[PathBuf]) {
    ends_well(runner.command(script).args(files));
}

/// Runs MCP's conformance suite against a server, and gives its summary.
///
/// # Panics
/// A scenario that counts does not pass.
#[must_use]
pub fn conforms(url: &str, requirements: &str) -> String {
    suite(&["server", "--url", url, "--requirements", requirements], "=== SUMMARY ===")
}

/// Runs MCP's conformance suite against a client, which it starts for each scenario, and gives
/// its summary.
///
/// # Panics
/// A scenario that counts does not pass.
#[must_use]
pub fn conforms_as_client(client: &Path, requirements: &str) -> String {
    let client = client.display().to_string();
    suite(&["client", "--command", &client, "--requirements", requirements], "=== SUITE SUMMARY ===")
}

fn suite(args: &[&str], title: &str) -> String {
    let mut command = Runner::Node.command("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    command.args(args);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // It says some of it on one and some on the other.
    let all = format!("{errors}\n{said}");
    let summary = all.split_once(title).map_or("", |(_, summary)| summary.trim());
    assert!(output.status.success() && !summary.is_empty(), "{command:?}: {}\n{said}{errors}", output.status);
    summary.to_owned()
}

fn ends_well(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = said.lines().last().unwrap_or_default();
    assert!(
        output.status.success() && last.starts_with("ok"),
        "{command:?} ended with {}:\n{said}{errors}",
        output.status
    );
}
