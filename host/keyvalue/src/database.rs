//! The open file: transactions on it, and opening it anew after a failure.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::backends::InMemoryBackend;
use redb::{DatabaseError, ReadTransaction, ReadableDatabase, StorageError, TableError, TableHandle, WriteTransaction};

use crate::disk::Disk;
use crate::error::{Error, Fault, OpenError};
use crate::layout::{ENTRIES, FACTS, FORMAT, FORMAT_FACT, STORES, TENANTS};

/// The file's name in the folder.
const FILE: &str = "keyvalue.redb";
/// How long to wait before a file that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The database, which is closed and opened again when its file fails: redb
/// refuses all that follows an error of the disk, reads too.
pub(crate) struct Database {
    /// None: it is in memory.
    path: Option<PathBuf>,
    cache_bytes: usize,
    state: RwLock<State>,
}

struct State {
    open: Option<redb::Database>,
    /// How often it was opened.
    generation: u64,
    /// When it was last tried in vain, and why.
    failed: Option<(Instant, Arc<str>)>,
}

impl Database {
    pub(crate) fn in_folder(folder: &Path, cache_bytes: usize) -> Result<Self, OpenError> {
        let cannot = |source| OpenError::Folder { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(cannot)?;
        let path = folder.join(FILE);
        let new = !path.exists();
        let open = open_file(&path, cache_bytes)?;
        if new {
            // The file's name is to last as long as what is in it.
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(cannot)?;
        }
        Ok(Self::of(Some(path), cache_bytes, open))
    }

    pub(crate) fn in_memory(cache_bytes: usize) -> Result<Self, OpenError> {
        let nowhere = Path::new("the memory");
        let open = redb::Builder::new()
            .set_cache_size(cache_bytes)
            .create_with_backend(InMemoryBackend::new())
            .map_err(|error| not_opened(nowhere, error))?;
        prepare(nowhere, &open)?;
        Ok(Self::of(None, cache_bytes, open))
    }

    fn of(path: Option<PathBuf>, cache_bytes: usize, open: redb::Database) -> Self {
        Self { path, cache_bytes, state: RwLock::new(State { open: Some(open), generation: 0, failed: None }) }
    }

    /// Reads in a transaction of its own. `read` is called again if the file failed
    /// for somebody else.
    pub(crate) fn read<T>(&self, read: impl Fn(&ReadTransaction) -> Result<T, Fault>) -> Result<T, Error> {
        let mut again = true;
        loop {
            let (seen, outcome) = self.with_open(|open| read(&open.begin_read()?));
            match outcome {
                Ok(value) => return Ok(value),
                Err(Some(fault)) if !fault.ends_use() || !again => return Err(fault.into()),
                Err(None) if !again => return Err(Error::Closed),
                Err(_) => {}
            }
            again = false;
            self.open_anew(seen)?;
        }
    }

    /// Writes in a transaction of its own, which is committed if `write` says so,
    /// and then is on the disk.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&WriteTransaction) -> Result<(T, Ending), Fault>,
    ) -> Result<T, Error> {
        if self.state.read().unwrap_or_else(PoisonError::into_inner).open.is_none() {
            self.open_anew(None)?;
        }
        let (seen, outcome) = self.with_open(|open| {
            let transaction = open.begin_write()?;
            let (value, ending) = write(&transaction)?;
            match ending {
                // Durability is `Immediate` unless another is asked for.
                Ending::Commit => transaction.commit()?,
                Ending::Forget => transaction.abort()?,
            }
            Ok(value)
        });
        match outcome {
            Ok(value) => Ok(value),
            Err(None) => Err(Error::Closed),
            Err(Some(fault)) => {
                if fault.ends_use() {
                    // Readers are not to find it so. If it fails, they are told why.
                    let _ = self.open_anew(seen);
                }
                Err(fault.into())
            }
        }
    }

    /// Calls `run` with the database if it is open, and says which opening it was.
    fn with_open<T>(
        &self,
        run: impl FnOnce(&redb::Database) -> Result<T, Fault>,
    ) -> (Option<u64>, Result<T, Option<Fault>>) {
        // Nothing is left half done in the state when something panics.
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &state.open else { return (None, Err(None)) };
        // redb checks what it reads, but asserts some of it; a damaged file must not
        // end the one thread that writes.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(open)))
            .unwrap_or_else(|_| Err(Fault::Malformed("the file is not as it was written".to_owned())));
        (Some(state.generation), outcome.map_err(Some))
    }

    /// Opens the file again, unless that was done since `seen`.
    fn open_anew(&self, seen: Option<u64>) -> Result<(), Error> {
        let Some(path) = &self.path else { return Err(Error::Io("memory failed".into())) };
        // Waits for all transactions to end; none is long.
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.open.is_some() && seen != Some(state.generation) {
            return Ok(());
        }
        if let Some((when, why)) = &state.failed
            && when.elapsed() < RETRY
        {
            return Err(Error::Io(Arc::clone(why)));
        }
        // First of all the lock on the file is given up.
        state.open = None;
        match open_file(path, self.cache_bytes) {
            Ok(open) => {
                state.open = Some(open);
                state.generation += 1;
                state.failed = None;
                Ok(())
            }
            Err(error) => {
                let why: Arc<str> = error.to_string().into();
                state.failed = Some((Instant::now(), Arc::clone(&why)));
                Err(Error::Io(why))
            }
        }
    }
}

/// What is to become of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It changed something.
    Commit,
    /// It changed nothing.
    Forget,
}

fn open_file(path: &Path, cache_bytes: usize) -> Result<redb::Database, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    // Data of tenants is for the host's user alone.
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let disk = Disk::new(file.map_err(io)?).map_err(|error| not_opened(path, error))?;
    let open = catch_unwind(|| redb::Builder::new().set_cache_size(cache_bytes).create_with_backend(disk))
        .map_err(|_| OpenError::Damaged { path: path.to_owned(), why: "its pages contradict each other".to_owned() })?
        .map_err(|error| not_opened(path, error))?;
    prepare(path, &open)?;
    Ok(open)
}

/// Makes the tables in a new file, and checks the format of another.
fn prepare(path: &Path, open: &redb::Database) -> Result<(), OpenError> {
    let not_read = |fault| match fault {
        Fault::Storage(redb::Error::Io(source)) => OpenError::Io { path: path.to_owned(), source },
        fault => OpenError::Damaged { path: path.to_owned(), why: Error::from(fault).to_string() },
    };
    match format(open).map_err(not_read)? {
        Found::Format(FORMAT) => Ok(()),
        Found::Format(found) => Err(OpenError::Format { path: path.to_owned(), found, expected: FORMAT }),
        Found::Empty => make_tables(open).map_err(not_read),
        Found::Other(table) => {
            Err(OpenError::NotADatabase { path: path.to_owned(), why: format!("it has the table `{table}`") })
        }
    }
}

/// What a database turns out to be.
enum Found {
    Format(u64),
    Empty,
    /// Somebody else's, with such a table.
    Other(String),
}

fn format(open: &redb::Database) -> Result<Found, Fault> {
    let transaction = open.begin_read()?;
    match transaction.open_table(FACTS) {
        Ok(facts) => match facts.get(FORMAT_FACT)? {
            Some(format) => Ok(Found::Format(format.value())),
            None => Ok(Found::Other(FACTS.name().to_owned())),
        },
        Err(TableError::TableDoesNotExist(_)) => match transaction.list_tables()?.next() {
            Some(table) => Ok(Found::Other(table.name().to_owned())),
            None => Ok(Found::Empty),
        },
        Err(TableError::Storage(error)) => Err(error.into()),
        Err(_) => Ok(Found::Other(FACTS.name().to_owned())),
    }
}

fn make_tables(open: &redb::Database) -> Result<(), Fault> {
    let transaction = open.begin_write()?;
    transaction.open_table(ENTRIES)?;
    transaction.open_table(STORES)?;
    transaction.open_table(TENANTS)?;
    transaction.open_table(FACTS)?.insert(FORMAT_FACT, FORMAT)?;
    transaction.commit()?;
    Ok(())
}

fn not_opened(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => OpenError::Locked { path },
        DatabaseError::Storage(StorageError::Io(source)) => match source.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                OpenError::NotADatabase { path, why: source.to_string() }
            }
            _ => OpenError::Io { path, source },
        },
        DatabaseError::UpgradeRequired(version) => {
            OpenError::NotADatabase { path, why: format!("it is a redb file of the old version {version}") }
        }
        error => OpenError::Damaged { path, why: error.to_string() },
    }
}
