//! Deploying, going back and removing.
//!
//! Each has one step that makes it so. What comes before that step is named by
//! nothing; what comes after it clears away, and is done again when the folder
//! is opened if it fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::{Inner, State, TenantLimits, Trust, found, no_such_version};
use crate::draft::Draft;
use crate::error::Error;
use crate::index::App;
use crate::manifest::{Deployed, Manifest, Version};
use crate::name::{AppName, TenantName};
use crate::record::{Record, VersionNumber};
use crate::scan;

impl State {
    /// Deploys a version of an application, whose components its tenant has put
    /// here before. It becomes the one that runs; the oldest are dropped where
    /// there are more than `limits` says.
    ///
    /// # Errors
    /// [`Error::Manifest`], [`Error::NoSuchComponent`], an error for a limit,
    /// [`Error::Unsure`], [`Error::Io`]. After any of these but the last two
    /// nothing was changed; after those, either nothing or all.
    pub fn deploy(
        &self,
        tenant: &TenantName,
        app: &AppName,
        manifest: &Manifest,
        limits: &TenantLimits,
    ) -> Result<Version, Error> {
        manifest.check()?;
        let mut inner = self.begin()?;
        self.within(&inner, tenant, app, limits)?;
        let components = components(&inner, tenant, manifest)?;
        let before = inner.index.app(tenant, app).map(|app| &app.record);
        let begins = before.is_none();
        let record = before.map_or_else(Record::first, |before| before.deployed(limits.versions));
        let version = Version {
            number: record.current,
            spin_toml: manifest.spin_toml.clone(),
            components,
            note: manifest.note.clone(),
            by: manifest.by.clone(),
            created_unix_s: manifest.created_unix_s,
        };
        let bytes = version.to_bytes()?;
        if begins {
            for folder in [self.layout.tenant(tenant), self.layout.app(tenant, app), self.layout.versions(tenant, app)]
            {
                self.make_dir(&mut inner, &folder)?;
            }
        }
        self.replace(&mut inner, &self.layout.version(tenant, app, version.number), &bytes)?;
        self.write_record(&mut inner, tenant, app, &record)?;

        let has = inner.index.tenants.entry(tenant.clone()).or_default();
        let digests = version.digests();
        for digest in &digests {
            // The version names it from now on.
            if has.claims.remove(digest).is_some() {
                let _ = self.disk.remove_file(&self.layout.claim(tenant, digest));
            }
        }
        let now =
            has.apps.entry(app.clone()).or_insert_with(|| App { record: record.clone(), versions: BTreeMap::new() });
        now.versions.insert(version.number, digests);
        for number in now.record.kept.difference(&record.kept) {
            now.versions.remove(number);
            let _ = self.disk.remove_file(&self.layout.version(tenant, app, *number));
        }
        now.record = record;
        Ok(version)
    }

    /// Runs another version that is kept.
    ///
    /// # Errors
    /// [`Error::NoSuchApplication`], [`Error::NoSuchVersion`],
    /// [`Error::Damaged`], [`Error::Unsure`], [`Error::Io`].
    pub fn roll_back(&self, tenant: &TenantName, app: &AppName, to: VersionNumber) -> Result<Version, Error> {
        let mut inner = self.begin()?;
        let found = found(&inner.index, tenant, app)?;
        let record = found.record.rolled_back(to).ok_or_else(|| no_such_version(tenant, app, to, found))?;
        // What cannot be read must not be what runs.
        let version = scan::read_version(&self.layout, tenant, app, to)?;
        self.write_record(&mut inner, tenant, app, &record)?;
        let has = inner.index.tenants.get_mut(tenant);
        if let Some(app) = has.and_then(|has| has.apps.get_mut(app)) {
            app.record = record;
        }
        Ok(version)
    }

    /// Removes an application with all its versions. One that is deployed later
    /// under the same name begins with version 1 again, and its components have
    /// to be put again.
    ///
    /// # Errors
    /// [`Error::NoSuchApplication`], [`Error::Unsure`], [`Error::Io`].
    pub fn remove(&self, tenant: &TenantName, app: &AppName) -> Result<(), Error> {
        let mut inner = self.begin()?;
        found(&inner.index, tenant, app)?;
        let path = self.layout.current(tenant, app);
        self.disk.remove_file(&path).map_err(Error::io(&path))?;
        self.settle(&mut inner, &self.layout.app(tenant, app))?;

        if let Some(has) = inner.index.tenants.get_mut(tenant) {
            has.apps.remove(app);
        }
        let _ = scan::clear_app(&self.layout, &*self.disk, tenant, app);
        Ok(())
    }

    /// Waits for other changes.
    pub(super) fn begin(&self) -> Result<MutexGuard<'_, Inner>, Error> {
        let inner = self.lock();
        match inner.trust {
            Trust::Sure => Ok(inner),
            Trust::Unsure => Err(Error::Unsure),
        }
    }

    /// Whether changes are refused.
    #[cfg(test)]
    pub(crate) fn begin_for_tests(&self) -> Result<(), Error> {
        self.begin().map(drop)
    }

    /// Makes the names in a folder safe. Where that fails, nobody knows what the
    /// disk has, and trying again could report success for what was lost.
    pub(super) fn settle(&self, inner: &mut Inner, folder: &Path) -> Result<(), Error> {
        self.disk.sync_dir(folder).map_err(|error| {
            inner.trust = Trust::Unsure;
            Error::io(folder)(error)
        })
    }

    /// Makes a folder, if it is not there.
    pub(super) fn make_dir(&self, inner: &mut Inner, folder: &Path) -> Result<(), Error> {
        match self.disk.create_dir(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::io(folder)(error)),
            _ => self.settle(inner, folder.parent().unwrap_or(folder)),
        }
    }

    /// A file that has no name yet.
    pub(super) fn draft(&self) -> Result<Draft<'_>, Error> {
        let number = self.drafts.fetch_add(1, Ordering::Relaxed);
        Draft::begin(&*self.disk, self.layout.drafts().join(number.to_string()))
    }

    /// Replaces a file in one step.
    fn replace(&self, inner: &mut Inner, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let mut draft = self.draft()?;
        draft.write(bytes)?;
        draft.finish()?;
        draft.name(path).map_err(Error::io(path))?;
        self.settle(inner, path.parent().unwrap_or(path))
    }

    fn write_record(
        &self,
        inner: &mut Inner,
        tenant: &TenantName,
        app: &AppName,
        record: &Record,
    ) -> Result<(), Error> {
        let path = self.layout.current(tenant, app);
        let bytes = serde_json::to_vec(record).map_err(|error| Error::io(&path)(error.into()))?;
        self.replace(inner, &path, &bytes)
    }

    fn within(&self, inner: &Inner, tenant: &TenantName, app: &AppName, limits: &TenantLimits) -> Result<(), Error> {
        let usage = inner.index.usage(tenant);
        if inner.index.app(tenant, app).is_none() && usage.applications >= limits.applications {
            return Err(Error::TooManyApplications { tenant: tenant.clone(), limit: limits.applications });
        }
        Ok(())
    }
}

/// What the manifest names, with sizes.
fn components(inner: &Inner, tenant: &TenantName, manifest: &Manifest) -> Result<BTreeMap<String, Deployed>, Error> {
    let own = inner.index.components(tenant);
    let resolve = |(id, component): (&String, &crate::manifest::Component)| {
        let digest = component.digest;
        let bytes = inner.index.blobs.get(&digest).filter(|_| own.contains(&digest)).copied();
        let missing = || Error::NoSuchComponent { tenant: tenant.clone(), component: id.clone(), digest };
        let bytes = bytes.ok_or_else(missing)?;
        Ok((id.clone(), Deployed { digest, bytes, facts: component.facts.clone() }))
    };
    manifest.components.iter().map(resolve).collect()
}
