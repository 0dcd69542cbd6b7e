//! Lists that grow in place, as Python's do.
//!
//! Lists of minijinja cannot change, and transformers' sandbox refuses to change
//! them as well, but there are templates that cannot show a tool call without
//! `ids.append(…)` and `ids.pop(0)`: those of Kimi K2. Where the source of a
//! template has such a call, [`crate::source`] passes every list that it writes
//! down through the filter [`FILTER`].
//!
//! What is put into such a list is copied as it is then, so that no list can come
//! to hold itself, which nothing that walks over values would survive. Copying
//! costs fuel.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};

use crate::depth;

/// The name of the filter, which no template uses.
pub(crate) const FILTER: &str = "__growing_list";

/// How deep a value that is put into a list may be nested.
const MAX_DEPTH: usize = 32;

/// A list that grows.
struct Growing(Mutex<Vec<Value>>);

/// The filter: makes a list one that grows.
pub(crate) fn growing(state: &State<'_, '_>, list: &Value) -> Result<Value, Error> {
    let items = depth::checked(state, list)?.try_iter()?.collect();
    Ok(Value::from_object(Growing(Mutex::new(items))))
}

impl Growing {
    fn items(&self) -> MutexGuard<'_, Vec<Value>> {
        // There is but one thread.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items().clone();
        f.debug_list().entries(items).finish()
    }
}

impl Object for Growing {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = key.as_usize()?;
        self.items().get(index).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let items = self.items().clone();
        Enumerator::Values(items)
    }

    fn call_method(self: &Arc<Self>, state: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        match method {
            "append" => {
                let (item,): (&Value,) = from_args(args)?;
                let item = copy(state, item, 0)?;
                self.items().push(item);
                Ok(Value::from(()))
            }
            "extend" => {
                let (more,): (&Value,) = from_args(args)?;
                let mut copies = Vec::new();
                for item in more.try_iter()? {
                    copies.push(copy(state, &item, 0)?);
                }
                self.items().extend(copies);
                Ok(Value::from(()))
            }
            "insert" => {
                let (index, item): (i64, &Value) = from_args(args)?;
                let item = copy(state, item, 0)?;
                let mut items = self.items();
                state.consume_fuel(items.len() as u64 / 16)?;
                let at = place(index, items.len()).min(items.len());
                items.insert(at, item);
                Ok(Value::from(()))
            }
            "pop" => {
                let (index,): (Option<i64>,) = from_args(args)?;
                let mut items = self.items();
                state.consume_fuel(items.len() as u64 / 16)?;
                let at = place(index.unwrap_or(-1), items.len());
                if at >= items.len() {
                    return Err(Error::new(
                        ErrorKind::InvalidOperation,
                        format!("pop from a list of {} at {}", items.len(), index.unwrap_or(-1)),
                    ));
                }
                Ok(items.remove(at))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// A place in a list, counted from its end where negative.
fn place(index: i64, length: usize) -> usize {
    match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => length.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// A value as it is now.
fn copy(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<Value, Error> {
    state.consume_fuel(1)?;
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a value nested deeper than {MAX_DEPTH} levels is put into a list"),
        ));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| copy(state, &item, depth + 1));
            Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                pairs.push((key.clone(), copy(state, &value.get_item(&key)?, depth + 1)?));
            }
            Ok(Value::from_pairs(pairs))
        }
        ValueKind::Plain => Err(Error::new(ErrorKind::InvalidOperation, "only data can be put into a list".to_owned())),
        _ => Ok(value.clone()),
    }
}
