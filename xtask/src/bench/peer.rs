//! The server that `cargo xtask bench peer` measures beside.
//!
//! Debian sid's llama-server is one that anybody can have in the same build. It
//! wants sid's C library, so it runs by sid's own loader, and Debian builds its
//! kernels once for each micro-architecture: by default those are taken whose CPU
//! features are those of our own build.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::apt::Shelf;
use crate::process::say;
use crate::repo::Repo;

/// The server, and all that it loads.
const PACKAGES: &[&str] = &[
    "llama.cpp-tools",
    "libllama0",
    "libggml0",
    "libc6",
    "libstdc++6",
    "libgcc-s1",
    "libgomp1",
    "libssl3t64",
    // libcrypto's compression.
    "libzstd1",
    "zlib1g",
];

/// Arguments of `bench peer`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The peer's kernels, as Debian names them: haswell, icelake,
    /// sapphirerapids, armv8.2_2 …; all that there are, if the name is wrong
    /// [default: those with the CPU features of our own build]
    #[arg(long, value_name = "NAME", conflicts_with = "peer_command")]
    backend: Option<String>,
    /// Another llama-server, as a program with arguments, instead of Debian's
    #[arg(long, value_name = "COMMAND")]
    peer_command: Option<OsString>,
    /// For the benchmark binary
    #[arg(last = true)]
    rest: Vec<OsString>,
}

impl Args {
    /// What the benchmark itself is to be told.
    pub(super) fn rest(&self) -> &[OsString] {
        &self.rest
    }

    /// The command that starts the peer, which is there when this returns.
    ///
    /// # Errors
    /// The peer cannot be had.
    pub(super) fn command(&self, repo: &Repo) -> Result<OsString> {
        match &self.peer_command {
            Some(command) => Ok(command.clone()),
            None => debians(&repo.path("target/peer"), self.backend.as_deref()),
        }
    }
}

/// Gets Debian's server and writes a program that starts it.
fn debians(folder: &Path, backend: Option<&str>) -> Result<OsString> {
    let shelf = Shelf::open(folder)?;
    let machine = Machine::of(shelf.architecture())?;
    let versions = shelf.unpack("sid", PACKAGES)?;
    let [tools, ggml] = ["llama.cpp-tools", "libggml0"]
        .map(|name| versions.iter().find(|v| v.split(' ').next() == Some(name)).map_or(name, String::as_str));
    let backend = backend.unwrap_or(machine.backend);
    say(&format!(
        "the peer: {tools} with {ggml} ({backend}) of Debian sid; delete {} for newer ones",
        folder.display()
    ));
    let script = launcher(&shelf.root(), &machine, backend)?;
    let path = folder.join("llama-server");
    fs::write(&path, script).with_context(|| format!("{} cannot be written", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("{} cannot be made executable", path.display()))?;
    Ok(path.into_os_string())
}

/// What differs between the architectures.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    /// The folder of its libraries.
    triplet: &'static str,
    loader: &'static str,
    /// The kernels that are built as ours are by default.
    backend: &'static str,
}

impl Machine {
    fn of(architecture: &str) -> Result<Self> {
        match architecture {
            // AVX2, FMA, F16C and BMI2, and no AVX-512.
            "amd64" => Ok(Self { triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2", backend: "haswell" }),
            "arm64" => Ok(Self { triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1", backend: "armv8.0_1" }),
            other => {
                bail!("Debian's llama-server is known for amd64 and arm64, and this is {other}: use --peer-command")
            }
        }
    }
}

/// A shell script that becomes the server.
fn launcher(root: &Path, machine: &Machine, backend: &str) -> Result<String> {
    let libraries = root.join("usr/lib").join(machine.triplet);
    let backends = libraries.join("ggml/backends0");
    let kernels = backends.join(format!("libggml-cpu-{backend}.so"));
    if !kernels.is_file() {
        bail!("Debian has no kernels named {backend}; there are: {}", kernel_names(&backends).join(", "));
    }
    let mut search = libraries.clone().into_os_string();
    search.push(":");
    search.push(libraries.join("llama"));
    Ok(format!(
        "#!/bin/sh\nexport GGML_BACKEND_PATH={}\nexec {} --library-path {} {} \"$@\"\n",
        quoted(&kernels)?,
        quoted(&libraries.join(machine.loader))?,
        quoted(Path::new(&search))?,
        quoted(&root.join("usr/bin/llama-server"))?,
    ))
}

fn kernel_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().to_string_lossy().into_owned();
            Some(name.strip_prefix("libggml-cpu-")?.strip_suffix(".so")?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8, which a script needs", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn unpacked(backends: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("it's here");
        let kernels = root.join("usr/lib/x86_64-linux-gnu/ggml/backends0");
        fs::create_dir_all(&kernels).unwrap();
        for name in backends {
            fs::write(kernels.join(format!("libggml-cpu-{name}.so")), "").unwrap();
        }
        (folder, root)
    }

    #[test]
    fn kernels_that_are_not_there_are_answered_with_those_that_are() {
        let (_folder, root) = unpacked(&["haswell", "zen4"]);
        let machine = Machine::of("amd64").unwrap();
        let error = launcher(&root, &machine, "hasswell").unwrap_err().to_string();
        assert!(error.contains("hasswell") && error.contains("haswell, zen4"), "{error}");
    }

    #[test]
    fn a_path_is_one_word_of_the_script() {
        let (_folder, root) = unpacked(&["haswell"]);
        let loader = root.join("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        fs::write(&loader, "#!/bin/sh\necho \"$GGML_BACKEND_PATH\"; for word; do echo \"$word\"; done\n").unwrap();
        fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).unwrap();
        let script = launcher(&root, &Machine::of("amd64").unwrap(), "haswell").unwrap();

        let output =
            std::process::Command::new("sh").args(["-c", &script, "llama-server", "-m", "a b"]).output().unwrap();

        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let libraries = root.join("usr/lib/x86_64-linux-gnu").display().to_string();
        assert_eq!(
            lines,
            [
                format!("{libraries}/ggml/backends0/libggml-cpu-haswell.so"),
                "--library-path".to_owned(),
                format!("{libraries}:{libraries}/llama"),
                root.join("usr/bin/llama-server").display().to_string(),
                "-m".to_owned(),
                "a b".to_owned(),
            ]
        );
    }

    #[test]
    fn other_machines_are_told_what_to_do() {
        let error = Machine::of("riscv64").unwrap_err().to_string();
        assert!(error.contains("riscv64") && error.contains("--peer-command"), "{error}");
    }
}
