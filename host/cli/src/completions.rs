//! `nala-host completions`.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};

/// Runs the verb.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn main(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nala-host", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}
