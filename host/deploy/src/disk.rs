//! All that changes a disk, one step each, so that tests can stand in between.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The steps that changes of a state folder are made of.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Makes a file that is not there yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Content>>;
    /// Gives a file another name, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns once the names in a folder would outlive a power failure.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// A file that is being written.
pub(crate) trait Content: Write + Send {
    /// Returns once what was written would outlive a power failure.
    fn sync(&mut self) -> io::Result<()>;
}

/// The real one.
#[derive(Debug)]
pub(crate) struct System;

impl Disk for System {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Content>> {
        // Components belong to their tenants: no other user of the machine reads them.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl Content for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
