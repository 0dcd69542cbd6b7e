//! Instances that outlive a call, for tools whose manifest says so: calls with the same key
//! are made in the same instance, one after the other, and find what the ones before have
//! left.
//!
//! The key is an argument that every tool of the component takes then. It belongs to the
//! tenant whose request makes the call: the same key of another tenant is another instance.
//! An instance ends when it was not called for some time, when a call in it traps or runs into
//! a limit, or when its tenant needs the place for another one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use nala_tenant::TenantName;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex as AsyncMutex;
use wasmtime::Store;

use super::bindings::nala::tools::types::{Error, Tool};
use super::exports::Instance;
use crate::account::Place;
use crate::metrics::Alive;
use crate::store::StoreData;

/// How instances of a tool are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The argument whose value is the key.
    pub argument: String,
    /// How long one is kept that is not called.
    pub idle: Duration,
    /// How many each tenant has.
    pub most: u32,
}

/// The longest key, in bytes.
const LONGEST_KEY: usize = 256;

/// An instance between two calls.
pub(super) struct Resident {
    pub(super) store: Store<StoreData>,
    pub(super) instance: Instance,
    pub(super) place: Place,
    pub(super) alive: Alive,
}

/// The place of an instance. Held locked by the call that uses it.
#[derive(Clone)]
pub(super) struct Slot {
    resident: Arc<AsyncMutex<Option<Resident>>>,
    since: Arc<Mutex<Instant>>,
}

impl Slot {
    fn new() -> Self {
        Self { resident: Arc::default(), since: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Waits for the calls before, and takes the instance, if there is one.
    pub(super) async fn take(&self) -> tokio::sync::OwnedMutexGuard<Option<Resident>> {
        Arc::clone(&self.resident).lock_owned().await
    }

    fn touch(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn unused_for(&self) -> Duration {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Whether no call uses it or waits for it.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.resident) == 1
    }
}

/// The instances of a tool.
pub(super) struct Kept {
    keyed: Keyed,
    slots: Mutex<HashMap<(TenantName, String), Slot>>,
    is_swept: AtomicBool,
}

impl Kept {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self { keyed, slots: Mutex::default(), is_swept: AtomicBool::new(false) }
    }

    /// Adds the argument to those of the tools, where they do not have it themselves.
    ///
    /// # Errors
    /// A tool has it as something that is no text.
    pub(super) fn describe(&self, tools: &mut [Tool]) -> Result<(), String> {
        for tool in tools {
            let mut schema: Map<String, Value> =
                serde_json::from_str(&tool.input_schema).map_err(|error| error.to_string())?;
            let fields = schema.entry("properties").or_insert_with(|| json!({}));
            let Some(fields) = fields.as_object_mut() else { return Err("its `properties` are no object".to_owned()) };
            match fields.get(&self.keyed.argument) {
                None => {
                    let text = "Calls with the same text here find what the ones before have left; leave it out to \
                                begin anew and keep nothing.";
                    fields.insert(self.keyed.argument.clone(), json!({ "type": "string", "description": text }));
                    tool.input_schema = Value::Object(schema).to_string();
                }
                Some(field) if field.get("type").and_then(Value::as_str) == Some("string") => {}
                Some(_) => {
                    let argument = &self.keyed.argument;
                    return Err(format!("the tool `{}` takes a `{argument}` that is no text", tool.name));
                }
            }
        }
        Ok(())
    }

    /// The key of a call, and the arguments without it where the tool knows nothing of it.
    /// None: the call has no key, and an instance of its own.
    pub(super) fn key(&self, own_schema: &str, arguments: &str) -> Result<Option<(String, String)>, Error> {
        let wrong = |why: String| Err(Error::InvalidArguments(why));
        let Ok(mut all) = serde_json::from_str::<Map<String, Value>>(arguments) else { return Ok(None) };
        let argument = &self.keyed.argument;
        let key = match all.get(argument) {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) if !key.is_empty() && key.len() <= LONGEST_KEY => Some(key.clone()),
            Some(_) => return wrong(format!("`{argument}` is a text of 1 to {LONGEST_KEY} bytes")),
        };
        let Some(key) = key else { return Ok(None) };
        let schema: Value = serde_json::from_str(own_schema).unwrap_or_default();
        if schema.get("properties").and_then(|fields| fields.get(argument)).is_some() {
            return Ok(Some((key, arguments.to_owned())));
        }
        all.remove(argument);
        Ok(Some((key, Value::Object(all).to_string())))
    }

    /// The place of a key. Where a tenant has all its places in use, the one that was not
    /// called for the longest time is given up.
    pub(super) fn slot(self: &Arc<Self>, tenant: &TenantName, key: String) -> Result<Slot, Error> {
        let given_up;
        let mut slots = self.lock();
        let slot = match slots.get(&(tenant.clone(), key.clone())) {
            Some(slot) => return Ok(slot.clone()),
            None => {
                let own = slots.iter().filter(|((of, _), _)| of == tenant);
                given_up = if own.clone().count() >= self.keyed.most as usize {
                    let free = own.filter(|(_, slot)| slot.is_free()).max_by_key(|(_, slot)| slot.unused_for());
                    let Some(oldest) = free.map(|(at, _)| at.clone()) else {
                        let (most, argument) = (self.keyed.most, &self.keyed.argument);
                        return Err(Error::Busy(format!(
                            "{most} instances are at a call, each of another `{argument}`"
                        )));
                    };
                    slots.remove(&oldest)
                } else {
                    None
                };
                let slot = Slot::new();
                slots.insert((tenant.clone(), key), slot.clone());
                slot
            }
        };
        drop(slots);
        // An instance takes a while to be dropped.
        drop(given_up);
        Ok(slot)
    }

    /// Notes that a call is over, from a thread of a Tokio runtime that lives on.
    pub(super) fn used(self: &Arc<Self>, slot: &Slot, here: &tokio::runtime::Handle) {
        slot.touch();
        if !self.is_swept.swap(true, Ordering::AcqRel) {
            here.spawn(sweep(Arc::downgrade(self), self.keyed.idle));
        }
    }

    fn sweep(&self) -> bool {
        let mut over = Vec::new();
        let mut slots = self.lock();
        slots.retain(|_, slot| {
            let is_over = slot.is_free() && slot.unused_for() >= self.keyed.idle;
            if is_over {
                over.push(slot.clone());
            }
            !is_over
        });
        let is_empty = slots.is_empty();
        if is_empty {
            self.is_swept.store(false, Ordering::Release);
        }
        drop(slots);
        drop(over);
        is_empty
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(TenantName, String), Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends instances that nobody calls, until there are none.
async fn sweep(kept: Weak<Kept>, idle: Duration) {
    let pause = (idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
    loop {
        tokio::time::sleep(pause).await;
        let Some(kept) = kept.upgrade() else { return };
        if kept.sweep() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: u32) -> Arc<Kept> {
        Arc::new(Kept::new(Keyed { argument: "session".into(), idle: Duration::from_secs(60), most }))
    }

    fn tenant(name: &str) -> TenantName {
        name.parse().unwrap()
    }

    #[test]
    fn the_key_is_taken_out_of_the_arguments_where_the_tool_does_not_know_it() {
        let kept = kept(1);
        let own = r#"{"type": "object", "properties": {"session": {"type": "string"}}}"#;
        let (key, arguments) = kept.key(own, r#"{"session": "a", "b": 1}"#).unwrap().unwrap();
        assert_eq!((key.as_str(), arguments.as_str()), ("a", r#"{"session": "a", "b": 1}"#));
        let (_, arguments) = kept.key(r#"{"type": "object"}"#, r#"{"session": "a", "b": 1}"#).unwrap().unwrap();
        assert_eq!(arguments, r#"{"b":1}"#);
        for without in ["{}", r#"{"session": null}"#] {
            assert!(kept.key(own, without).unwrap().is_none());
        }
        let long = format!(r#"{{"session": "{}"}}"#, "k".repeat(257));
        for wrong in [r#"{"session": 1}"#, r#"{"session": ""}"#, &long] {
            assert!(matches!(kept.key(own, wrong), Err(Error::InvalidArguments(_))), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_tenant_has_so_many_and_no_more_and_none_of_anothers() {
        let kept = kept(2);
        let (one, two) = (tenant("one"), tenant("two"));
        let a = kept.slot(&one, "a".into()).unwrap();
        let b = kept.slot(&one, "b".into()).unwrap();
        assert!(!Arc::ptr_eq(&a.resident, &kept.slot(&two, "a".into()).unwrap().resident), "another tenant's");
        assert!(Arc::ptr_eq(&a.resident, &kept.slot(&one, "a".into()).unwrap().resident));
        assert!(matches!(kept.slot(&one, "c".into()), Err(Error::Busy(_))), "both are in use");
        drop(b);
        let c = kept.slot(&one, "c".into()).unwrap();
        drop((a, c));
        let slots = kept.lock();
        assert!(slots.contains_key(&(one.clone(), "a".into())) && slots.contains_key(&(one.clone(), "c".into())));
        assert!(!slots.contains_key(&(one, "b".into())));
    }
}
