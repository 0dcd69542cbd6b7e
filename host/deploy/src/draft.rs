//! A file on its way to its name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::disk::{Content, Disk};
use crate::error::Error;

/// A file that nothing names yet; removed when it is dropped before it has a name.
pub(crate) struct Draft<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    content: Box<dyn Content>,
    named: bool,
}

impl<'a> Draft<'a> {
    pub(crate) fn begin(disk: &'a dyn Disk, path: PathBuf) -> Result<Self, Error> {
        let content = disk.create(&path).map_err(Error::io(&path))?;
        Ok(Self { disk, path, content, named: false })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.content.write_all(bytes).map_err(Error::io(&self.path))
    }

    /// Makes the content safe. Without this a name could outlive a power
    /// failure that the content behind it does not.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.content.flush().and_then(|()| self.content.sync()).map_err(Error::io(&self.path))
    }

    /// Gives the file its name; the folder has to be synchronised after that.
    pub(crate) fn name(mut self, to: &Path) -> io::Result<()> {
        self.disk.rename(&self.path, to)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.named {
            // What is left is cleared away when the folder is opened again.
            let _ = self.disk.remove_file(&self.path);
        }
    }
}
