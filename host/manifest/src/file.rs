//! Reading files of text that come with an application.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The largest file that is read, in bytes: more than any manifest has.
const MAX_BYTES: u64 = 1 << 20;

/// The text of the file at `path`.
///
/// # Errors
/// It is no regular file (a device has no end, and opening a pipe waits for
/// whoever writes into it), larger than a mebibyte, or cannot be read.
pub fn read(path: &Path) -> io::Result<String> {
    let meta = fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder"));
    }
    if !meta.is_file() {
        return Err(wrong("this is no regular file but a device, a pipe or a socket".to_owned()));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        let size = meta.len();
        return Err(wrong(format!("this file has {size} bytes, and at most {MAX_BYTES} are read")));
    }
    Ok(text)
}

fn wrong(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_manifest_is_refused_without_reading_it_all() {
        for device in ["/dev/zero", "/dev/null"] {
            let error = read(Path::new(device)).unwrap_err().to_string();
            assert!(error.contains("no regular file"), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("folder"));

        let path = dir.path().join("spin.toml");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_BYTES).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, MAX_BYTES);
        file.set_len(1 << 40).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("and at most 1048576 are read"), "{error}");
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("spin.toml");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(read(&path).unwrap_err().to_string().contains("a pipe"));
    }
}
