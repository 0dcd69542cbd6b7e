//! Key-value data of tenants and applications, kept in one file: what is behind
//! `wasi:keyvalue@0.2.0-draft2` and the key-value interfaces of Spin.
//!
//! [`KeyValue::open`] is the way in, [`KeyValue::store`] gives a [`Store`], whose
//! operations block; [`Store::to_async`] gives the same for a runtime.
//!
//! - **Whose data it is** is a [`Scope`], which the host makes. A key is stored
//!   behind the lengths and names of its tenant, application and store, so no
//!   names can be chosen that lead to somebody else's.
//! - **Writes** of all go to one thread, which commits those that wait as one
//!   transaction and acknowledges them when they are on the disk. Tenants take
//!   turns, by what their writes cost; what one has waiting is bounded.
//! - **Reads** see the last commit and wait for no write.
//! - **Each operation is atomic**, the batches too, though `wasi:keyvalue` would let
//!   them be seen half done. After a crash an operation is there as a whole or not
//!   at all, and there if it was acknowledged.
//! - **What a tenant has stored is counted** in the same transactions, so that the
//!   sum is right after a crash. [`KeyValue::recount`] checks it.
//!
//! This crate knows nothing of Wasm. [`Error`] says how it is told to a guest.

mod asynchronous;
mod cas;
mod change;
mod config;
mod database;
mod disk;
mod error;
mod keyvalue;
mod layout;
mod readers;
mod recount;
mod scope;
mod store;
mod tables;
mod turns;
mod writer;

pub use asynchronous::AsyncStore;
pub use cas::{Cas, SwapError};
pub use config::{Config, Limits, Queue};
pub use error::{Error, GuestError, OpenError};
pub use keyvalue::KeyValue;
pub use recount::{Difference, Recount};
pub use scope::{InvalidName, NAME_BYTES, Scope};
pub use store::{Page, Pair, Store, Usage};
