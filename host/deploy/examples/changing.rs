//! A process for the tests by crashes: it changes a state folder at random until
//! it is killed, and says on its standard output what it begins and what was
//! answered, a line of JSON each.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use nala_deploy::{AppName, Component, Digest, Error, Manifest, State, TenantLimits, TenantName};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

const LIMITS: TenantLimits = TenantLimits {
    component_bytes: 200_000,
    components: 12,
    bytes: 2_000_000,
    applications: 3,
    versions: NonZeroU64::new(4).unwrap(),
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap();
    let seed = arguments.next().unwrap().parse().unwrap();
    let state = State::open(folder).unwrap();
    say(&json!({"open": true}));
    let mut random = Random(ChaCha8Rng::seed_from_u64(seed));
    let mut put: BTreeMap<TenantName, Vec<Digest>> = BTreeMap::new();
    loop {
        change(&state, &mut random, &mut put);
    }
}

fn say(line: &Value) {
    // One write, so that a kill leaves no part of a line.
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

struct Random(ChaCha8Rng);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0.next_u32() as usize % end
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }
}

fn change(state: &State, random: &mut Random, put: &mut BTreeMap<TenantName, Vec<Digest>>) {
    let tenant: TenantName = random.one(&["acme", "zeta"]).unwrap().parse().unwrap();
    let app: AppName = random.one(&["shop", "blog", "api"]).unwrap().parse().unwrap();
    let mine = put.entry(tenant.clone()).or_default();
    match random.below(10) {
        0..4 => {
            let mut bytes = vec![0; random.below(150_000)];
            random.0.fill_bytes(&mut bytes);
            let digest = Digest::of(&bytes);
            say(&json!({"begin": "put", "tenant": tenant, "digest": digest}));
            match state.put_component(&tenant, &*bytes, &LIMITS) {
                Ok(answered) => {
                    assert_eq!(answered, digest);
                    mine.push(digest);
                    say(&json!({"answered": true}));
                }
                Err(Error::TooManyComponents { .. } | Error::TooManyBytes { .. }) => {
                    say(&json!({"answered": false}));
                    say(&json!({"begin": "collect", "all": true}));
                    state.collect(Duration::ZERO, SystemTime::now()).unwrap();
                    put.clear();
                    say(&json!({"answered": true}));
                }
                Err(error) => panic!("{error}"),
            }
        }
        4..7 => {
            let count = 1 + random.below(3);
            let chosen: Vec<Digest> = (0..count).filter_map(|_| random.one(mine).copied()).collect();
            if chosen.is_empty() {
                return;
            }
            mine.retain(|digest| !chosen.contains(digest));
            let facts = json!({"imports": ["wasi:http/types@0.2.0"], "granted": []});
            let component = |digest: &Digest| Component { digest: *digest, facts: facts.clone() };
            let components = chosen.iter().zip(0..).map(|(digest, n)| (format!("c{n}"), component(digest))).collect();
            let note = random.below(1_000_000).to_string();
            say(&json!({"begin": "deploy", "tenant": tenant, "app": app, "note": note, "digests": chosen}));
            let manifest = Manifest { components, note, ..Manifest::default() };
            state.deploy(&tenant, &app, &manifest, &LIMITS).unwrap();
            say(&json!({"answered": true}));
        }
        7 => {
            let Some(listed) = state.list(Some(&tenant)).into_iter().find(|listed| listed.app == app) else { return };
            let to = *random.one(&listed.kept).unwrap();
            say(&json!({"begin": "roll back", "tenant": tenant, "app": app, "to": to}));
            state.roll_back(&tenant, &app, to).unwrap();
            say(&json!({"answered": true}));
        }
        8 => {
            if !state.list(Some(&tenant)).iter().any(|listed| listed.app == app) {
                return;
            }
            say(&json!({"begin": "remove", "tenant": tenant, "app": app}));
            state.remove(&tenant, &app).unwrap();
            say(&json!({"answered": true}));
        }
        _ => {
            say(&json!({"begin": "collect", "all": false}));
            state.collect(Duration::from_secs(3600), SystemTime::now()).unwrap();
            say(&json!({"answered": true}));
        }
    }
}
