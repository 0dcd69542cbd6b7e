//! Debian packages in a folder of our own: downloaded and unpacked, not installed.
//!
//! apt works with lists, a cache and a source of our own, so that neither the
//! machine's packages nor its sources are touched; only its mirror and its proxy
//! are taken over.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{capture, run_quietly};

/// The mirror where the machine's own sources name none.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Keys that Debian signs its releases with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A folder with apt's files and the packages unpacked from it.
pub(crate) struct Shelf {
    folder: PathBuf,
    architecture: String,
}

impl Shelf {
    /// Makes the folder; nothing is downloaded yet.
    ///
    /// # Errors
    /// This is no Debian system, or the folder cannot be written.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let mut dpkg = Command::new("dpkg");
        let architecture = capture(dpkg.arg("--print-architecture"))
            .context("packages are taken by apt and dpkg, which this system does not have")?;
        for part in ["lists/partial", "cache/archives/partial", "debs"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        }
        Ok(Self { folder: folder.to_owned(), architecture })
    }

    /// Debian's name of this machine's architecture.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Where the files of packages are once unpacked.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Downloads packages of a suite and unpacks them into [`Shelf::root`], if
    /// that was not done before, and returns their names and versions.
    ///
    /// # Errors
    /// apt or dpkg failed, for example without a network.
    pub(crate) fn unpack(&self, suite: &str, packages: &[&str]) -> Result<Vec<String>> {
        let stamp = self.folder.join("unpacked.txt");
        let head = format!("{suite} {}: {}", self.architecture, packages.join(" "));
        if let Ok(text) = fs::read_to_string(&stamp)
            && let Some(versions) = text.strip_prefix(&head)
        {
            return Ok(versions.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect());
        }
        self.write_source(suite)?;
        let advice = "the packages could not be downloaded: check the network and the mirror in /etc/apt";
        run_quietly("reading Debian's package lists", self.apt().arg("update")).context(advice)?;
        // Debs and files of another time would be mixed with the new ones.
        for part in ["debs", "root"] {
            let path = self.folder.join(part);
            if path.exists() {
                fs::remove_dir_all(&path).with_context(|| format!("{} cannot be emptied", path.display()))?;
            }
            fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        }
        let mut download = self.apt();
        download.current_dir(self.folder.join("debs")).arg("download").args(packages);
        run_quietly("downloading Debian packages", &mut download).context(advice)?;
        let versions = self.unpack_all()?;
        fs::write(&stamp, format!("{head}\n{}\n", versions.join("\n")))
            .with_context(|| format!("{} cannot be written", stamp.display()))?;
        Ok(versions)
    }

    fn unpack_all(&self) -> Result<Vec<String>> {
        let folder = self.folder.join("debs");
        let mut versions = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))? {
            let deb = entry.with_context(|| format!("{} cannot be read", folder.display()))?.path();
            let mut unpack = Command::new("dpkg");
            run_quietly("unpacking", unpack.arg("-x").arg(&deb).arg(self.root()))?;
            let mut show = Command::new("dpkg-deb");
            show.args(["--show", "--showformat", "${Package} ${Version}"]).arg(&deb);
            versions.push(capture(&mut show)?);
        }
        if versions.is_empty() {
            bail!("apt-get says that it downloaded packages, but {} is empty", folder.display());
        }
        versions.sort();
        Ok(versions)
    }

    fn write_source(&self, suite: &str) -> Result<()> {
        let mut targets = Command::new("apt-get");
        targets.args(["indextargets", "--format", "$(REPO_URI)"]);
        let mirror = mirror(&capture(&mut targets).unwrap_or_default());
        let signed = if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let path = self.folder.join("sources.list");
        fs::write(&path, format!("deb {signed}{mirror} {suite} main\n"))
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    fn apt(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        for option in self.options() {
            command.arg("-o").arg(option);
        }
        command
    }

    /// What makes apt look at nothing of the machine's own but its network settings.
    fn options(&self) -> Vec<OsString> {
        let at = |name: &str, path: PathBuf| {
            let mut option = OsString::from(format!("{name}="));
            option.push(path);
            option
        };
        let nothing = || PathBuf::from("/dev/null");
        vec![
            at("Dir::Etc::sourcelist", self.folder.join("sources.list")),
            at("Dir::Etc::sourceparts", nothing()),
            at("Dir::Etc::preferences", nothing()),
            at("Dir::Etc::preferencesparts", nothing()),
            at("Dir::State::lists", self.folder.join("lists")),
            at("Dir::State::status", nothing()),
            at("Dir::Cache", self.folder.join("cache")),
            format!("APT::Architecture={}", self.architecture).into(),
            format!("APT::Architectures={}", self.architecture).into(),
            "Acquire::Languages=none".into(),
            // As root apt would download as a user that may not write here.
            "APT::Sandbox::User=root".into(),
        ]
    }
}

/// The first archive among the machine's sources that is Debian's own.
///
/// Those for security updates are archives of their own, without sid.
fn mirror(uris: &str) -> String {
    let of_debian = |uri: &&str| uri.trim_end_matches('/').ends_with("/debian");
    uris.lines().find(of_debian).unwrap_or(MIRROR).trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mirror_is_taken() {
        let uris = "https://deb.example.org/node_20.x/\nhttp://mirror.example/debian-security/\n\
                    http://mirror.example/debian/\nhttp://other.example/debian/";
        assert_eq!(mirror(uris), "http://mirror.example/debian");
        assert_eq!(mirror(""), MIRROR);
    }

    #[test]
    fn what_is_unpacked_is_not_downloaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf { folder: folder.path().to_owned(), architecture: "amd64".to_owned() };
        fs::write(folder.path().join("unpacked.txt"), "sid amd64: a b\na 1.0\nb 2:3\n").unwrap();
        assert_eq!(shelf.unpack("sid", &["a", "b"]).unwrap(), ["a 1.0", "b 2:3"]);
    }

    #[test]
    fn nothing_of_the_machine_is_named() {
        let shelf = Shelf { folder: "/repo/target/peer".into(), architecture: "arm64".to_owned() };
        for option in shelf.options() {
            let option = option.to_string_lossy().into_owned();
            let (_, value) = option.split_once('=').unwrap();
            assert!(
                !value.starts_with('/') || value == "/dev/null" || value.starts_with("/repo/target/peer"),
                "{option}"
            );
        }
    }
}
