//! A state folder that is open.

mod change;
mod collect;
mod put;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::disk::{Disk, System};
use crate::error::Error;
use crate::index::{App, Index};
use crate::layout::Layout;
use crate::manifest::Version;
use crate::name::{AppName, TenantName};
use crate::record::VersionNumber;
use crate::scan;

pub use collect::Collected;

/// What a tenant may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimits {
    /// Bytes of one component.
    pub component_bytes: u64,
    /// Components that differ, over all versions that are kept and those that
    /// are put and not deployed yet.
    pub components: u64,
    /// Bytes of all these together.
    pub bytes: u64,
    /// Applications.
    pub applications: u64,
    /// Versions that are kept of an application; older ones are dropped when a
    /// new one is deployed.
    pub versions: NonZeroU64,
}

/// What a tenant has, counted as [`TenantLimits`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Components that differ.
    pub components: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Applications.
    pub applications: u64,
}

/// An application in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub app: AppName,
    /// Which version runs.
    pub current: VersionNumber,
    /// The versions that are kept, oldest first.
    pub kept: Vec<VersionNumber>,
}

/// What can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Which version runs.
    pub current: VersionNumber,
    /// The versions that are kept, oldest first.
    pub versions: Vec<Version>,
}

/// A state folder, open for this process alone.
///
/// Calls come from any thread; changes wait for each other. All of them wait
/// for the disk, so an asynchronous caller gives them a thread for that.
#[derive(Debug)]
pub struct State {
    layout: Layout,
    disk: Box<dyn Disk>,
    inner: Mutex<Inner>,
    /// What the next draft is called.
    drafts: AtomicU64,
    /// The system frees it when the process ends, however it ends.
    _lock: File,
}

#[derive(Debug)]
struct Inner {
    index: Index,
    trust: Trust,
}

/// Whether the disk is known to hold what the index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Sure,
    Unsure,
}

impl State {
    /// Opens a state folder, or makes one of a folder that is empty or not there.
    /// What a killed process left half done is cleared away.
    ///
    /// # Errors
    /// [`Error::InUse`] where another process has it open, [`Error::Format`]
    /// where it is something else, [`Error::Damaged`] where something in it is
    /// not as it was written, [`Error::Io`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_on(folder.into(), Box::new(System))
    }

    pub(crate) fn open_on(folder: PathBuf, disk: Box<dyn Disk>) -> Result<Self, Error> {
        if !folder.is_dir() {
            scan::make_dir(&folder, &*disk)?;
        }
        let layout = Layout::new(folder);
        let lock = lock(&layout)?;
        scan::prepare(&layout, &*disk)?;
        let index = scan::scan(&layout, &*disk)?;
        let inner = Mutex::new(Inner { index, trust: Trust::Sure });
        Ok(Self { layout, disk, inner, drafts: AtomicU64::new(0), _lock: lock })
    }

    /// The version that runs.
    ///
    /// # Errors
    /// [`Error::NoSuchApplication`], [`Error::Damaged`], [`Error::Io`].
    pub fn current(&self, tenant: &TenantName, app: &AppName) -> Result<Version, Error> {
        let inner = self.lock();
        let number = found(&inner.index, tenant, app)?.record.current;
        scan::read_version(&self.layout, tenant, app, number)
    }

    /// All that is known of a version that is kept: its components with their
    /// digests, sizes and facts, who deployed it and when.
    ///
    /// # Errors
    /// [`Error::NoSuchApplication`], [`Error::NoSuchVersion`],
    /// [`Error::Damaged`], [`Error::Io`].
    pub fn inspect(&self, tenant: &TenantName, app: &AppName, version: VersionNumber) -> Result<Version, Error> {
        let inner = self.lock();
        let found = found(&inner.index, tenant, app)?;
        if !found.record.kept.contains(&version) {
            return Err(no_such_version(tenant, app, version, found));
        }
        scan::read_version(&self.layout, tenant, app, version)
    }

    /// The versions that can be gone back to.
    ///
    /// # Errors
    /// [`Error::NoSuchApplication`], [`Error::Damaged`], [`Error::Io`].
    pub fn history(&self, tenant: &TenantName, app: &AppName) -> Result<History, Error> {
        let inner = self.lock();
        let record = &found(&inner.index, tenant, app)?.record;
        let read = |number: &VersionNumber| scan::read_version(&self.layout, tenant, app, *number);
        Ok(History { current: record.current, versions: record.kept.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// What is deployed by one tenant, or by all, ordered by names.
    #[must_use]
    pub fn list(&self, tenant: Option<&TenantName>) -> Vec<Listed> {
        let inner = self.lock();
        let tenants = inner.index.tenants.iter().filter(|(name, _)| tenant.is_none_or(|tenant| tenant == *name));
        let apps = tenants.flat_map(|(tenant, has)| has.apps.iter().map(move |(app, found)| (tenant, app, found)));
        let listed = apps.map(|(tenant, app, App { record, .. })| Listed {
            tenant: tenant.clone(),
            app: app.clone(),
            current: record.current,
            kept: record.kept.iter().copied().collect(),
        });
        listed.collect()
    }

    /// What a tenant has.
    #[must_use]
    pub fn usage(&self, tenant: &TenantName) -> Usage {
        self.lock().index.usage(tenant)
    }

    /// Whether a tenant has put a component here, so that it may deploy it.
    #[must_use]
    pub fn holds(&self, tenant: &TenantName, digest: &Digest) -> bool {
        self.lock().index.components(tenant).contains(digest)
    }

    /// Where a component lies. It stays there for as long as a version that is
    /// kept names it.
    ///
    /// # Errors
    /// [`Error::NoSuchBlob`].
    pub fn component_path(&self, digest: &Digest) -> Result<PathBuf, Error> {
        let known = self.lock().index.blobs.contains_key(digest);
        known.then(|| self.layout.blob(digest)).ok_or(Error::NoSuchBlob(*digest))
    }

    /// A component, checked against its digest.
    ///
    /// # Errors
    /// [`Error::NoSuchBlob`], [`Error::Damaged`] where the disk has something
    /// else, [`Error::Io`].
    pub fn read_component(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let path = self.component_path(digest)?;
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        let is = Digest::of(&bytes);
        if is != *digest {
            return Err(Error::damaged(&path, format!("its digest is {is}")));
        }
        Ok(bytes)
    }

    /// Reads every component and every version and checks them.
    ///
    /// # Errors
    /// [`Error::Damaged`] for the first that is not as it was written,
    /// [`Error::Io`].
    pub fn verify(&self) -> Result<(), Error> {
        let inner = self.lock();
        for digest in inner.index.blobs.keys() {
            let path = self.layout.blob(digest);
            let is = hash(&path)?;
            if is != *digest {
                return Err(Error::damaged(&path, format!("its digest is {is}")));
            }
        }
        for (tenant, has) in &inner.index.tenants {
            for (app, App { versions, .. }) in &has.apps {
                for (number, digests) in versions {
                    let path = self.layout.version(tenant, app, *number);
                    if scan::read_version(&self.layout, tenant, app, *number)?.digests() != *digests {
                        return Err(Error::damaged(&path, "its components are not those that were deployed"));
                    }
                    if digests.iter().any(|digest| !inner.index.blobs.contains_key(digest)) {
                        return Err(Error::damaged(&path, "one of its components is not there"));
                    }
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in a caller's reader or allocator does not reach the index:
        // it changes only after the disk has.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the folder for this process.
fn lock(layout: &Layout) -> Result<File, Error> {
    let path = layout.lock();
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { folder: layout.root().to_owned() }),
        Err(TryLockError::Error(error)) => Err(Error::io(&path)(error)),
    }
}

fn hash(path: &Path) -> Result<Digest, Error> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut part = vec![0; 64 * 1024];
    loop {
        match file.read(&mut part).map_err(Error::io(path))? {
            0 => return Ok(Digest::finish(hasher)),
            read => hasher.update(part.get(..read).unwrap_or_default()),
        }
    }
}

fn found<'a>(index: &'a Index, tenant: &TenantName, app: &AppName) -> Result<&'a App, Error> {
    let missing = || Error::NoSuchApplication { tenant: tenant.clone(), app: app.clone() };
    index.app(tenant, app).ok_or_else(missing)
}

fn no_such_version(tenant: &TenantName, app: &AppName, version: VersionNumber, found: &App) -> Error {
    let (oldest, newest) = found.record.range();
    Error::NoSuchVersion { tenant: tenant.clone(), app: app.clone(), version, oldest, newest }
}
