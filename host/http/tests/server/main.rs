//! The server over real sockets, with clients that behave and clients that do
//! not.

mod admin;
mod disconnect;
mod drain;
mod harness;
mod limits;
mod requests;
mod streaming;
