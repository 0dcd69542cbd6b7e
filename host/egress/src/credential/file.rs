//! Files with credentials and certificates.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{CredentialError, Unusable};

/// The most bytes of a credential. Tokens have some thousand; servers take no longer
/// headers.
pub(super) const MOST: usize = 16 << 10;

/// The most bytes of a file, certificates included.
const MOST_OF_FILE: u64 = 1 << 20;

/// All of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CredentialError> {
    let failed = |why: String| CredentialError::Read { path: path.to_owned(), why };
    let of_io = |error: io::Error| failed(error.to_string());
    // To open a pipe would be to wait for whoever writes to it.
    if !std::fs::metadata(path).map_err(of_io)?.is_file() {
        return Err(failed("it is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(of_io)?.take(MOST_OF_FILE + 1).read_to_end(&mut bytes).map_err(of_io)?;
    if bytes.len() as u64 > MOST_OF_FILE {
        return Err(failed(format!("it has more than {MOST_OF_FILE} bytes")));
    }
    Ok(bytes)
}

/// The credential in a text, without what editors leave at its end.
pub(super) fn usable(bytes: &[u8]) -> Result<&str, Unusable> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Err(Unusable::Empty);
    }
    if bytes.len() > MOST {
        return Err(Unusable::TooLong);
    }
    // Printable ASCII, which is what tokens are of (RFC 6750, 2.1), and no spaces: they
    // would be two words, of which a server reads one.
    match std::str::from_utf8(bytes) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(text),
        _ => Err(Unusable::Character),
    }
}
