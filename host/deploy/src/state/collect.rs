//! Clearing away components that nobody names.

use std::time::{Duration, SystemTime};

use super::State;
use crate::error::Error;

/// What was cleared away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Components that were put and not deployed in time.
    pub claims: u64,
    /// Components that are gone from the disk.
    pub components: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl State {
    /// Removes the components that no version which is kept names, but those
    /// that were put less than `unused` before `now`: their tenants may be about
    /// to deploy them.
    ///
    /// # Errors
    /// [`Error::Unsure`], [`Error::Io`]; some may be gone then.
    pub fn collect(&self, unused: Duration, now: SystemTime) -> Result<Collected, Error> {
        // Puts and deployments wait: none can count on what goes meanwhile.
        let mut inner = self.begin()?;
        let mut collected = Collected::default();
        let index = &mut inner.index;
        for (tenant, has) in &mut index.tenants {
            // One that was put after `now` is by a clock that was changed: it is young.
            let old = |put: &SystemTime| now.duration_since(*put).is_ok_and(|age| age >= unused);
            let given_up: Vec<_> = has.claims.iter().filter(|(_, put)| old(put)).map(|(digest, _)| *digest).collect();
            for digest in given_up {
                let path = self.layout.claim(tenant, &digest);
                self.disk.remove_file(&path).map_err(Error::io(&path))?;
                has.claims.remove(&digest);
                collected.claims += 1;
            }
        }
        index.tenants.retain(|_, has| !has.apps.is_empty() || !has.claims.is_empty());
        for (digest, bytes) in index.unnamed() {
            let path = self.layout.blob(&digest);
            self.disk.remove_file(&path).map_err(Error::io(&path))?;
            index.blobs.remove(&digest);
            collected.components += 1;
            collected.bytes += bytes;
        }
        Ok(collected)
    }
}
