//! How many connections there may be.

use std::any::Any;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

use crate::owner::Owner;

/// The right to one connection. Dropping it gives it back.
pub type Permit = Box<dyn Any + Send + Sync>;

/// How many connections there may be, and whose.
pub trait Admit: Send + Sync + 'static {
    /// Takes a place at once, if there is one.
    fn admit(&self, owner: &Owner) -> Option<Permit>;

    /// Waits for a place. The caller gives up when its connect timeout ends.
    fn wait<'a>(&'a self, owner: &'a Owner) -> Pin<Box<dyn Future<Output = Permit> + Send + 'a>>;
}

/// So many connections in all, and so many for each tenant.
#[derive(Debug)]
pub struct ConnectionLimit {
    all: Arc<Semaphore>,
    each: usize,
    /// A tenant's places live as long as one of them is taken.
    tenants: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

impl ConnectionLimit {
    /// A limit for all tenants together, and one for each. Both are at least
    /// one.
    pub fn new(all: usize, each: usize) -> Self {
        let bound = |places: usize| places.clamp(1, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(bound(all))), each: bound(each), tenants: Mutex::default() }
    }

    fn tenant(&self, owner: &Owner) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tenants.get(&owner.tenant).and_then(Weak::upgrade) {
            return places;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.each));
        tenants.insert(Arc::clone(&owner.tenant), Arc::downgrade(&places));
        places
    }
}

impl Admit for ConnectionLimit {
    fn admit(&self, owner: &Owner) -> Option<Permit> {
        let own = self.tenant(owner).try_acquire_owned().ok()?;
        let shared = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Box::new((own, shared)))
    }

    fn wait<'a>(&'a self, owner: &'a Owner) -> Pin<Box<dyn Future<Output = Permit> + Send + 'a>> {
        Box::pin(async move {
            // The tenant's own first: who waits for it takes nothing of others.
            let own = self.tenant(owner).acquire_owned().await;
            let shared = Arc::clone(&self.all).acquire_owned().await;
            // Neither is ever closed.
            Box::new((own.ok(), shared.ok())) as Permit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tenant_cannot_take_the_places_of_others() {
        let limit = ConnectionLimit::new(3, 2);
        let (one, two) = (Owner::new("one", "c"), Owner::new("two", "c"));
        let held = [limit.admit(&one), limit.admit(&one)];
        assert!(held.iter().all(Option::is_some));
        assert!(limit.admit(&one).is_none(), "a third connection of one tenant");
        let third = limit.admit(&two).expect("another tenant has a place");
        assert!(limit.admit(&two).is_none(), "a fourth in all");
        drop(held);
        assert!(limit.admit(&two).is_some());
        drop(third);
        assert_eq!(limit.tenants.lock().unwrap().len(), 2);
        assert!(limit.admit(&Owner::new("three", "c")).is_some());
        assert_eq!(limit.tenants.lock().unwrap().len(), 1, "tenants without connections are forgotten");
    }
}
