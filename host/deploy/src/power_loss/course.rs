//! A course of changes that comes by everything, and what is seen of it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{Component, Manifest};
use crate::name::{AppName, TenantName};
use crate::state::{History, State, TenantLimits};

#[derive(Debug, Clone)]
pub(super) enum Change {
    Put(&'static str, &'static str),
    Deploy(&'static str, &'static str, &'static [&'static str]),
    RollBack(&'static str, &'static str, u64),
    Remove(&'static str, &'static str),
    Collect,
}

/// What a user can tell of a folder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    applications: BTreeMap<(TenantName, AppName), History>,
    components: BTreeMap<TenantName, BTreeSet<Digest>>,
}

impl Seen {
    /// Whether it holds the same, and perhaps claims that were already given up.
    pub(super) fn is_at_least(&self, other: &Self) -> bool {
        let none = BTreeSet::new();
        let covered = |(tenant, components): (&TenantName, &BTreeSet<Digest>)| {
            components.is_subset(self.components.get(tenant).unwrap_or(&none))
        };
        self.applications == other.applications && other.components.iter().all(covered)
    }
}

const CONTENTS: &[&str] = &["first", "second", "third", "a fourth that is longer than the others", "fifth"];

pub(super) fn course() -> Vec<Change> {
    use Change::{Collect, Deploy, Put, Remove, RollBack};
    vec![
        Put("a", "first"),
        Put("a", "second"),
        Deploy("a", "shop", &["first", "second"]),
        Put("b", "first"),
        Deploy("b", "shop", &["first"]),
        Put("a", "third"),
        Deploy("a", "shop", &["third"]),
        RollBack("a", "shop", 1),
        Put("a", "a fourth that is longer than the others"),
        Deploy("a", "blog", &["third", "a fourth that is longer than the others"]),
        // The first version is dropped here, and `second` with it.
        Deploy("a", "shop", &["third"]),
        Put("b", "fifth"),
        Collect,
        Remove("a", "blog"),
        Put("b", "second"),
        Deploy("b", "shop", &["second", "first"]),
        Collect,
        Remove("b", "shop"),
        Put("b", "first"),
        Deploy("b", "shop", &["first"]),
    ]
}

fn limits() -> TenantLimits {
    TenantLimits {
        component_bytes: 1000,
        components: 10,
        bytes: 1000,
        applications: 3,
        versions: NonZeroU64::new(2).unwrap(),
    }
}

pub(super) fn perform(state: &State, change: &Change) -> Result<(), Error> {
    let tenant = |name: &str| name.parse::<TenantName>().unwrap();
    let app = |name: &str| name.parse::<AppName>().unwrap();
    match change {
        Change::Put(who, content) => state.put_component(&tenant(who), content.as_bytes(), &limits()).map(drop),
        Change::Deploy(who, name, contents) => {
            let component = |content: &str| Component {
                digest: Digest::of(content.as_bytes()),
                facts: serde_json::json!({"imports": ["wasi:http/types"]}),
            };
            let components = contents.iter().zip(0..).map(|(content, n)| (format!("c{n}"), component(content)));
            let manifest = Manifest {
                spin_toml: "spin_manifest_version = 2".to_owned(),
                components: components.collect(),
                by: (*who).to_owned(),
                ..Manifest::default()
            };
            state.deploy(&tenant(who), &app(name), &manifest, &limits()).map(drop)
        }
        Change::RollBack(who, name, to) => {
            let to = to.to_string().parse().unwrap();
            state.roll_back(&tenant(who), &app(name), to).map(drop)
        }
        Change::Remove(who, name) => state.remove(&tenant(who), &app(name)),
        Change::Collect => state.collect(Duration::from_secs(3600), SystemTime::now()).map(drop),
    }
}

/// A tenant that the course does not know deploys something.
pub(super) fn deploy_anew(state: &State) -> Result<(), Error> {
    perform(state, &Change::Put("anew", "first"))?;
    perform(state, &Change::Deploy("anew", "shop", &["first"]))?;
    state.verify()
}

pub(super) fn look(state: &State) -> Seen {
    let history = |listed: crate::state::Listed| {
        let history = state.history(&listed.tenant, &listed.app).unwrap();
        ((listed.tenant, listed.app), history)
    };
    let digests: BTreeSet<Digest> = CONTENTS.iter().map(|content| Digest::of(content.as_bytes())).collect();
    let held = |name: &str| {
        let tenant = name.parse().unwrap();
        let held = digests.iter().filter(|digest| state.holds(&tenant, digest)).copied().collect();
        (tenant, held)
    };
    Seen {
        applications: state.list(None).into_iter().map(history).collect(),
        components: ["a", "b"].into_iter().map(held).collect(),
    }
}
