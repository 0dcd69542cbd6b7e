//! The file under the database, which takes its room on the disk before it uses
//! it.

use std::fs::File;
use std::io;
use std::ops::Bound;

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// A file whose every byte has its place on the disk.
///
/// A file that only grows in length is full of holes, and a full disk would show
/// when a page in the middle is written. So it shows when the file is to grow,
/// before anything is changed: what is there stays readable, and can be opened
/// again. File systems that write each page to a new place cannot promise that.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Locks, reads and writes.
    inner: FileBackend,
    /// The same open file, for what redb has no call for.
    file: File,
}

impl Disk {
    pub(crate) fn new(file: File) -> Result<Self, DatabaseError> {
        let again = file.try_clone()?;
        Ok(Self { inner: FileBackend::new(file)?, file: again })
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let now = self.inner.len()?;
        if len > now {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, now, len - now) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn room_is_taken_before_it_is_used() {
        let file = tempfile::tempfile().unwrap();
        let disk = Disk::new(file.try_clone().unwrap()).unwrap();
        for len in [100_000, 4_000_000] {
            disk.set_len(len).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), len);
            // Blocks of 512 bytes, whatever the file system's are.
            assert!(metadata.blocks() * 512 >= len, "{} blocks for {len} bytes", metadata.blocks());
        }
        disk.set_len(1000).unwrap();
        assert_eq!(disk.len().unwrap(), 1000);
    }
}
