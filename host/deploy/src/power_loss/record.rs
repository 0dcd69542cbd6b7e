//! Disks that write down what is done to them, or fail.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::disk::{Content, Disk, System};

/// A step that changes the disk, or says that the caller was answered. Paths are
/// those inside the state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Create(PathBuf),
    Write(PathBuf, Vec<u8>),
    SyncFile(PathBuf),
    Rename(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    CreateDir(PathBuf),
    RemoveDir(PathBuf),
    SyncDir(PathBuf),
    /// The change of this number; 0 is that the folder is open.
    Answered(usize),
}

pub(super) type Log = Arc<Mutex<Vec<Step>>>;

/// Does what it is told, and writes it down.
#[derive(Debug)]
pub(super) struct Recorder {
    root: PathBuf,
    log: Log,
}

pub(super) fn recorded(root: &Path) -> (Box<dyn Disk>, Log) {
    let log = Log::default();
    (Box::new(Recorder { root: root.to_owned(), log: log.clone() }), log)
}

impl Recorder {
    pub(super) fn mark(log: &Log, number: usize) {
        log.lock().unwrap().push(Step::Answered(number));
    }

    /// Writes down what succeeded.
    fn done(&self, result: io::Result<()>, step: impl FnOnce(&dyn Fn(&Path) -> PathBuf) -> Step) -> io::Result<()> {
        if result.is_ok() {
            let inside = |path: &Path| path.strip_prefix(&self.root).unwrap().to_owned();
            self.log.lock().unwrap().push(step(&inside));
        }
        result
    }
}

impl Disk for Recorder {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Content>> {
        let content = Unsynchronised.create(path)?;
        self.done(Ok(()), |inside| Step::Create(inside(path)))?;
        let path = path.strip_prefix(&self.root).unwrap().to_owned();
        Ok(Box::new(RecordedContent { content, path, log: self.log.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.done(System.rename(from, to), |inside| Step::Rename(inside(from), inside(to)))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.done(System.remove_file(path), |inside| Step::RemoveFile(inside(path)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.done(System.create_dir(path), |inside| Step::CreateDir(inside(path)))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.done(System.remove_dir(path), |inside| Step::RemoveDir(inside(path)))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.done(Ok(()), |inside| Step::SyncDir(inside(path)))
    }
}

struct RecordedContent {
    content: Box<dyn Content>,
    path: PathBuf,
    log: Log,
}

impl Write for RecordedContent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.write_all(bytes)?;
        self.log.lock().unwrap().push(Step::Write(self.path.clone(), bytes.to_owned()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.content.flush()
    }
}

impl Content for RecordedContent {
    fn sync(&mut self) -> io::Result<()> {
        self.log.lock().unwrap().push(Step::SyncFile(self.path.clone()));
        Ok(())
    }
}

/// A disk that nothing is made safe on, which is fast.
#[derive(Debug)]
pub(super) struct Unsynchronised;

impl Disk for Unsynchronised {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Content>> {
        Ok(Box::new(UnsynchronisedContent(System.create(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        System.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        System.remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        System.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        System.remove_dir(path)
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

struct UnsynchronisedContent(Box<dyn Content>);

impl Write for UnsynchronisedContent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Content for UnsynchronisedContent {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk whose step of this number fails.
pub(super) fn fail_at(step: usize) -> Box<dyn Disk> {
    Box::new(Failing(Arc::new(Countdown { left: AtomicUsize::new(step + 1) })))
}

#[derive(Debug)]
struct Countdown {
    left: AtomicUsize,
}

impl Countdown {
    fn step(&self) -> io::Result<()> {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if before == Ok(1) { Err(io::Error::other("the disk fails")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct Failing(Arc<Countdown>);

impl Disk for Failing {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Content>> {
        self.0.step()?;
        Ok(Box::new(FailingContent(Unsynchronised.create(path)?, self.0.clone())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.step()?;
        System.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        System.remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        System.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.step()?;
        System.remove_dir(path)
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        self.0.step()
    }
}

struct FailingContent(Box<dyn Content>, Arc<Countdown>);

impl Write for FailingContent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.step()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Content for FailingContent {
    fn sync(&mut self) -> io::Result<()> {
        self.1.step()
    }
}
