//! `cargo xtask fuzz`: runs each fuzz target for a while.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::cargo;
use crate::process::run;
use crate::repo::Repo;

/// The programs of `fuzz/Cargo.toml`.
const TARGETS: [&str; 3] = ["text", "gbnf", "grammars"];
/// What cargo-fuzz gives the compiler for coverage, without a sanitizer: those
/// need a nightly compiler.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                        -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// How `cargo xtask fuzz` is called.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each target runs, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run only this target
    #[arg(long, value_parser = TARGETS)]
    target: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// A target does not build, or finds something; the input that shows it is then
/// in `fuzz/artifacts`.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    let targets = TARGETS.iter().filter(|name| args.target.as_deref().is_none_or(|only| only == **name));
    fuzz(repo, targets.copied(), args.seconds)
}

/// Runs all targets.
///
/// # Errors
/// As of [`main`].
pub(crate) fn everything(repo: &Repo, seconds: u32) -> Result<()> {
    fuzz(repo, TARGETS.into_iter(), seconds)
}

fn fuzz(repo: &Repo, targets: impl Iterator<Item = &'static str>, seconds: u32) -> Result<()> {
    let folder = repo.path("fuzz");
    let built = repo.target_dir().join("fuzz");
    let host = host()?;
    let mut build = cargo(&folder);
    // With a target named, build scripts and macros are not instrumented.
    build.args(["build", "--release", "--locked", "--target", &host]).arg("--target-dir").arg(&built);
    run("building the fuzz targets", build.env("RUSTFLAGS", COVERAGE))?;
    for target in targets {
        // What is found new stays out of the checkout.
        let found = built.join("corpus").join(target);
        let artifacts = folder.join("artifacts").join(target);
        for folder in [&found, &artifacts] {
            std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        let mut fuzz = Command::new(built.join(&host).join("release").join(target));
        fuzz.current_dir(&folder).arg(&found).arg(folder.join("corpus").join(target));
        fuzz.args([
            &format!("-max_total_time={seconds}"),
            &format!("-artifact_prefix={}/", artifacts.display()),
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-max_len=4096",
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
        run(&format!("fuzzing {target} for {seconds} s"), &mut fuzz)
            .with_context(|| format!("what {target} found is in {}", artifacts.display()))?;
    }
    Ok(())
}

/// The machine's own target.
fn host() -> Result<String> {
    let text = crate::process::capture(Command::new("rustc").arg("-vV"))?;
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("rustc -vV does not name its host"),
    }
}
