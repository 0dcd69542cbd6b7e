//! What each operation does, on the store itself and through the runtime.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use nala_keyvalue::{Config, Error, GuestError, KeyValue, Limits, OpenError, Scope, Store, SwapError, Usage};

fn with(limits: Limits) -> (KeyValue, Store) {
    let kv = KeyValue::in_memory(Config { limits, ..Config::default() }).unwrap();
    let store = kv.store(&Scope::new("tenant", "app").unwrap(), "default").unwrap();
    (kv, store)
}

fn store() -> (KeyValue, Store) {
    with(Limits::default())
}

#[test]
fn what_is_set_is_read_until_it_is_deleted() {
    let (_kv, store) = store();
    assert_eq!(store.get("k").unwrap(), None);
    assert!(!store.exists("k").unwrap());
    store.set("k", b"one").unwrap();
    store.set("k", b"two").unwrap();
    store.set("", b"").unwrap();
    assert_eq!(store.get("k").unwrap().unwrap(), b"two");
    assert_eq!(store.get("").unwrap().unwrap(), b"");
    assert!(store.exists("").unwrap());
    store.delete("k").unwrap();
    store.delete("k").unwrap();
    assert_eq!(store.get("k").unwrap(), None);
    assert_eq!(store.get_keys().unwrap(), [""]);
}

#[test]
fn stores_applications_and_tenants_have_nothing_in_common() {
    let kv = KeyValue::in_memory(Config::default()).unwrap();
    let mut stores = Vec::new();
    for (tenant, application, name) in
        [("a", "b", "c"), ("a", "b", "d"), ("a", "bc", "c"), ("ab", "c", "c"), ("a", "b", "c/"), ("b", "a", "c")]
    {
        stores.push(kv.store(&Scope::new(tenant, application).unwrap(), name).unwrap());
    }
    for (number, store) in stores.iter().enumerate() {
        store.set("key", number.to_string().as_bytes()).unwrap();
    }
    for (number, store) in stores.iter().enumerate() {
        assert_eq!(store.get("key").unwrap().unwrap(), number.to_string().as_bytes());
        assert_eq!(store.get_keys().unwrap(), ["key"]);
    }
    kv.remove_application(&Scope::new("a", "b").unwrap()).unwrap();
    let left: Vec<bool> = stores.iter().map(|store| store.exists("key").unwrap()).collect();
    assert_eq!(left, [false, false, true, true, false, true]);
    kv.remove_tenant("a").unwrap();
    let left: Vec<bool> = stores.iter().map(|store| store.exists("key").unwrap()).collect();
    assert_eq!(left, [false, false, false, true, false, true]);
    assert_eq!(kv.tenant_bytes("a").unwrap(), 0);
    assert_eq!(kv.recount().unwrap().differences, []);
}

#[test]
fn all_of_much_is_removed() {
    let (kv, store) = store();
    for part in 0..3 {
        store.set_many((0..600).map(|n| (format!("{part}/{n}"), vec![0; 100])).collect()).unwrap();
    }
    let other = kv.store(&Scope::new("tenant", "other").unwrap(), "default").unwrap();
    other.set("k", b"v").unwrap();
    let before = kv.commits();
    kv.remove_application(&Scope::new("tenant", "app").unwrap()).unwrap();
    assert!(kv.commits() >= before + 4, "it was removed in one commit, which others would wait for");
    assert_eq!(store.usage().unwrap(), Usage::default());
    assert_eq!(kv.tenant_bytes("tenant").unwrap(), other.usage().unwrap().bytes);
    assert_eq!(kv.recount().unwrap().keys, 1);
}

#[test]
fn numbers_are_incremented() {
    let (_kv, store) = store();
    assert_eq!(store.increment("n", 5).unwrap(), 5);
    assert_eq!(store.increment("n", -7).unwrap(), -2);
    assert_eq!(store.get("n").unwrap().unwrap(), b"-2");
    store.set("n", i64::MAX.to_string().as_bytes()).unwrap();
    assert_eq!(store.increment("n", 1), Err(Error::Overflow { value: i64::MAX, delta: 1 }));
    assert_eq!(store.increment("n", i64::MIN).unwrap(), -1);
    for text in ["", "x", "1.5", " 1", "9223372036854775808"] {
        store.set("t", text.as_bytes()).unwrap();
        assert_eq!(store.increment("t", 1), Err(Error::NotANumber), "{text:?}");
        assert_eq!(store.get("t").unwrap().unwrap(), text.as_bytes());
    }
}

#[test]
fn increments_of_many_are_all_counted() {
    let (_kv, store) = store();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert!(store.increment("n", 1).unwrap() > 0)));
        }
    });
    assert_eq!(store.increment("n", 0).unwrap(), 400);
}

#[test]
fn a_swap_needs_what_was_seen() {
    let (_kv, store) = store();
    let first = store.cas("k").unwrap();
    let second = store.cas("k").unwrap();
    first.swap(b"one".to_vec()).unwrap();
    let Err(SwapError::Changed(mut again)) = second.swap(b"two".to_vec()) else { panic!("the key was there") };
    assert_eq!(store.get("k").unwrap().unwrap(), b"one");
    assert_eq!(again.current().unwrap().unwrap(), b"one");
    again.swap(b"two".to_vec()).unwrap();
    // Changed and changed back is changed.
    let stale = store.cas("k").unwrap();
    store.set("k", b"three").unwrap();
    store.set("k", b"two").unwrap();
    let Err(SwapError::Changed(updated)) = stale.swap(vec![]) else { panic!("the value was written") };
    updated.swap(b"four".to_vec()).unwrap();
    // Deleted is changed, too.
    let stale = store.cas("k").unwrap();
    store.delete("k").unwrap();
    let Err(SwapError::Changed(gone)) = stale.swap(vec![]) else { panic!("the key is gone") };
    gone.swap(b"new".to_vec()).unwrap();
    assert_eq!(store.get("k").unwrap().unwrap(), b"new");
    // One of many wins each round.
    store.set("n", b"0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let mut cas = store.cas("n").unwrap();
                    loop {
                        let value: u32 = String::from_utf8(cas.current().unwrap().unwrap()).unwrap().parse().unwrap();
                        match cas.swap((value + 1).to_string().into_bytes()) {
                            Ok(()) => break,
                            Err(SwapError::Changed(newer)) => cas = newer,
                            Err(SwapError::Store(error)) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(store.get("n").unwrap().unwrap(), b"100");
}

#[test]
fn batches_are_whole() {
    let (_kv, store) = with(Limits { tenant_bytes: 1000, value_bytes: 900, ..Limits::default() });
    let pair = |key: &str, value: Vec<u8>| (key.to_owned(), value);
    store.set_many(vec![pair("a", vec![1]), pair("b", vec![2]), pair("a", vec![3])]).unwrap();
    let many = store.get_many(&["b".to_owned(), "x".to_owned(), "a".to_owned()]).unwrap();
    assert_eq!(many, [Some(vec![2]), None, Some(vec![3])]);
    let refused = store.set_many(vec![pair("c", vec![0; 10]), pair("d", vec![0; 900])]);
    assert!(matches!(refused, Err(Error::QuotaExceeded { .. })), "{refused:?}");
    assert!(!store.exists("c").unwrap(), "half of a batch was written");
    store.delete_many(vec!["a".to_owned(), "x".to_owned(), "a".to_owned()]).unwrap();
    assert_eq!(store.get_keys().unwrap(), ["b"]);
    store.set_many(vec![]).unwrap();
    store.delete_many(vec![]).unwrap();
}

#[test]
fn keys_come_in_pages() {
    let (kv, store) = with(Limits { page_keys: 7, listing_bytes: 200, ..Limits::default() });
    let mut keys: Vec<String> = (0..40).map(|n| format!("key {n}")).collect();
    keys.push("ü".repeat(150));
    keys.push("\u{10FFFF}".to_owned());
    for key in &keys {
        store.set(key, b"").unwrap();
    }
    // A neighbour whose keys come right behind.
    kv.store(&Scope::new("tenant", "app").unwrap(), "defaulu").unwrap().set("key", b"").unwrap();
    assert_eq!(store.get_keys(), Err(Error::AnswerTooLarge { limit: 200 }));
    let (mut listed, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.list_keys(cursor.as_deref()).unwrap();
        assert!(page.keys.len() <= 7 && !page.keys.is_empty());
        listed.extend(page.keys);
        pages += 1;
        // What was listed may go.
        store.delete(listed.last().unwrap()).unwrap();
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    keys.sort();
    assert_eq!(listed, keys);
    assert!(pages >= 7, "{pages}");
    assert_eq!(store.list_keys(Some("\u{10FFFF}\u{10FFFF}")).unwrap().keys, Vec::<String>::new());
    assert!(matches!(store.list_keys(Some(&"x".repeat(2000))), Err(Error::KeyTooLong { .. })));
}

#[test]
fn each_limit_has_its_error() {
    let limits = Limits {
        key_bytes: 4,
        value_bytes: 100,
        tenant_bytes: 300,
        store_keys: 3,
        batch_keys: 2,
        batch_bytes: 150,
        ..Limits::default()
    };
    let (kv, store) = with(limits);
    assert_eq!(store.set("12345", b""), Err(Error::KeyTooLong { bytes: 5, limit: 4 }));
    assert_eq!(store.get("12345"), Err(Error::KeyTooLong { bytes: 5, limit: 4 }));
    assert_eq!(store.set("k", &[0; 101]), Err(Error::ValueTooLarge { bytes: 101, limit: 100 }));
    assert_eq!(store.delete_many(vec!["k".to_owned(); 3]), Err(Error::BatchTooLong { keys: 3, limit: 2 }));
    let large = vec![("a".to_owned(), vec![0; 80]), ("b".to_owned(), vec![0; 80])];
    assert_eq!(store.set_many(large), Err(Error::BatchTooLarge { bytes: 162, limit: 150 }));
    // Names, their lengths and the version count: 6 + 3 + 7 + 3 + 8.
    store.set("a", &[0; 100]).unwrap();
    assert_eq!(kv.tenant_bytes("tenant").unwrap(), 100 + 1 + 27);
    store.set("b", &[0; 100]).unwrap();
    let used = 2 * 128;
    assert_eq!(store.set("c", &[0; 100]), Err(Error::QuotaExceeded { used, limit: 300, wanted: 128 }));
    assert_eq!(store.get_many(&["a".to_owned(), "b".to_owned()]), Err(Error::AnswerTooLarge { limit: 150 }));
    // A smaller value in the place of another is fine.
    store.set("b", &[0; 40]).unwrap();
    store.set("c", b"").unwrap();
    assert_eq!(store.set("d", b""), Err(Error::StoreFull { keys: 3, limit: 3 }));
    store.set("c", b"x").unwrap();
    // Another tenant has room of its own.
    let other = kv.store(&Scope::new("other", "app").unwrap(), "default").unwrap();
    other.set("a", &[0; 100]).unwrap();
    assert!(matches!(store.set("c", &[0; 100]), Err(Error::QuotaExceeded { .. })));
    assert_eq!(kv.recount().unwrap().differences, []);
}

#[test]
fn names_and_settings_are_checked() {
    let (kv, _) = store();
    let scope = Scope::new("t", "a").unwrap();
    let refused = kv.store(&scope, "").unwrap_err();
    assert_eq!(refused.for_guest(), GuestError::NoSuchStore);
    assert!(matches!(kv.store(&scope, &"x".repeat(256)), Err(Error::NoSuchStore(_))));
    assert!(kv.remove_tenant("").is_err());
    let limits = Limits { key_bytes: 1025, ..Limits::default() };
    let Err(OpenError::Config(why)) = KeyValue::in_memory(Config { limits, ..Config::default() }) else {
        panic!("a limit beyond the largest was taken")
    };
    assert!(why.contains("key_bytes") && why.contains("1024"), "{why}");
    assert!(KeyValue::in_memory(Config { tenant_reads: 0, ..Config::default() }).is_err());
}

#[test]
fn guests_are_told_nothing_of_the_host() {
    let secret = "/var/lib/nala/keyvalue.redb";
    for error in [Error::Io(secret.into()), Error::Corrupt(secret.into())] {
        let GuestError::Other(text) = error.for_guest() else { panic!("{error:?}") };
        assert!(!text.contains("/var") && !text.is_empty(), "{text}");
    }
    let GuestError::Other(text) = (Error::KeyTooLong { bytes: 5, limit: 4 }).for_guest() else { panic!() };
    assert!(text.contains('5') && text.contains('4'), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_has_the_same_operations() {
    let (_kv, blocking) = store();
    let store = blocking.to_async();
    store.set("k".into(), b"v".to_vec()).await.unwrap();
    assert_eq!(store.get("k".into()).await.unwrap().unwrap(), b"v");
    assert!(store.exists("k".into()).await.unwrap());
    assert_eq!(store.increment("n".into(), 3).await.unwrap(), 3);
    let stale = store.cas("k".into()).await.unwrap();
    store.set_many(vec![("k".into(), b"w".to_vec()), ("l".into(), vec![])]).await.unwrap();
    let Err(SwapError::Changed(mut cas)) = store.swap(stale, vec![]).await else { panic!("it was written") };
    assert_eq!(store.current(&mut cas).await.unwrap().unwrap(), b"w");
    store.swap(cas, b"x".to_vec()).await.unwrap();
    assert_eq!(store.get_many(vec!["k".into()]).await.unwrap(), [Some(b"x".to_vec())]);
    assert_eq!(store.list_keys(Some("k".into())).await.unwrap().keys, ["l", "n"]);
    store.delete("k".into()).await.unwrap();
    store.delete_many(vec!["l".into()]).await.unwrap();
    assert_eq!(store.get_keys().await.unwrap(), ["n"]);
    assert_eq!(store.usage().await.unwrap().keys, 1);
    assert_eq!(store.blocking().get("n").unwrap().unwrap(), b"3");
    let many = (0..500).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.get("n".into()).await })
    });
    for read in many.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap().unwrap().unwrap(), b"3");
    }
}
