//! Reads the operator's file again when it changes, and keeps the books.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nala_manifest::operator::Operator;
use nala_tenant::{Books, ClassName, Directory};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether a file has changed: a key that was taken out is of use
/// for so long.
const LOOK: Duration = Duration::from_secs(1);
/// How often the counters are written down.
const WRITE: Duration = Duration::from_secs(5);

/// Follows the files behind a directory of tenants.
pub(crate) struct Reload {
    path: PathBuf,
    directory: Arc<Directory>,
    /// The classes that have a process.
    classes: Vec<ClassName>,
    /// The class whose process this is.
    only: Option<ClassName>,
    /// What is watched, and what it looked like.
    seen: Vec<(PathBuf, Option<Look>)>,
}

/// What tells that a file is another one. The number of the file changes where it is
/// replaced by renaming, as editors and configuration maps do.
type Look = (SystemTime, u64, u64);

fn look(path: &Path) -> Option<Look> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn looks(files: &[PathBuf]) -> Vec<(PathBuf, Option<Look>)> {
    files.iter().map(|file| (file.clone(), look(file))).collect()
}

impl Reload {
    /// `classes` are those that have a process of their own, `only` the one whose process
    /// this is.
    pub(crate) fn new(
        path: &Path,
        files: &[PathBuf],
        directory: Arc<Directory>,
        classes: Vec<ClassName>,
        only: Option<ClassName>,
    ) -> Self {
        Self { path: path.to_owned(), directory, classes, only, seen: looks(files) }
    }

    /// Looks for as long as the host serves.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let work = tokio::task::spawn_blocking(move || {
                self.look();
                self
            });
            match work.await {
                Ok(reload) => self = reload,
                Err(_ending) => return,
            }
        }
    }

    /// Serves what the files say, if they say something else. A file that is wrong
    /// changes nothing.
    fn look(&mut self) {
        if self.seen.iter().all(|(file, seen)| look(file) == *seen) {
            return;
        }
        // Before it is read: what changes meanwhile is seen the next time.
        let files: Vec<PathBuf> = self.seen.iter().map(|(file, _)| file.clone()).collect();
        self.seen = looks(&files);
        match Operator::read(&self.path) {
            Ok(operator) => {
                for warning in &operator.warnings {
                    tracing::warn!(file = %self.path.display(), "{warning}");
                }
                if operator.files() != files {
                    self.seen = looks(operator.files());
                }
                match &self.only {
                    Some(class) => self.directory.reload(operator.roster.only(class)),
                    None => {
                        self.warn_of_new(&operator);
                        self.directory.reload(operator.roster);
                    }
                }
                tracing::info!(file = %self.path.display(), "the tenants were read again");
            }
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "the tenants stay as they were: the file is wrong");
            }
        }
    }
}

impl Reload {
    /// The right to start processes is given up by now.
    fn warn_of_new(&self, operator: &Operator) {
        for class in operator.classes.iter().filter(|class| !self.classes.contains(&class.name)) {
            tracing::warn!(
                class = class.name.as_str(),
                "the class is new and has no process until the host is started again; its tenants are told 503"
            );
        }
    }
}

/// Writes the counters down, now and then, and once more when the host ends.
pub(crate) async fn keep(mut books: Books, directory: Arc<Directory>, end: CancellationToken) {
    let mut ticks = interval(WRITE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let last = tokio::select! {
            _tick = ticks.tick() => false,
            () = end.cancelled() => true,
        };
        let directory = Arc::clone(&directory);
        let work = tokio::task::spawn_blocking(move || {
            if let Err(error) = books.write(&directory.totals(), SystemTime::now()) {
                tracing::error!(%error, "what tenants have used cannot be written down");
            }
            books
        });
        match work.await {
            Ok(back) if !last => books = back,
            _ => return,
        }
    }
}
