//! Inboxes, found by addresses that nobody can guess.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Notify;

use super::Scope;
use crate::account::Holding;

/// The messages that wait in an inbox,
const MOST_MESSAGES: usize = 16;
/// and their bytes.
const MOST_BYTES: usize = 1 << 20;

/// All that are open.
#[derive(Debug, Default)]
pub(super) struct Inboxes(Mutex<BTreeMap<Place, Weak<Inner>>>);

/// Where an inbox is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    scope: Scope,
    address: String,
}

/// One of them. It ends when the last of these is dropped.
#[derive(Debug, Clone)]
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct Inbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    all: Arc<Inboxes>,
    messages: Mutex<VecDeque<(String, Holding)>>,
    arrived: Notify,
}

impl Inboxes {
    /// A new one, at an address of its own if none is given. None: the system has no random
    /// numbers.
    pub(super) fn open(self: &Arc<Self>, scope: Scope, address: Option<String>) -> Option<Inbox> {
        let address = match address {
            Some(address) => address,
            None => random_address()?,
        };
        let inner = Arc::new(Inner {
            place: Place { scope, address },
            all: Arc::clone(self),
            messages: Mutex::default(),
            arrived: Notify::new(),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(inner.place.clone(), Arc::downgrade(&inner));
        Some(Inbox(inner))
    }

    /// The one of an address, if there is one of that scope.
    pub(super) fn find(&self, address: &str, scope: &Scope) -> Option<Inbox> {
        let place = Place { scope: scope.clone(), address: address.to_owned() };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&place).and_then(Weak::upgrade).map(Inbox)
    }
}

fn random_address() -> Option<String> {
    let mut random = [0; 24];
    SystemRandom::new().fill(&mut random).ok()?;
    Some(URL_SAFE_NO_PAD.encode(random))
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another one may be at the address by now.
        if all.get(&self.place).is_some_and(|inner| inner.strong_count() == 0) {
            all.remove(&self.place);
        }
    }
}

impl Inbox {
    pub(super) fn address(&self) -> &str {
        &self.0.place.address
    }

    /// Takes a message in. False: there is no room for it.
    pub(super) fn put(&self, message: String, held: Holding) -> bool {
        let mut messages = self.0.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = messages.iter().map(|(message, _)| message.len()).fold(message.len(), usize::saturating_add);
        let fits = messages.len() < MOST_MESSAGES && bytes <= MOST_BYTES;
        if fits {
            messages.push_back((message, held));
        }
        drop(messages);
        self.0.arrived.notify_waiters();
        fits
    }

    pub(super) fn take(&self) -> Option<String> {
        let mut messages = self.0.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.pop_front().map(|(message, _)| message)
    }

    /// Waits for a message.
    pub(super) async fn ready(&self) {
        loop {
            let arrived = self.0.arrived.notified();
            let mut arrived = std::pin::pin!(arrived);
            // What comes after the look is not missed.
            arrived.as_mut().enable();
            if !self.0.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            arrived.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use nala_tenant::{Limits, Stock, Tenant};

    use super::*;
    use crate::account::Account;

    fn scope(app: &str, tenant: &Tenant) -> Scope {
        Scope { application: "x".into(), app: app.into(), tenant: tenant.name().clone() }
    }

    #[tokio::test]
    async fn messages_arrive_in_order_where_they_were_sent_and_nowhere_else() {
        let tenant = Tenant::within(Limits::default());
        let account = Account::new(Arc::clone(&tenant), Tenant::within(Limits::default()), "a");
        let hold = || account.hold(Stock::HostBytes, 1).unwrap();
        let all = Arc::new(Inboxes::default());
        let inbox = all.open(scope("a", &tenant), None).unwrap();
        let other = all.open(scope("a", &tenant), None).unwrap();
        assert_ne!(inbox.address(), other.address());
        assert!(all.find(inbox.address(), &scope("b", &tenant)).is_none(), "of another component");
        assert!(all.find("a", &scope("a", &tenant)).is_none());
        let found = all.find(inbox.address(), &scope("a", &tenant)).unwrap();
        let waits = inbox.clone();
        let ready = tokio::spawn(async move { waits.ready().await });
        tokio::task::yield_now().await;
        assert!(found.put("1".into(), hold()) && found.put("2".into(), hold()));
        ready.await.unwrap();
        assert_eq!(
            [inbox.take(), inbox.take(), inbox.take(), other.take()],
            [Some("1".into()), Some("2".into()), None, None]
        );
        assert!(!found.put("x".repeat(MOST_BYTES + 1), hold()));
        assert!((0..MOST_MESSAGES).all(|_| found.put("m".into(), hold())) && !found.put("m".into(), hold()));
        let address = inbox.address().to_owned();
        drop((inbox, found));
        let at = |app| all.open(scope(app, &tenant), Some("here".into())).unwrap();
        let (first, of_another) = (at("a"), at("b"));
        let second = at("a");
        drop(first);
        assert!(all.find("here", &scope("a", &tenant)).unwrap().put("3".into(), hold()));
        assert_eq!((second.take(), of_another.take()), (Some("3".into()), None));
        drop((second, of_another));
        assert!(all.find(&address, &scope("a", &tenant)).is_none());
        assert_eq!(all.0.lock().unwrap().len(), 1, "nothing is left of it");
        assert_eq!(tenant.quota(Stock::HostBytes).used(), 0);
    }
}
