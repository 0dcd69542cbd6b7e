//! `cargo xtask bench`: the benchmarks of the tests crate.

mod peer;
mod wasmtime;

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::cargo::cargo;
use crate::process::{run, say};
use crate::repo::Repo;
use crate::setup::{self, Purpose};

/// Arguments of `bench`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Option<Which>,
    /// For the benchmark binary
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// A benchmark. Without a name it is what serving costs over a bare decode loop.
#[derive(clap::Subcommand)]
enum Which {
    /// Beside another server in the same run: Debian sid's llama-server
    ///
    /// Its packages are downloaded and unpacked below `target/peer`, and nothing
    /// is installed. `--peer-command` measures beside any other llama-server.
    /// Arguments after `--` go to the benchmark: `--only`, `--rounds`,
    /// `--tokens`, `--streams`, `--help`.
    Peer(peer::Args),
    /// What a tenant notices of hostile neighbours
    ///
    /// Arguments after `--` go to the benchmark: `--rounds`, `--seconds`,
    /// `--connections`, `--only`.
    Neighbours(Plain),
    /// A handler that says hello, beside `wasmtime serve` in the same run
    ///
    /// wasmtime is compiled below `target/peer`, once, or named by
    /// `--peer-command`. Arguments after `--` go to the benchmark: `--rounds`,
    /// `--seconds`, `--connections`.
    Hello(wasmtime::Args),
    /// What is left of half an hour of everything at once
    ///
    /// Arguments after `--` go to the benchmark: `--minutes`.
    Soak(Plain),
}

/// Arguments of a benchmark that has no peer.
#[derive(clap::Args)]
struct Plain {
    /// For the benchmark binary
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// Runs the verb.
///
/// # Errors
/// Set-up, build or benchmark failed.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    setup::prepare(repo, Purpose::Run)?;
    match &args.which {
        None => measure(repo, "serving", &args.rest),
        Some(Which::Neighbours(plain)) => measure(repo, "neighbours", &plain.rest),
        Some(Which::Soak(plain)) => measure(repo, "soak", &plain.rest),
        Some(Which::Hello(hello)) => {
            let mut rest = vec!["--peer-command".into(), hello.command(repo)?];
            rest.extend(hello.rest().iter().cloned());
            measure(repo, "hello", &rest)
        }
        Some(Which::Peer(peer)) => {
            // First: what cannot be had is better known before minutes of building.
            let command = peer.command(repo)?;
            let mut rest = vec!["--peer-command".into(), command];
            rest.extend(peer.rest().iter().cloned());
            measure(repo, "peer", &rest)
        }
    }
}

fn measure(repo: &Repo, bench: &str, rest: &[OsString]) -> Result<()> {
    crate::build::served(repo)?;
    say("the machine should do nothing else now: llama.cpp's threads spin while they wait");
    run("benchmarks", &mut bench_command(repo, bench, rest))
}

fn bench_command(repo: &Repo, bench: &str, rest: &[OsString]) -> Command {
    let mut command = cargo(repo.root());
    // The whole workspace, as in the build before: one package alone would get
    // other features of its dependencies, and so another compile of them.
    command.args(["bench", "--workspace", "--bench", bench, "--"]).args(rest);
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Args {
        Line::try_parse_from(line.split(' ')).unwrap().args
    }

    #[test]
    fn arguments_after_the_dashes_go_to_the_benchmark() {
        let args = parse("bench -- --rounds 3");
        assert!(args.which.is_none());
        assert_eq!(args.rest, ["--rounds", "3"]);

        let args = parse("bench neighbours -- --only spin");
        let Some(Which::Neighbours(neighbours)) = args.which else { panic!("another benchmark") };
        assert_eq!(neighbours.rest, ["--only", "spin"]);

        let args = parse("bench soak -- --minutes 1");
        let Some(Which::Soak(soak)) = args.which else { panic!("another benchmark") };
        assert_eq!(soak.rest, ["--minutes", "1"]);

        let args = parse("bench hello --peer-command a -- --rounds 1");
        let Some(Which::Hello(hello)) = args.which else { panic!("another benchmark") };
        assert_eq!(hello.rest(), ["--rounds", "1"]);

        let args = parse("bench peer --backend icelake -- --only tree");
        let Some(Which::Peer(peer)) = args.which else { panic!("another benchmark") };
        assert_eq!(peer.rest(), ["--only", "tree"]);
        assert!(Line::try_parse_from(["bench", "peer", "--backend", "a", "--peer-command", "b"]).is_err());
    }

    #[test]
    fn a_benchmark_is_called_by_its_name() {
        let command = bench_command(&Repo::at(Path::new("/repo")), "peer", &["--rounds".into(), "1".into()]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(words.join(" "), "bench --workspace --bench peer -- --rounds 1");
    }
}
