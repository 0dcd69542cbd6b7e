//! Random programs, beside a map that says what is to come of them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;

use nala_keyvalue::{Config, Error, KeyValue, Limits, Scope, Store, Usage};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Set(usize, String, Vec<u8>),
    Delete(usize, String),
    Increment(usize, String, i64),
    SetMany(usize, Vec<(String, Vec<u8>)>),
    DeleteMany(usize, Vec<String>),
    RemoveApplication(usize),
    RemoveTenant(usize),
    Reopen,
}

const SCOPES: [(&str, &str); 4] = [("a", "x"), ("a", "y"), ("ab", "x"), ("b", "x")];
const LIMITS: Limits = Limits {
    key_bytes: 8,
    value_bytes: 64,
    tenant_bytes: 400,
    store_keys: 6,
    page_keys: 3,
    listing_bytes: 1000,
    batch_keys: 4,
    batch_bytes: 120,
};

fn step() -> impl Strategy<Value = Step> {
    let key = || "[ab]{0,2}";
    let value = || prop_oneof![proptest::collection::vec(any::<u8>(), 0..70), Just(b"7".to_vec())];
    let scope = || 0..SCOPES.len();
    prop_oneof![
        8 => (scope(), key(), value()).prop_map(|(s, k, v)| Step::Set(s, k, v)),
        3 => (scope(), key()).prop_map(|(s, k)| Step::Delete(s, k)),
        3 => (scope(), key(), -9_i64..9).prop_map(|(s, k, d)| Step::Increment(s, k, d)),
        3 => (scope(), proptest::collection::vec((key(), value()), 0..6)).prop_map(|(s, p)| Step::SetMany(s, p)),
        2 => (scope(), proptest::collection::vec(key(), 0..6)).prop_map(|(s, k)| Step::DeleteMany(s, k)),
        1 => scope().prop_map(Step::RemoveApplication),
        1 => scope().prop_map(Step::RemoveTenant),
        1 => Just(Step::Reopen),
    ]
}

/// What is there: by scope, then by key.
type Model = [BTreeMap<String, Vec<u8>>; SCOPES.len()];

fn bytes(scope: usize, map: &BTreeMap<String, Vec<u8>>) -> u64 {
    let (tenant, application) = SCOPES[scope];
    let names = tenant.len() + application.len() + "store".len() + 3;
    map.iter().map(|(key, value)| (names + key.len() + 8 + value.len()) as u64).sum()
}

fn tenant_bytes(model: &Model, tenant: &str) -> u64 {
    (0..SCOPES.len()).filter(|&scope| SCOPES[scope].0 == tenant).map(|scope| bytes(scope, &model[scope])).sum()
}

/// Sets them in the model if that is allowed, and says whether it was.
fn set(model: &mut Model, scope: usize, pairs: &[(String, Vec<u8>)]) -> bool {
    let total: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
    if pairs.iter().any(|(_, value)| value.len() > 64) || pairs.len() > 4 || total > 120 {
        return false;
    }
    let mut after = model.clone();
    after[scope].extend(pairs.iter().cloned());
    let tenant = SCOPES[scope].0;
    let (old, new) = (tenant_bytes(model, tenant), tenant_bytes(&after, tenant));
    if (new > old && new > 400) || (after[scope].len() > model[scope].len() && after[scope].len() > 6) {
        return false;
    }
    *model = after;
    true
}

fn number(value: Option<&Vec<u8>>) -> Option<i64> {
    value.map_or(Some(0), |value| std::str::from_utf8(value).ok()?.parse().ok())
}

fn stores(kv: &KeyValue) -> Vec<Store> {
    SCOPES.iter().map(|(t, a)| kv.store(&Scope::new(t, a).unwrap(), "store").unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_counts_are_what_the_data_says(steps in proptest::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { limits: LIMITS, ..Config::default() };
        let mut kv = KeyValue::open(folder.path(), config.clone()).unwrap();
        let mut stores_now = stores(&kv);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Set(s, key, value) => {
                    let allowed = set(&mut model, s, &[(key.clone(), value.clone())]);
                    prop_assert_eq!(stores_now[s].set(&key, &value).is_ok(), allowed);
                }
                Step::SetMany(s, pairs) => {
                    let allowed = set(&mut model, s, &pairs);
                    prop_assert_eq!(stores_now[s].set_many(pairs).is_ok(), allowed);
                }
                Step::Increment(s, key, delta) => {
                    let Some(value) = number(model[s].get(&key)) else {
                        prop_assert_eq!(stores_now[s].increment(&key, delta), Err(Error::NotANumber));
                        continue;
                    };
                    let sum = value + delta;
                    let allowed = set(&mut model, s, &[(key.clone(), sum.to_string().into_bytes())]);
                    prop_assert_eq!(stores_now[s].increment(&key, delta).ok(), allowed.then_some(sum));
                }
                Step::Delete(s, key) => {
                    model[s].remove(&key);
                    stores_now[s].delete(&key).unwrap();
                }
                Step::DeleteMany(s, keys) => {
                    let allowed = keys.len() <= 4;
                    if allowed {
                        model[s].retain(|key, _| !keys.contains(key));
                    }
                    prop_assert_eq!(stores_now[s].delete_many(keys).is_ok(), allowed);
                }
                Step::RemoveApplication(s) => {
                    model[s].clear();
                    kv.remove_application(&Scope::new(SCOPES[s].0, SCOPES[s].1).unwrap()).unwrap();
                }
                Step::RemoveTenant(s) => {
                    for other in (0..SCOPES.len()).filter(|&other| SCOPES[other].0 == SCOPES[s].0) {
                        model[other].clear();
                    }
                    kv.remove_tenant(SCOPES[s].0).unwrap();
                }
                Step::Reopen => {
                    drop((kv, stores_now));
                    kv = KeyValue::open(folder.path(), config.clone()).unwrap();
                    stores_now = stores(&kv);
                }
            }
            for (scope, store) in stores_now.iter().enumerate() {
                let expected = Usage { keys: model[scope].len() as u64, bytes: bytes(scope, &model[scope]) };
                prop_assert_eq!(store.usage().unwrap(), expected);
                prop_assert_eq!(kv.tenant_bytes(SCOPES[scope].0).unwrap(), tenant_bytes(&model, SCOPES[scope].0));
                prop_assert_eq!(store.get_keys().unwrap(), model[scope].keys().cloned().collect::<Vec<_>>());
                for (key, value) in &model[scope] {
                    prop_assert_eq!(&store.get(key).unwrap().unwrap(), value);
                }
            }
            prop_assert_eq!(kv.recount().unwrap().differences, []);
        }
    }
}
