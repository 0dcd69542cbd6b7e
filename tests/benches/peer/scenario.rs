//! What is measured, a module each.

mod agent;
mod first_token;
mod growth;
mod json;
mod streams;
mod tree;

use crate::settings::Settings;

/// Branches of the tree.
pub(crate) const BRANCHES: u32 = tree::BRANCHES;

/// A scenario, which starts its servers and prints what it measured.
type Scenario = fn(&Settings);

/// All of them by name, in the order in which they are run.
pub(crate) const ALL: [(&str, Scenario); 9] = [
    ("decode", streams::one),
    ("first-token", first_token::run),
    ("streams", streams::many),
    ("json", json::run),
    ("agent", agent::run),
    ("agent-afresh", agent::run_afresh),
    ("agent-calls", agent::run_by_schema),
    ("tree", tree::run),
    ("growth", growth::run),
];
