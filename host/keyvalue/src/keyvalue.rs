//! The whole of the data: opening it, and what concerns more than one store.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::change::{Change, Done};
use crate::config::{Config, Limits};
use crate::database::Database;
use crate::error::{Error, OpenError};
use crate::layout::TENANTS;
use crate::readers::Readers;
use crate::recount::{Recount, recount};
use crate::scope::{Name, Place, Prefix, Scope};
use crate::store::Store;
use crate::writer::{Reply, Writes};

/// All key-value data of a host. Clones are handles on the same.
///
/// When the last handle is dropped, stores included, what waits is written and the
/// file is closed.
#[derive(Clone)]
pub struct KeyValue {
    shared: Arc<Shared>,
}

/// What all handles share.
pub(crate) struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) writes: Arc<Writes>,
    pub(crate) readers: Readers,
    pub(crate) limits: Limits,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl KeyValue {
    /// Opens the data in a folder, or begins it there: the file `keyvalue.redb`,
    /// which only the host's user can read. After a crash this reads the whole file
    /// to check it.
    ///
    /// # Errors
    /// The folder or the file cannot be used, is used by somebody else, or is
    /// something else; or the configuration makes no sense.
    pub fn open(folder: &Path, config: Config) -> Result<Self, OpenError> {
        check(&config)?;
        Self::start(Database::in_folder(folder, config.cache_bytes)?, &config)
    }

    /// Begins with no data, which is kept in memory and ends with the last handle.
    ///
    /// # Errors
    /// The configuration makes no sense.
    pub fn in_memory(config: Config) -> Result<Self, OpenError> {
        check(&config)?;
        Self::start(Database::in_memory(config.cache_bytes)?, &config)
    }

    /// The store of an application with that name. It needs not to be made: one
    /// without keys is an empty one. Whether an application may use a store of that
    /// name is for the caller to know.
    ///
    /// # Errors
    /// [`Error::NoSuchStore`]: no store can have that name.
    pub fn store(&self, scope: &Scope, name: &str) -> Result<Store, Error> {
        let place = Place::new(scope, &Name::new("store", name)?);
        Ok(Store::new(Arc::clone(&self.shared), place))
    }

    /// Bytes that a tenant's data takes, as [`Limits::tenant_bytes`] counts them.
    ///
    /// # Errors
    /// The file cannot be read, or nobody can be called so.
    pub fn tenant_bytes(&self, tenant: &str) -> Result<u64, Error> {
        let prefix = Prefix::of_tenant(&Name::new("tenant", tenant)?);
        self.shared.database.read(|transaction| {
            let bytes = transaction.open_table(TENANTS)?.get(prefix.bytes())?.map_or(0, |row| row.value());
            Ok(bytes)
        })
    }

    /// Removes all data of a tenant, in parts between which others write. What the
    /// tenant writes meanwhile waits until it is over. Blocks.
    ///
    /// After an error or a crash a part may be gone: remove it again.
    ///
    /// # Errors
    /// The file cannot be written, or nobody can be called so.
    pub fn remove_tenant(&self, tenant: &str) -> Result<(), Error> {
        let name = Name::new("tenant", tenant)?;
        self.shared.write(&tenant.into(), Change::Remove(Prefix::of_tenant(&name))).map(drop)
    }

    /// Removes all data of an application, as [`KeyValue::remove_tenant`] does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remove_application(&self, scope: &Scope) -> Result<(), Error> {
        self.shared.write(&scope.tenant().into(), Change::Remove(Prefix::of_application(scope))).map(drop)
    }

    /// Counts all data and compares it with the counts that are kept beside it.
    /// Reads the whole file, of one moment.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn recount(&self) -> Result<Recount, Error> {
        self.shared.database.read(recount)
    }

    /// Commits since it was opened: groups of writes that were acknowledged or
    /// failed together.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.writes.commits()
    }

    fn start(database: Database, config: &Config) -> Result<Self, OpenError> {
        let database = Arc::new(database);
        let writes = Arc::new(Writes::new(config.limits, config.queue));
        let thread = std::thread::Builder::new().name("keyvalue".to_owned()).spawn({
            let (database, writes) = (Arc::clone(&database), Arc::clone(&writes));
            move || writes.run(&database)
        });
        let thread = thread.map_err(|error| OpenError::Config(format!("no thread for writes: {error}")))?;
        Ok(Self {
            shared: Arc::new(Shared {
                database,
                writes,
                readers: Readers::new(config.tenant_reads),
                limits: config.limits,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }
}

impl Shared {
    /// Writes and waits until it is on the disk.
    pub(crate) fn write(&self, tenant: &Arc<str>, change: Change) -> Result<Done, Error> {
        let (tell, told) = mpsc::sync_channel(1);
        // Nobody can have stopped waiting.
        let reply: Reply = Box::new(move |outcome| drop(tell.send(outcome)));
        self.writes.push(tenant, change, reply)?;
        told.recv().unwrap_or(Err(Error::Closed))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.writes.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The file is to be closed when this returns.
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

fn check(config: &Config) -> Result<(), OpenError> {
    config.problem().map_or(Ok(()), |problem| Err(OpenError::Config(problem)))
}
