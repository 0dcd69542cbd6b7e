//! The real binary with the real model, asked by real clients.

#![allow(missing_docs, reason = "tests are documented by their names")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

mod adapters;
mod agents;
mod answers;
mod bad_guests;
mod bad_models;
mod bad_requests;
mod batching;
mod classes;
mod clients;
mod conformance;
mod dependencies;
mod deploying;
mod examples;
mod granted;
mod hang_up;
mod hostile;
mod interfaces;
mod kubernetes;
mod limits_table;
mod made;
mod mcp;
mod mcp_client;
mod middleware;
mod models;
mod prefix;
mod python;
mod registries;
mod scripted;
mod served_tools;
mod shutdown;
mod soak;
mod structured;
mod telemetry;
mod tenants;
mod tokens;
mod tools;
