//! Where things are in the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The checkout that this program was built from.
#[derive(Debug, Clone)]
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// Finds the checkout: the parent of this crate's folder.
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir.parent().context("xtask has no parent folder: run it as `cargo xtask`")?;
        Ok(Self { root: root.to_owned() })
    }

    /// A checkout at a given place, for tests.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The root folder, absolute.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The folder that Cargo builds the root workspace into.
    ///
    /// `CARGO_TARGET_DIR` is honoured as Cargo does.
    pub(crate) fn target_dir(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), |dir| self.root.join(dir))
    }

    /// The host's binary.
    pub(crate) fn host_binary(&self) -> PathBuf {
        self.target_dir().join("release/nala-host")
    }

    /// The files of the project, relative to the root: tracked ones and new
    /// ones that no `.gitignore` names.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .context("git did not start: install it with `apt-get install git`")?;
        if !output.status.success() {
            bail!("git ls-files failed in {}: {}", self.root.display(), String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut files: Vec<PathBuf> = String::from_utf8(output.stdout)
            .context("a file name is not UTF-8")?
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            // A tracked file that was deleted and not yet committed.
            .filter(|name| self.root.join(name).is_file())
            .collect();
        files.sort();
        Ok(files)
    }

    /// Every Cargo workspace of the checkout, the root's first.
    pub(crate) fn workspaces(&self) -> Result<Vec<Workspace>> {
        let mut found = Vec::new();
        for file in self.files()? {
            if file.file_name().is_none_or(|name| name != "Cargo.toml") {
                continue;
            }
            let path = self.root.join(&file);
            let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let manifest: toml::Table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
            if manifest.contains_key("workspace") {
                let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                let kind = match folder.to_str() {
                    Some("") => Kind::Host,
                    Some("fuzz") => Kind::Fuzz,
                    _ => Kind::Guests,
                };
                found.push(Workspace { folder, kind });
            }
        }
        found.sort_by_key(|workspace| (workspace.kind, workspace.folder.clone()));
        Ok(found)
    }
}

/// A Cargo workspace of the checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// Its folder, relative to the root; empty for the root itself.
    pub(crate) folder: PathBuf,
    /// What it is built for.
    pub(crate) kind: Kind,
}

impl Workspace {
    /// A name for people.
    pub(crate) fn name(&self) -> String {
        match self.kind {
            Kind::Host => "host".to_owned(),
            Kind::Fuzz | Kind::Guests => self.folder.display().to_string(),
        }
    }
}

/// What a workspace is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The root: programs for the machine itself.
    Host,
    /// The fuzz targets: programs for the machine too.
    Fuzz,
    /// All others: components for wasm32-wasip2.
    Guests,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_are_found_and_the_root_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[workspace]\nmembers = []\n");
        write("components/Cargo.toml", "[workspace]\n");
        write("components/a/Cargo.toml", "[package]\nname = \"a\"\n");
        write("an/inner/Cargo.toml", "[workspace]\n[package]\nname = \"b\"\n");
        write("target/x/Cargo.toml", "[workspace]\n");
        write(".gitignore", "/target\n");
        let git = Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status().unwrap();
        assert!(git.success());

        let workspaces = Repo::at(folder.path()).workspaces().unwrap();

        let names: Vec<String> = workspaces.iter().map(Workspace::name).collect();
        assert_eq!(names, ["host", "an/inner", "components"]);
    }
}
