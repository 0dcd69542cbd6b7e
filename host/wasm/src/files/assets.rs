//! The copies of a component's files.
//!
//! They are copies, as in Spin, and not links: what is edited, or replaced by a
//! link, after the component was loaded does not reach the guest.

use std::collections::BTreeSet;
use std::fs::{self, File, FileType, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::TempDir;

use super::{Asset, AssetLimit, FilesError, parts};

/// The most files of a component.
const MAX_FILES: usize = 10_000;

/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 64;

/// Copies the files into a folder of their own, which only the host's user can
/// read. None: there are no files.
pub(super) fn gather(
    assets: &[Asset],
    limit: AssetLimit,
    scratch: Option<&Path>,
) -> Result<Option<TempDir>, FilesError> {
    if assets.is_empty() {
        return Ok(None);
    }
    let own = Permissions::from_mode(0o700);
    let mut builder = tempfile::Builder::new();
    builder.prefix("nala-files-").permissions(own);
    let folder = match scratch {
        Some(scratch) => builder.tempdir_in(scratch),
        None => builder.tempdir(),
    };
    let folder = folder
        .map_err(|error| FilesError::Io { path: scratch.map_or_else(std::env::temp_dir, Path::to_owned), error })?;
    let mut copying = Copying { limit: limit.0, left: limit.0, places: BTreeSet::new() };
    for Asset { host, guest } in assets {
        let place: PathBuf = parts(guest)?.iter().collect();
        copying.copy(host, folder.path(), &place, 0)?;
    }
    Ok(Some(folder))
}

struct Copying {
    limit: u64,
    /// Bytes that may still be copied.
    left: u64,
    /// Where files are, from the folder of the copies.
    places: BTreeSet<PathBuf>,
}

impl Copying {
    /// Copies `host`, which is a file or a folder, to `place` in `root`.
    fn copy(&mut self, host: &Path, root: &Path, place: &Path, depth: usize) -> Result<(), FilesError> {
        let fail = |error| FilesError::Io { path: host.to_owned(), error };
        let kind = fs::symlink_metadata(host).map_err(fail)?.file_type();
        if !kind.is_dir() {
            return self.copy_file(host, root, place);
        }
        if depth > MAX_DEPTH {
            return Err(fail(io::Error::other("folders lie too deep in each other")));
        }
        fs::create_dir_all(root.join(place)).map_err(fail)?;
        for entry in fs::read_dir(host).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            self.copy(&entry.path(), root, &place.join(entry.file_name()), depth + 1)?;
        }
        Ok(())
    }

    fn copy_file(&mut self, host: &Path, root: &Path, place: &Path) -> Result<(), FilesError> {
        let fail = |error| FilesError::Io { path: host.to_owned(), error };
        let shown = || format!("/{}", place.display());
        if place.as_os_str().is_empty() {
            return Err(FilesError::GuestPath(shown()));
        }
        if !self.places.insert(place.to_owned()) {
            return Err(FilesError::Twice(shown()));
        }
        if self.places.len() > MAX_FILES {
            return Err(FilesError::TooMany { limit: MAX_FILES });
        }
        let from = open(host)?;
        let meta = from.metadata().map_err(fail)?;
        // What is sparse counts whole: a guest would read it whole.
        if meta.len() > self.left {
            return Err(FilesError::TooLarge { limit: self.limit });
        }
        let to = root.join(place);
        fs::create_dir_all(to.parent().unwrap_or(root)).map_err(fail)?;
        let mut to = File::create_new(to).map_err(fail)?;
        // One that grows meanwhile is seen by a byte more than there may be.
        let copied = io::copy(&mut from.take(self.left.saturating_add(1)), &mut to).map_err(fail)?;
        self.left = self.left.checked_sub(copied).ok_or(FilesError::TooLarge { limit: self.limit })?;
        if let Ok(modified) = meta.modified() {
            to.set_modified(modified).map_err(fail)?;
        }
        Ok(())
    }
}

/// Opens a file, and nothing that only looks like one: no link is followed, and a
/// FIFO is not waited for.
fn open(path: &Path) -> Result<File, FilesError> {
    let fail = |error| FilesError::Io { path: path.to_owned(), error };
    let kind = |kind: FileType| FilesError::Kind { path: path.to_owned(), kind: name(kind) };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path);
    let file = match (opened, fs::symlink_metadata(path)) {
        (Ok(file), _) => file,
        (Err(_), Ok(meta)) if !meta.is_file() => return Err(kind(meta.file_type())),
        (Err(error), _) => return Err(fail(error)),
    };
    let meta = file.metadata().map_err(fail)?;
    if meta.is_file() { Ok(file) } else { Err(kind(meta.file_type())) }
}

fn name(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_symlink() => "a symbolic link: name what it points to",
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn gathered(files: &[(&Path, &str)], limit: u64) -> Result<TempDir, String> {
        let asset = |(host, guest): &(&Path, &str)| Asset { host: (*host).to_owned(), guest: (*guest).to_owned() };
        let assets: Vec<_> = files.iter().map(asset).collect();
        gather(&assets, AssetLimit(limit), None).map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn files_are_copied_to_where_the_guest_finds_them() {
        let host = tempfile::tempdir().unwrap();
        let file = host.path().join("page.html");
        fs::write(&file, "page").unwrap();
        fs::create_dir_all(host.path().join("static/deep")).unwrap();
        fs::write(host.path().join("static/deep/style.css"), "style").unwrap();
        let copies = gathered(&[(&file, "/a/index.html"), (&host.path().join("static"), "s")], 1000).unwrap();
        fs::write(&file, "edited").unwrap();
        assert_eq!(fs::read_to_string(copies.path().join("a/index.html")).unwrap(), "page");
        assert_eq!(fs::read_to_string(copies.path().join("s/deep/style.css")).unwrap(), "style");
        let mode = fs::metadata(copies.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read it: {mode:o}");
        let path = copies.path().to_owned();
        drop(copies);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let host = tempfile::tempdir().unwrap();
        let link = host.path().join("link");
        symlink("/etc/passwd", &link).unwrap();
        let fifo = host.path().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        let told = gathered(&[(&link, "/a")], 1 << 20).unwrap_err();
        assert!(told.contains("symbolic link"), "{told}");
        let told = gathered(&[(&fifo, "/a")], 1 << 20).unwrap_err();
        assert!(told.contains("FIFO"), "{told}");
        let told = gathered(&[(Path::new("/dev/zero"), "/a")], 1 << 20).unwrap_err();
        assert!(told.contains("device"), "{told}");
        // In a folder as well.
        let told = gathered(&[(host.path(), "/a")], 1 << 20).unwrap_err();
        assert!(told.contains("FIFO") || told.contains("symbolic link"), "{told}");
    }

    #[test]
    fn copies_have_so_many_bytes_together() {
        let host = tempfile::tempdir().unwrap();
        let file = host.path().join("file");
        fs::write(&file, [0; 60]).unwrap();
        gathered(&[(&file, "/a")], 60).unwrap();
        assert!(gathered(&[(&file, "/a"), (&file, "/b")], 119).unwrap_err().contains("119 bytes"));
        let sparse = host.path().join("sparse");
        File::create_new(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert!(gathered(&[(&sparse, "/a")], 1 << 30).unwrap_err().contains("bytes"));
        assert!(gathered(&[(&file, "/a"), (&file, "/a")], 1000).unwrap_err().contains("`/a`"));
        assert!(gathered(&[(&file, "/")], 1000).unwrap_err().contains("`/`"));
        assert!(gathered(&[(&file, "/a"), (&file, "/a/b")], 1000).is_err(), "a file is no folder");
    }
}
