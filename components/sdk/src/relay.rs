//! What the instances of one component say to each other, and what clients keep for them.
//!
//! Each request has an instance of its own. Where a protocol answers a question with
//! another request, the second one sends what it says to the [`Inbox`] of the first.
//! What is only good for one client goes to that client, under a [`seal`].

use crate::bindings::nala::relay::{mailbox, seal as sealing};
use wasip2::io::poll::Pollable;

pub use crate::bindings::nala::relay::mailbox::Error;

/// Where messages of other instances of this component arrive, for the same tenant. It ends
/// when it is dropped.
#[derive(Debug)]
pub struct Inbox(mailbox::Inbox);

impl Inbox {
    /// One at an address that nobody can guess.
    #[must_use]
    pub fn open() -> Self {
        Self(mailbox::Inbox::new(None))
    }

    /// One at an address of at most 1024 bytes.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self(mailbox::Inbox::new(Some(address)))
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> String {
        self.0.address()
    }

    /// Ready when there is a message, to wait for it along with other things.
    #[must_use]
    pub fn subscribe(&self) -> Pollable {
        self.0.subscribe()
    }

    /// The next message, if there is one.
    #[must_use]
    pub fn take(&self) -> Option<String> {
        self.0.take()
    }
}

/// Sends a message to an inbox.
///
/// # Errors
/// There is no such inbox, or it is full.
pub fn send(address: &str, message: &str) -> Result<(), Error> {
    mailbox::send(address, message)
}

/// A text that a client can keep, in characters that a header can carry, and cannot change.
/// It can be read by whoever has it. `about` is what it is good for.
#[must_use]
pub fn seal(text: &str, about: &str) -> String {
    sealing::close(text, about)
}

/// The text again. None: it was not sealed for this component, tenant and `about` since
/// the host was started, or was changed.
#[must_use]
pub fn unseal(sealed: &str, about: &str) -> Option<String> {
    sealing::open(sealed, about)
}
