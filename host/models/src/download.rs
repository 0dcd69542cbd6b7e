//! One file over HTTP into one part file, continued where it stopped.
//!
//! The digest is pinned, so a part needs no entity tag: whatever the server
//! sends from byte N on is right exactly if the whole has the digest. A server
//! that ignores `Range` (RFC 9110 section 14) is served from the beginning.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use sha2::{Digest, Sha256};
use ureq::http::{Response, StatusCode, header};
use url::Url;

use crate::digest::Sha256Digest;
use crate::error::Error;
use crate::network::{Network, shown};
use crate::progress::{Progress, Stage};

/// The size of one read, in bytes.
const BLOCK: usize = 256 * 1024;

/// What is fetched, and what it has to be.
pub(crate) struct Download<'a> {
    pub(crate) url: &'a Url,
    pub(crate) size: u64,
    pub(crate) sha256: Sha256Digest,
    /// Where the bytes are gathered. Complete and verified on success.
    pub(crate) part: &'a Path,
}

/// Whether the part on disk already is the whole, verified file.
pub(crate) fn is_complete(
    part: &Path,
    size: u64,
    sha256: Sha256Digest,
    progress: &mut dyn Progress,
) -> Result<bool, Error> {
    match std::fs::metadata(part) {
        Ok(metadata) if metadata.len() == size => Ok(hash_file(part, size, progress)? == sha256),
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(part)(error)),
    }
}

/// The digest of a file of `size` bytes.
pub(crate) fn hash_file(path: &Path, size: u64, progress: &mut dyn Progress) -> Result<Sha256Digest, Error> {
    progress.stage(Stage::Verifying, Some(size));
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut hasher = Sha256::new();
    hash_rest(&mut file, &mut hasher, progress).map_err(Error::io(path))?;
    Ok(Sha256Digest::finish(hasher))
}

fn hash_rest(file: &mut File, hasher: &mut Sha256, progress: &mut dyn Progress) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut done = 0;
    loop {
        let count = file.read(&mut block)?;
        let bytes = block.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(done);
        }
        hasher.update(bytes);
        done += bytes.len() as u64;
        progress.reached(done);
    }
}

impl Download<'_> {
    /// Fetches what is missing.
    pub(crate) fn run(&self, network: &Network, progress: &mut dyn Progress) -> Result<(), Error> {
        let mut part = Part::open(self.part, self.size, progress)?;
        let mut found = part.len;
        progress.stage(Stage::Downloading, Some(self.size));
        progress.reached(part.len);
        let mut best = part.len;
        let mut fruitless = 0;
        let mut pause = network.patience.first_pause;
        loop {
            let failure = if part.len == self.size { None } else { self.attempt(network, &mut part, progress)? };
            let Some(failure) = failure else {
                let actual = Sha256Digest::finish(part.hasher.clone());
                if actual == self.sha256 && part.len == self.size {
                    return part.file.sync_all().map_err(Error::write(self.part, 0));
                }
                let size = part.len;
                part.restart()?;
                // What an earlier run left may be what is wrong: once, begin anew.
                if std::mem::take(&mut found) > 0 {
                    (best, fruitless) = (0, 0);
                    progress.reached(0);
                    continue;
                }
                return Err(Error::Mismatch {
                    what: shown(self.url),
                    actual,
                    size,
                    expected: self.sha256,
                    expected_size: self.size,
                });
            };
            if part.len > best {
                best = part.len;
                fruitless = 0;
                pause = network.patience.first_pause;
            } else {
                fruitless += 1;
            }
            if fruitless >= network.patience.fruitless_tries {
                return Err(self.given_up(&part, failure));
            }
            thread::sleep(pause);
            pause *= 2;
        }
    }

    fn given_up(&self, part: &Part<'_>, failure: Failure) -> Error {
        match failure {
            Failure::Status(status) => Error::Status { url: shown(self.url), status: status.as_u16() },
            Failure::Connection(reason) if part.len == 0 => Error::Network { url: shown(self.url), reason },
            Failure::Connection(reason) => {
                Error::Interrupted { url: shown(self.url), received: part.len, expected: self.size, reason }
            }
        }
    }

    /// One request. `None` when it brought the file to its end, a failure when
    /// another try may help.
    fn attempt(
        &self,
        network: &Network,
        part: &mut Part<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Option<Failure>, Error> {
        let mut request = network
            .agent
            .get(self.url.as_str())
            // The bytes themselves are wanted, not a packed form of them.
            .header(header::ACCEPT_ENCODING, "identity");
        if part.len > 0 {
            request = request.header(header::RANGE, format!("bytes={}-", part.len));
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return Ok(Some(Failure::Connection(error.to_string()))),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(part.len) => {}
            StatusCode::OK if part.len == 0 => {}
            // The whole again, another range, or a part the server thinks too long.
            StatusCode::OK => part.restart()?,
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                part.restart()?;
                return Ok(Some(Failure::Status(response.status())));
            }
            status
                if status.is_server_error()
                    || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT) =>
            {
                return Ok(Some(Failure::Status(status)));
            }
            status => {
                return Err(Error::Status { url: shown(self.url), status: status.as_u16() });
            }
        }
        let wanted = self.size.saturating_sub(part.len);
        // One byte more than wanted shows that the file is too long.
        let mut body = response.into_body().into_reader().take(wanted.saturating_add(1));
        let mut block = vec![0; BLOCK];
        loop {
            let count = match body.read(&mut block) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(Failure::Connection(error.to_string()))),
            };
            let bytes = block.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            part.append(bytes, self.size)?;
            progress.reached(part.len.min(self.size));
        }
        if part.len < self.size {
            return Ok(Some(Failure::Connection("the connection ended early".to_owned())));
        }
        Ok(None)
    }
}

enum Failure {
    Connection(String),
    Status(StatusCode),
}

/// The first byte of a `Content-Range: bytes 5-9/10` (RFC 9110 section 14.4).
fn range_start<B>(response: &Response<B>) -> Option<u64> {
    let value = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = value.trim().strip_prefix("bytes ")?.split_once('-')?;
    start.trim().parse().ok()
}

struct Part<'a> {
    path: &'a Path,
    file: File,
    len: u64,
    hasher: Sha256,
}

impl<'a> Part<'a> {
    fn open(path: &'a Path, size: u64, progress: &mut dyn Progress) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Error::write(path, size))?;
        let found = file.metadata().map_err(Error::io(path))?.len();
        let mut hasher = Sha256::new();
        let mut len = 0;
        if found > size {
            file.set_len(0).map_err(Error::io(path))?;
        } else if found > 0 {
            progress.stage(Stage::Verifying, Some(found));
            len = hash_rest(&mut file, &mut hasher, progress).map_err(Error::io(path))?;
        }
        Ok(Self { path, file, len, hasher })
    }

    fn append(&mut self, bytes: &[u8], size: u64) -> Result<(), Error> {
        let missing = size.saturating_sub(self.len);
        self.file.write_all(bytes).map_err(Error::write(self.path, missing))?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::io(self.path))?;
        self.file.seek(SeekFrom::Start(0)).map_err(Error::io(self.path))?;
        self.len = 0;
        self.hasher = Sha256::new();
        Ok(())
    }
}
