//! Taking in components.

use std::fs::OpenOptions;
use std::io::Read;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::{Inner, State, TenantLimits};
use crate::digest::Digest;
use crate::draft::Draft;
use crate::error::Error;
use crate::name::TenantName;

/// Bytes that are read at a time.
const PART: usize = 64 * 1024;

impl State {
    /// Takes in a component for a tenant, who may deploy it from then on. It is
    /// hashed while it is read, and never held in memory as a whole.
    ///
    /// Until it is deployed it stays as long as [`State::collect`] is told;
    /// putting it again begins that time anew.
    ///
    /// # Errors
    /// [`Error::Source`] where the reader fails, [`Error::ComponentTooLarge`],
    /// [`Error::TooManyComponents`], [`Error::TooManyBytes`],
    /// [`Error::Unsure`], [`Error::Io`]. The component is not there then.
    pub fn put_component(
        &self,
        tenant: &TenantName,
        reader: impl Read,
        limits: &TenantLimits,
    ) -> Result<Digest, Error> {
        // Refused before the disk is filled for nothing.
        drop(self.begin()?);
        let mut draft = self.draft()?;
        let (digest, bytes) = copy(reader, &mut draft, limits.component_bytes)?;
        draft.finish()?;

        let mut inner = self.begin()?;
        fits(&inner, tenant, &digest, bytes, limits)?;
        if !inner.index.blobs.contains_key(&digest) {
            let path = self.layout.blob(&digest);
            draft.name(&path).map_err(Error::io(&path))?;
            self.settle(&mut inner, &self.layout.blobs())?;
            inner.index.blobs.insert(digest, bytes);
        }
        self.claim(&mut inner, tenant, &digest)?;
        Ok(digest)
    }

    /// Writes down that a tenant has put a component.
    fn claim(&self, inner: &mut Inner, tenant: &TenantName, digest: &Digest) -> Result<(), Error> {
        let now = SystemTime::now();
        let path = self.layout.claim(tenant, digest);
        let claimed = inner.index.tenants.get(tenant).is_some_and(|has| has.claims.contains_key(digest));
        if claimed {
            let file = OpenOptions::new().write(true).open(&path).map_err(Error::io(&path))?;
            file.set_modified(now).map_err(Error::io(&path))?;
        } else {
            let folder = self.layout.claims(tenant);
            if !folder.is_dir() {
                self.make_dir(inner, &folder)?;
            }
            // One that is there was given up, and its removal failed.
            if !path.is_file() {
                drop(self.disk.create(&path).map_err(Error::io(&path))?);
            }
            self.settle(inner, &folder)?;
        }
        inner.index.tenants.entry(tenant.clone()).or_default().claims.insert(*digest, now);
        Ok(())
    }
}

fn copy(mut reader: impl Read, draft: &mut Draft<'_>, limit: u64) -> Result<(Digest, u64), Error> {
    let mut hasher = Sha256::new();
    let mut part = vec![0; PART];
    let mut total = 0_u64;
    loop {
        let read = match reader.read(&mut part) {
            Ok(0) => return Ok((Digest::finish(hasher), total)),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::Source(error)),
        };
        let bytes = part.get(..read).unwrap_or_default();
        total = total.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        if total > limit {
            return Err(Error::ComponentTooLarge { limit });
        }
        hasher.update(bytes);
        draft.write(bytes)?;
    }
}

/// Checks a tenant's sums with one component more.
fn fits(inner: &Inner, tenant: &TenantName, digest: &Digest, bytes: u64, limits: &TenantLimits) -> Result<(), Error> {
    if inner.index.components(tenant).contains(digest) {
        return Ok(());
    }
    let usage = inner.index.usage(tenant);
    let tenant = tenant.clone();
    let wanted = usage.components.saturating_add(1);
    if wanted > limits.components {
        return Err(Error::TooManyComponents { tenant, wanted, limit: limits.components });
    }
    let wanted = usage.bytes.saturating_add(bytes);
    if wanted > limits.bytes {
        return Err(Error::TooManyBytes { tenant, wanted, limit: limits.bytes });
    }
    Ok(())
}
