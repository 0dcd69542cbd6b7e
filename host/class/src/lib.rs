//! A process of its own for some of a host's tenants.
//!
//! Three kinds of processes take part, all of one program:
//!
//! - the **front** was started by the operator. It listens, and hands what is asked by
//!   tenants of a class on to the class's process: [`Process::forward`].
//! - a **keeper** for each class ([`keep`]) does nothing but to start the class's
//!   process, and to start it again when it has ended. It is there because the front
//!   gives up the right to start programs before it serves.
//! - the **class's process** serves connections that it is given: [`Link`].
//!
//! # Connections without an address
//! Nothing of this listens. The keeper makes a pair of sockets for each process that
//! it starts: one end is the process's standard input, the other goes to the front as
//! a descriptor (`unix(7)`, `SCM_RIGHTS`). Over this link the front hands the process
//! one end of a new pair for each request, and keeps the other. So no other process of
//! the same user can connect to a class, or be taken for one; and a process that can
//! make no Unix sockets and connect to nobody, as behind the second wall, can still do
//! all of it, since pairs are allowed there.
//!
//! # Who ends with whom
//! Each end of a link is closed when its process ends, however that ends. The class's
//! process ends when its link does ([`Link::serve`]), the keeper ends when the front
//! does, and the front learns of either in the same way. No signals and no process
//! numbers are used for it.
//!
//! # What a class's process can do to the front
//! It can answer wrongly, and only what it was asked; [`Process::fetch`] bounds what is
//! read of it at once. The front never takes descriptors from it.

mod backoff;
mod exposition;
mod fetch;
mod forward;
mod keeper;
mod link;
mod pass;
mod process;

pub use exposition::joined;
pub use fetch::{FetchError, Fetched};
pub use forward::{Forwarded, NoAnswer};
pub use keeper::{Keeper, keep};
pub use link::{Doors, Link, NoLink};
pub use process::{Away, Door, Process};
