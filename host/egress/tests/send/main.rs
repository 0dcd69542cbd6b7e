//! Requests to real servers on the loopback interface, which literal grants
//! allow.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests fail by panicking")]

mod bench;
mod bounds;
mod credentials;
mod denied;
mod hostile;
mod plain;
mod pool;
mod servers;
mod tls;
