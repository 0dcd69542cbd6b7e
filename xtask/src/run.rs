//! `cargo xtask run`: from a checkout to a served model.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{say, show};
use crate::repo::Repo;
use crate::setup::{self, Purpose};

/// Where probes and metrics are. The host serves none unless it is told where.
const ADMIN: (&str, &str, &str) = ("--admin-listen", "NALA_ADMIN_LISTEN", "127.0.0.1:3001");

/// Arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For `nala-host up`, after `spin.toml`
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Runs the verb: this process becomes the server, so that signals reach it.
///
/// The server's last line, once it answers, is a curl line to try.
///
/// # Errors
/// Set-up or build failed, or the server cannot be started.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    setup::prepare(repo, Purpose::Run)?;
    crate::build::served(repo)?;
    let mut command = host_up(repo, &args.rest, std::env::var_os(ADMIN.1).is_some());
    say(&format!("starting {}", show(&command)));
    // Returns only if it failed.
    let error = command.exec();
    Err(error).with_context(|| format!("{} cannot be run", repo.host_binary().display()))
}

/// `nala-host up`, with our defaults for what neither the arguments nor the
/// environment say; `admin_is_set` tells the latter.
fn host_up(repo: &Repo, rest: &[String], admin_is_set: bool) -> Command {
    let mut command = Command::new(repo.host_binary());
    // The host finds models/ in the folder that it is started in.
    command.current_dir(repo.root()).arg("up");
    if rest.first().is_none_or(|first| first.starts_with('-')) {
        command.arg("spin.toml");
    }
    command.args(rest);
    let (option, _, default) = ADMIN;
    if !admin_is_set && !is_given(rest, option) {
        command.args([option, default]);
    }
    command
}

/// Whether an option is among arguments, `--name value` or `--name=value`.
fn is_given(arguments: &[String], name: &str) -> bool {
    arguments
        .iter()
        .any(|argument| argument.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with('=')))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn arguments(rest: &str, admin_is_set: bool) -> String {
        let command = host_up(&Repo::at(Path::new("/repo")), &words(rest), admin_is_set);
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn given_arguments_win_over_defaults() {
        assert_eq!(arguments("", false), "up spin.toml --admin-listen 127.0.0.1:3001");
        assert_eq!(arguments("", true), "up spin.toml");
        assert_eq!(arguments("app/spin.toml --admin-listen=:80", false), "up app/spin.toml --admin-listen=:80");
        assert_eq!(
            arguments("--listen 0.0.0.0:80", false),
            "up spin.toml --listen 0.0.0.0:80 --admin-listen 127.0.0.1:3001"
        );
    }

    #[test]
    fn an_option_is_no_part_of_another() {
        assert!(is_given(&words("--listen 1:2"), "--listen"));
        assert!(!is_given(&words("--listening 1:2"), "--listen"));
    }
}
