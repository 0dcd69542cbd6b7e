//! The binary, run to its end.

use std::path::Path;
use std::process::Command;

use crate::support;

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary with no models, no cache and nothing of the user's settings.
pub(crate) fn nala(home: &Path, args: &[&str]) -> Ran {
    ran(support::command(home).args(args))
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
