//! One build command, and how it ends.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio_util::sync::CancellationToken;

use super::passing::{Passing, Stream};
use crate::console::{Console, Help};

/// How often it is looked whether a command has ended, or is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a command may take to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// What can end a command before it is done.
#[derive(Debug, Clone)]
pub(crate) enum Leash {
    /// The terminal, whose signals it gets as this process does.
    Terminal,
    /// Whoever holds the token. The command and all that it started are told to end.
    Token(CancellationToken),
}

/// Runs a command by the shell, and passes on what it says.
///
/// # Errors
/// It cannot be started, fails, or was ended.
pub(super) fn run(id: &str, command: &str, folder: &Path, leash: &Leash, console: Console) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !folder.as_os_str().is_empty() {
        shell.current_dir(folder);
    }
    if let Leash::Token(_) = leash {
        // So that all of it can be ended, and a Ctrl-C is not its.
        shell.process_group(0);
    }
    let mut child = shell.spawn().with_context(|| format!("`sh` cannot be started in {}", shown(folder)))?;
    let mut passing = Passing::default();
    passing.add(id, child.stdout.take(), Stream::Output, console);
    passing.add(id, child.stderr.take(), Stream::Errors, console);
    let status = wait(&mut child, leash)?;
    passing.finish();
    if status.success() {
        return Ok(());
    }
    Err(Help {
        what: format!("the component `{id}` is not built: `{command}` ended with {status}"),
        help: format!("what it said stands above; it ran in {}", shown(folder)),
    }
    .into())
}

fn wait(child: &mut Child, leash: &Leash) -> anyhow::Result<ExitStatus> {
    let token = match leash {
        Leash::Terminal => return Ok(child.wait()?),
        Leash::Token(token) => token,
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if token.is_cancelled() {
            return end(child);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends a command and what it started.
fn end(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let group = Pid::from_child(child);
    // Its leader is not waited for yet, so the group is still this one. A group that has
    // just ended cannot be told to, and need not be.
    let _ended = kill_process_group(group, Signal::TERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
    let _ended = kill_process_group(group, Signal::KILL);
    Ok(child.wait()?)
}

fn shown(folder: &Path) -> String {
    match folder.as_os_str().is_empty() {
        true => "the current folder".to_owned(),
        false => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(command: &str, folder: &Path, leash: &Leash) -> anyhow::Result<()> {
        run("x", command, folder, leash, Console::Plain)
    }

    #[test]
    fn commands_run_in_their_folder_and_failures_are_told_with_the_command() {
        let folder = tempfile::tempdir().unwrap();
        sh("echo made > file && echo said", folder.path(), &Leash::Terminal).unwrap();
        assert!(folder.path().join("file").is_file());
        for (command, status) in [("echo wrong >&2; exit 3", "exit status: 3"), ("kill -9 $$", "signal: 9")] {
            for leash in [Leash::Terminal, Leash::Token(CancellationToken::new())] {
                let error = sh(command, folder.path(), &leash).unwrap_err().to_string();
                assert!(error.contains(command) && error.contains(status), "{error}");
            }
        }
    }

    #[test]
    fn what_a_command_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let token = CancellationToken::new();
        let ender = token.clone();
        let started = folder.path().join("started");
        let thread = std::thread::spawn(move || {
            while !started.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            ender.cancel();
        });
        let begin = Instant::now();
        let error = sh("sleep 60 & touch started; sleep 60", folder.path(), &Leash::Token(token)).unwrap_err();
        assert!(error.to_string().contains("signal: 15"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30), "it was waited for");
        thread.join().unwrap();
    }

    #[test]
    fn a_process_that_stays_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        sh("sleep 60 & true", folder.path(), &Leash::Terminal).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(30), "it was waited for");
    }
}
