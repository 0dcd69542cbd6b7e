//! The commands of README.md, run as they stand.
//!
//! Two kinds of shell block in it are run, in order:
//! - ` ```sh serve ` starts a server. It runs until the next such block or the
//!   end of the file, and what follows waits until it answers.
//! - ` ```sh test ` must end with exit code 0.
//!
//! Others (` ```sh `) are only read by people.
//! The address 127.0.0.1:3000 is replaced by a free one, so that a server that
//! already runs here is neither asked nor in the way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{run, say};
use crate::repo::Repo;

/// The address that the README names everywhere.
const ADDRESS: &str = "127.0.0.1:3000";
/// How long a server may take to answer: the model is loaded and components
/// are compiled.
const START: Duration = Duration::from_secs(120);
/// How long a server may take to end.
const END: Duration = Duration::from_secs(30);

/// A shell block.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line where it begins, from 1.
    line: usize,
    what: What,
    script: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Must end well.
    Test,
    /// Runs while the following blocks do.
    Serve,
}

/// Runs the blocks of README.md; everything is built already.
///
/// # Errors
/// A block failed; the error names its line.
pub(crate) fn main(repo: &Repo) -> Result<()> {
    let name = "README.md";
    let text = std::fs::read_to_string(repo.path(name)).with_context(|| format!("{name} cannot be read"))?;
    let blocks = blocks(&text)?;
    if !blocks.iter().any(|block| block.what == What::Test) {
        bail!("{name} has no block that is tested: mark one with ```sh test");
    }
    let count = blocks.len();
    run_blocks(repo, name, &blocks)?;
    say(&format!("the {count} marked blocks of {name} work"));
    Ok(())
}

fn run_blocks(repo: &Repo, name: &str, blocks: &[Block]) -> Result<()> {
    let address = free_address()?;
    let mut server: Option<Server> = None;
    for block in blocks {
        let place = format!("{name}:{}", block.line);
        let mut command = shell(repo, &block.script.replace(ADDRESS, &address));
        match block.what {
            What::Test => run(&place, &mut command)
                .with_context(|| format!("the commands at {place} failed:\n{}", block.script))?,
            What::Serve => {
                if let Some(server) = server.take() {
                    server.stop()?;
                }
                say(&format!("{place}: starting a server on {address}"));
                server = Some(Server::start(&mut command, &address, &place)?);
            }
        }
    }
    server.map_or(Ok(()), Server::stop)
}

/// Bash as a person uses it, with the built programs where the README says.
fn shell(repo: &Repo, script: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(repo.root())
        .env("PATH", path(repo))
        // A target folder of the caller would take the built files elsewhere
        // than the README says.
        .env_remove("CARGO_TARGET_DIR");
    command
}

/// PATH with the host's binary and the test environment's Python in front.
fn path(repo: &Repo) -> std::ffi::OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let ours: [PathBuf; 2] = [repo.target_dir().join("release"), repo.path(".venv/bin")];
    std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&old))).unwrap_or(old)
}

/// Whether a server is up. `nala-host` listens before its model is loaded and
/// answers 503 until then; whatever else is answered comes from a server that
/// is up.
fn serves(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("GET /.well-known/nala/health HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.take(1024).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    ask().is_ok_and(|answer| answer.split(' ').nth(1).is_some_and(|status| status != "503"))
}

fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.to_string())
}

/// A server started by a block, with all the processes that it began.
struct Server {
    child: Child,
}

impl Server {
    fn start(command: &mut Command, address: &str, place: &str) -> Result<Self> {
        // A group of its own, so that the shell's children end with it.
        let child = command.process_group(0).spawn().context("bash did not start")?;
        let mut server = Self { child };
        let began = Instant::now();
        while !serves(address) {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server at {place} ended before it listened ({status})");
            }
            if began.elapsed() > START {
                bail!("the server at {place} does not serve on {address} after {START:?}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Ends it as Ctrl-C does.
    fn stop(mut self) -> Result<()> {
        self.signal("INT")?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > END {
                bail!("a server did not end within {END:?} of an interrupt");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn signal(&self, name: &str) -> Result<()> {
        Command::new("bash")
            .args(["-c", "kill -s \"$1\" -- \"-$2\"", "bash", name])
            .arg(self.child.id().to_string())
            .status()
            .context("bash did not start")?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test block failed, or the server does not end by itself. Its number
        // belongs to it until it is collected, so nothing else is hit.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

/// Takes the marked blocks out of Markdown.
fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let script: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let what = match info.trim() {
            "sh test" => What::Test,
            "sh serve" => What::Serve,
            info if info.starts_with("sh ") => {
                bail!("line {}: `{info}` is neither `sh test` nor `sh serve`", index + 1)
            }
            _ => continue,
        };
        found.push(Block { line: index + 1, what, script: script.join("\n") });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(text: &str) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        run_blocks(&Repo::at(folder.path()), "x.md", &blocks(text).unwrap())
    }

    #[test]
    fn marked_blocks_are_found_in_order() {
        let text = "# A\n```sh\nnot run\n```\n```sh serve\nup\n```\ntext\n```sh test\none\ntwo\n```\n";
        assert_eq!(
            blocks(text).unwrap(),
            [
                Block { line: 5, what: What::Serve, script: "up".to_owned() },
                Block { line: 9, what: What::Test, script: "one\ntwo".to_owned() },
            ]
        );
    }

    #[test]
    fn a_misspelt_mark_is_an_error() {
        assert!(blocks("```sh tset\n```\n").unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn a_failing_command_is_named_by_its_line() {
        run_text("```sh test\ntrue\n```\n").unwrap();
        let error = run_text("\n```sh test\nfalse | true\n```\n").unwrap_err();
        assert!(format!("{error:#}").contains("x.md:2"), "{error:#}");
    }

    #[test]
    fn a_server_is_waited_for_asked_at_another_port_and_ended() {
        let text = "\
```sh serve
python3 -m http.server --bind 127.0.0.1 $(echo 127.0.0.1:3000 | cut -d: -f2)
```
```sh test
exec 3<>/dev/tcp/$(echo 127.0.0.1:3000 | tr : /)
echo 127.0.0.1:3000 | grep -v ':3000$'
```
";
        run_text(text).unwrap();
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error() {
        let error = run_text("```sh serve\nexit 0\n```\n").unwrap_err().to_string();
        assert!(error.contains("ended before it listened"), "{error}");
    }
}
