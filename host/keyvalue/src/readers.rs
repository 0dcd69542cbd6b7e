//! How many reads of a tenant run at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// Places for reads, by tenant.
pub(crate) struct Readers {
    each: usize,
    tenants: Mutex<BTreeMap<Arc<str>, Weak<Semaphore>>>,
}

impl Readers {
    /// As many for each tenant.
    pub(crate) fn new(each: usize) -> Self {
        Self { each, tenants: Mutex::new(BTreeMap::new()) }
    }

    /// The places of a tenant, which all its stores share.
    pub(crate) fn of(&self, tenant: &Arc<str>) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tenants.get(tenant).and_then(Weak::upgrade) {
            return places;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.each));
        tenants.insert(Arc::clone(tenant), Arc::downgrade(&places));
        places
    }
}
