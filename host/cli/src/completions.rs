//! `nala-host completions`.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs};

/// Runs the verb.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn main(args: &CompletionsArgs) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(script(args.shell).as_bytes())?;
    Ok(())
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nala-host", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        // clap_complete 4.6 takes the dash of the name for the beginning of a verb in
        // half of the places, so that nothing is found below the first level.
        Shell::Bash => script.replace("nala__subcmd__host", "nala__host"),
        _ => script,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn bash_completes_the_options_of_a_verb() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nala-host.bash");
        std::fs::write(&file, script(Shell::Bash)).unwrap();
        let asked = "source \"$0\"; COMP_WORDS=(nala-host up --mod); COMP_CWORD=2; \
            _nala__host nala-host --mod up; echo \"${COMPREPLY[@]}\"";
        let output = Command::new("bash").args(["-c", asked]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("--model-memory"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
