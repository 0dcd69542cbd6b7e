//! `nala:relay`: what instances of one component say to each other for one tenant, and
//! texts that clients keep for them.

mod inboxes;
mod seal;

use std::sync::Arc;

use nala_tenant::{Stock, TenantName};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::store::StoreData;
use bindings::nala::relay::mailbox::{Error, HostInbox};
use bindings::nala::relay::{mailbox, seal as sealing};
use inboxes::{Inbox, Inboxes};
use seal::Seal;

/// Whose instances may talk to each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) application: Arc<str>,
    pub(crate) app: Arc<str>,
    pub(crate) tenant: TenantName,
}

mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../wit/wasi-io", "../../wit/nala-relay"],
        world: "nala:relay/user",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "nala:relay/mailbox.inbox": super::inboxes::Inbox,
        },
    });
}

/// The longest address that a component may choose, in bytes.
const LONGEST_ADDRESS: usize = 1024;

/// What all components of a runtime have for this.
#[derive(Debug)]
pub(crate) struct Relay {
    inboxes: Arc<Inboxes>,
    seal: Seal,
}

impl Relay {
    /// None: the system has no random numbers.
    pub(crate) fn new() -> Option<Self> {
        Some(Self { inboxes: Arc::default(), seal: Seal::new()? })
    }
}

struct HasRelay;

impl HasData for HasRelay {
    type Data<'a> = &'a mut StoreData;
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    mailbox::add_to_linker::<_, HasRelay>(linker, |data| data)?;
    sealing::add_to_linker::<_, HasRelay>(linker, |data| data)
}

impl mailbox::Host for StoreData {
    fn send(&mut self, address: String, message: String) -> Result<Result<(), Error>> {
        let Some(inbox) = self.relay.inboxes.find(&address, &self.scope) else {
            return Ok(Err(Error::UnknownAddress));
        };
        // It waits on the account of the tenant, which is the same for both.
        let Ok(held) = self.account.hold(Stock::HostBytes, message.len() as u64) else {
            return Ok(Err(Error::Full));
        };
        Ok(if inbox.put(message, held) { Ok(()) } else { Err(Error::Full) })
    }
}

/// Lets a guest wait for a message along with other things.
struct Ready(Inbox);

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl HostInbox for StoreData {
    fn new(&mut self, address: Option<String>) -> Result<Resource<Inbox>> {
        if address.as_ref().is_some_and(|address| address.len() > LONGEST_ADDRESS) {
            return Err(wasmtime::format_err!("an inbox's address has at most {LONGEST_ADDRESS} bytes"));
        }
        let inbox = self.relay.inboxes.open(self.scope.clone(), address);
        let inbox = inbox.ok_or_else(|| wasmtime::format_err!("the system has no random numbers"))?;
        Ok(self.table.push(inbox)?)
    }

    fn address(&mut self, inbox: Resource<Inbox>) -> Result<String> {
        Ok(self.table.get(&inbox)?.address().to_owned())
    }

    fn subscribe(&mut self, inbox: Resource<Inbox>) -> Result<Resource<DynPollable>> {
        let ready = Ready(self.table.get(&inbox)?.clone());
        let ready = self.table.push(ready)?;
        subscribe(&mut self.table, ready)
    }

    fn take(&mut self, inbox: Resource<Inbox>) -> Result<Option<String>> {
        Ok(self.table.get(&inbox)?.take())
    }

    fn drop(&mut self, inbox: Resource<Inbox>) -> Result<()> {
        self.table.delete(inbox)?;
        Ok(())
    }
}

impl sealing::Host for StoreData {
    fn close(&mut self, text: String, about: String) -> Result<String> {
        Ok(self.relay.seal.close(&text, &about, &self.scope))
    }

    fn open(&mut self, sealed: String, about: String) -> Result<Option<String>> {
        Ok(self.relay.seal.open(&sealed, &about, &self.scope))
    }
}
