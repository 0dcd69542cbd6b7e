//! Developer commands, one module a verb.
//!
//! `cargo xtask` is an alias in `.cargo/config.toml`.
//! Everything printed here goes to standard error, so that the output of the
//! programs that are run stays alone on standard output.

mod apt;
mod bench;
mod build;
mod cargo;
mod ci;
mod conformance;
mod deny;
mod fuzz;
mod process;
mod readme;
mod repo;
mod run;
mod setup;
mod summary;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use repo::Repo;

/// The developer commands of Nala.
///
/// Begin with `cargo xtask run` to serve a model, or `cargo xtask test` to run
/// every test; both set up the machine first.
/// Whatever is already done is skipped, so a command that was stopped is simply
/// run again.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what the build needs and download the default model
    ///
    /// As root, missing Debian packages are installed with apt-get; otherwise
    /// the one command to run is printed and set-up ends there.
    /// The Wasm target comes through rustup, the model goes to `models/`.
    Setup(setup::Args),
    /// Build the components, then the host, in release, then the tool that runs Python
    ///
    /// What makes that one comes from PyPI, into an environment of its own.
    Build,
    /// Set up, build, and serve spin.toml on 127.0.0.1:3000
    ///
    /// Ends by printing a curl line that works.
    /// Arguments after `--` go to `nala-host up`:
    /// `cargo xtask run -- --listen 0.0.0.0:8080`.
    Run(run::Args),
    /// Set up and run every test
    ///
    /// Native tests of the components, unit and end-to-end tests of the host on
    /// the real model, and the commands of README.md.
    Test(test::Args),
    /// Run the conformance suite of a protocol, and show what it says
    ///
    /// Sets up and builds first. The suite is part of `cargo xtask test` as well.
    Conformance(conformance::Args),
    /// Everything that must pass before a change is merged
    ///
    /// Formatting, tidy, clippy with warnings denied, tests, rustdoc, licences,
    /// bans, sources and advisories of dependencies; with the time of each.
    Ci,
    /// Check the project's own rules
    ///
    /// File sizes, where `unsafe` may stand, what each crate may depend on,
    /// documentation of WIT items, links in Markdown and the like.
    Tidy,
    /// Run the benchmarks on the real model
    ///
    /// Arguments after `--` go to the benchmark binary.
    Bench(bench::Args),
    /// Run the fuzz targets, each for a while
    ///
    /// What one finds is in `fuzz/artifacts`; run the target with that file as its
    /// argument to see it again.
    Fuzz(fuzz::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    match call(args.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // All causes in one line; a backtrace would bury what to do.
            eprintln!("xtask: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn call(verb: Verb) -> anyhow::Result<()> {
    let repo = Repo::find()?;
    match verb {
        Verb::Setup(args) => setup::main(&repo, &args),
        Verb::Build => build::main(&repo),
        Verb::Run(args) => run::main(&repo, &args),
        Verb::Test(args) => test::main(&repo, &args),
        Verb::Conformance(args) => conformance::main(&repo, &args),
        Verb::Ci => ci::main(&repo),
        Verb::Tidy => tidy::main(&repo),
        Verb::Bench(args) => bench::main(&repo, &args),
        Verb::Fuzz(args) => fuzz::main(&repo, &args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
