//! The server over real sockets, with clients that behave and clients that do
//! not.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests fail by panicking")]

mod admin;
mod behind;
mod disconnect;
mod drain;
mod harness;
mod limits;
mod requests;
mod stall;
mod streaming;
