//! Debian packages.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Purpose;
use crate::process::{run_quietly, say};

/// A Debian package and why it is needed.
struct Package {
    name: &'static str,
    /// A program it brings, looked for where there is no dpkg.
    program: Option<&'static str>,
    purpose: Purpose,
}

/// All that is needed. Rust itself brings the linker's wish for a C compiler.
const PACKAGES: &[Package] = &[
    // llama.cpp is C++, built with CMake over make.
    Package { name: "g++", program: Some("c++"), purpose: Purpose::Run },
    Package { name: "make", program: Some("make"), purpose: Purpose::Run },
    Package { name: "cmake", program: Some("cmake"), purpose: Purpose::Run },
    // Its bindings are made by bindgen, which loads libclang and asks clang for
    // the folders of the system's headers.
    Package { name: "libclang-dev", program: None, purpose: Purpose::Run },
    Package { name: "clang", program: Some("clang"), purpose: Purpose::Run },
    // Not required, but a second build of llama.cpp takes 25 s instead of minutes.
    Package { name: "ccache", program: None, purpose: Purpose::Run },
    // The line that `run` prints, and the commands of the README.
    Package { name: "curl", program: Some("curl"), purpose: Purpose::Run },
    Package { name: "ca-certificates", program: None, purpose: Purpose::Run },
    // `tidy` asks it which files are ours.
    Package { name: "git", program: Some("git"), purpose: Purpose::Test },
    // The official clients in tests; Node.js comes with them.
    Package { name: "python3", program: Some("python3"), purpose: Purpose::Test },
    Package { name: "python3-venv", program: None, purpose: Purpose::Test },
];

/// Installs what is missing, or says how.
///
/// # Errors
/// Something is missing and this is not root, or the installation failed.
pub(super) fn packages(purpose: Purpose) -> Result<()> {
    let wanted = PACKAGES.iter().filter(|package| package.purpose <= purpose);
    let Some(installed) = installed()? else {
        return programs(wanted);
    };
    let missing: Vec<&str> = wanted.map(|package| package.name).filter(|name| !installed.contains(*name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !is_root() {
        bail!(
            "the build needs Debian packages that are not installed; run this, then the same \
             command again:\n\n    sudo apt-get update && sudo apt-get install -y {names}\n"
        );
    }
    say(&format!("installing Debian packages: {names}"));
    if install(&missing).is_err() {
        // The usual reason is a package list that is empty or old.
        run_quietly("apt-get update", apt_get().arg("update"))
            .context("the package lists could not be fetched: check the network and /etc/apt")?;
        install(&missing)
            .with_context(|| format!("install these by hand, then run the same command again: {names}"))?;
    }
    Ok(())
}

fn install(names: &[&str]) -> Result<()> {
    let mut command = apt_get();
    command.args(["install", "-y", "--no-install-recommends"]).args(names);
    run_quietly("apt-get install", &mut command)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The names of installed packages; none on a system without dpkg.
fn installed() -> Result<Option<BTreeSet<String>>> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .stderr(Stdio::null())
        .output();
    match output {
        Ok(output) => Ok(Some(parse(&String::from_utf8_lossy(&output.stdout)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("dpkg-query did not start"),
    }
}

/// Reads lines of a package's name and its state.
fn parse(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.strip_suffix(" installed")).map(str::to_owned).collect()
}

/// On other systems: looks for the programs and names what must be found.
fn programs<'a>(wanted: impl Iterator<Item = &'a Package>) -> Result<()> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&str> = wanted
        .filter_map(|package| package.program)
        .filter(|program| !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
        .collect();
    if !missing.is_empty() {
        bail!(
            "this is not a Debian system, so nothing is installed by itself; these programs are \
             missing, install them (and libclang with its headers) by the system's own means: {}",
            missing.join(" ")
        );
    }
    Ok(())
}

/// Whether this process runs as root: the owner of its entry in /proc.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_are_wholly_installed_count() {
        let found = parse("cmake installed\nclang config-files\ng++ half-installed\n");
        assert!(found.contains("cmake"));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_missing_program_is_named() {
        let package = Package { name: "x", program: Some("no-such-program"), purpose: Purpose::Run };
        let error = programs([&package].into_iter()).unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
    }
}
