//! Key-value data by both interfaces of WASI 0.2.

use crate::bindings::fermyon::spin2_0_0::key_value::Store;
use crate::bindings::wasi::keyvalue::atomics::{Cas, CasError, increment, swap as swap_with};
use crate::bindings::wasi::keyvalue::{batch, store};

/// Each operation once.
pub(crate) fn spin(label: &str) -> String {
    let store = match Store::open(label) {
        Ok(store) => store,
        Err(error) => return format!("{error:?}"),
    };
    let set = store.set("a", b"one");
    let found = store.get("a").map(|value| value.map(text));
    let exists = (store.exists("a"), store.exists("b"));
    let keys = store.get_keys();
    let deleted = store.delete("a");
    let after = store.get("a");
    format!("{set:?} {found:?} {exists:?} {keys:?} {deleted:?} {after:?}")
}

/// Each operation once.
pub(crate) fn wasi(label: &str) -> String {
    let bucket = match store::open(label) {
        Ok(bucket) => bucket,
        Err(error) => return format!("{error:?}"),
    };
    let set = bucket.set("a", b"one");
    let found = bucket.get("a").map(|value| value.map(text));
    let sums = (increment(&bucket, "n", 2), increment(&bucket, "n", -3), increment(&bucket, "a", 1).is_err());
    let many = batch::set_many(&bucket, &[("b".to_owned(), b"two".to_vec())]);
    let got = batch::get_many(&bucket, &["b".to_owned(), "none".to_owned()]);
    let keys = bucket.list_keys(None).map(|page| (page.keys, page.cursor));
    let deleted = batch::delete_many(&bucket, &["a".to_owned(), "b".to_owned()]);
    let exists = (bucket.exists("a"), bucket.delete("n"));
    format!("{set:?} {found:?} {sums:?} {many:?} {got:?} {keys:?} {deleted:?} {exists:?}")
}

/// Swaps that fail and succeed.
pub(crate) fn swap(label: &str) -> String {
    let bucket = store::open(label).unwrap();
    bucket.set("s", b"old").unwrap();
    let cas = Cas::new(&bucket, "s").unwrap();
    let seen = cas.current().unwrap().map(text);
    bucket.set("s", b"between").unwrap();
    let Err(CasError::CasFailed(again)) = swap_with(cas, b"new") else { return "swapped over a change".to_owned() };
    let between = again.current().unwrap().map(text);
    let swapped = swap_with(again, b"new");
    format!("{seen:?} {between:?} {} {:?}", swapped.is_ok(), bucket.get("s").unwrap().map(text))
}

/// Opens a store until that is refused.
pub(crate) fn handles(label: &str) -> String {
    let mut all = Vec::new();
    loop {
        match Store::open(label) {
            Ok(store) => all.push(store),
            Err(error) => return format!("{} then {error:?}", all.len()),
        }
    }
}

/// Writes, then reads, a KiB at a time, until that is refused.
pub(crate) fn bytes(label: &str) -> String {
    let store = Store::open(label).unwrap();
    let mut done = 0;
    loop {
        let result = if done < 4 { store.set("k", &[0; 1023]) } else { store.get("k").map(drop) };
        match result {
            Ok(()) => done += 1,
            Err(error) => return format!("{done} then {error:?}"),
        }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
