//! The tools on a store in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nala_sdk::tools::Content;
use serde_json::{Value, json};

use super::*;
use crate::memory::OURS;
use crate::store::Store;

/// Gives its keys in pages of two, from the last to the first.
#[derive(Default)]
struct Map {
    entries: RefCell<BTreeMap<String, Vec<u8>>>,
    full: bool,
    endless: bool,
}

impl Store for &Map {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, store::Error> {
        Ok(self.entries.borrow().get(key).cloned())
    }

    fn exists(&self, key: &str) -> Result<bool, store::Error> {
        Ok(self.entries.borrow().contains_key(key))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), store::Error> {
        if self.full {
            return Err(store::Error::Other("the store has 2 keys of 2: delete some".to_owned()));
        }
        self.entries.borrow_mut().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), store::Error> {
        self.entries.borrow_mut().remove(key);
        Ok(())
    }

    fn keys(&self, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), store::Error> {
        if self.endless {
            return Ok((Vec::new(), Some("on".to_owned())));
        }
        let skip = cursor.map_or(0, |cursor| cursor.parse::<usize>().unwrap());
        let entries = self.entries.borrow();
        let page = entries.keys().rev().skip(skip).take(2).cloned().collect();
        Ok((page, (entries.len() > skip + 2).then(|| (skip + 2).to_string())))
    }
}

fn ask(map: &Map, name: &str, arguments: &Value) -> Answer {
    answer(name, &arguments.to_string(), || Ok(map)).unwrap()
}

fn given(map: &Map, name: &str, arguments: &Value) -> Value {
    let answer = ask(map, name, arguments);
    assert!(!answer.is_error, "{answer:?}");
    serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
}

fn why(answer: &Answer) -> &str {
    assert!(answer.is_error && answer.structured.is_none(), "{answer:?}");
    match answer.content.as_slice() {
        [Content::Text(text)] => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_remembered_is_recalled_until_it_is_forgotten() {
    let map = Map::default();
    let key = json!({"key": "user/name"});
    let none = json!({"key": "user/name", "found": false, "value": null});
    assert_eq!(given(&map, "recall", &key), none);
    let remembered = given(&map, "remember", &json!({"key": "user/name", "value": "Zoë"}));
    assert_eq!(remembered, json!({"key": "user/name", "bytes": 4, "replaced": false}));
    assert_eq!(given(&map, "recall", &key), json!({"key": "user/name", "found": true, "value": "Zoë"}));
    let replaced = given(&map, "remember", &json!({"key": "user/name", "value": ""}));
    assert_eq!(replaced["replaced"], true);
    assert_eq!(given(&map, "recall", &key), json!({"key": "user/name", "found": true, "value": ""}));
    assert_eq!(given(&map, "forget", &key), json!({"key": "user/name", "found": true}));
    assert_eq!(given(&map, "forget", &key), json!({"key": "user/name", "found": false}));
    assert_eq!(given(&map, "recall", &key), none);
}

#[test]
fn keys_are_listed_by_what_they_begin_with() {
    let map = Map::default();
    for key in ["b/2", "a", "b/1", "b", "é\0\n", "memory:x"] {
        given(&map, "remember", &json!({"key": key, "value": key}));
    }
    let listed = |arguments: Value| given(&map, "list_memories", &arguments);
    assert_eq!(listed(json!({})), json!({"keys": ["a", "b", "b/1", "b/2", "memory:x", "é\0\n"], "truncated": false}));
    assert_eq!(listed(json!({"prefix": "b/"})), json!({"keys": ["b/1", "b/2"], "truncated": false}));
    assert_eq!(listed(json!({"prefix": "c"})), json!({"keys": [], "truncated": false}));
    assert_eq!(given(&map, "recall", &json!({"key": "é\0\n"}))["value"], "é\0\n");
}

#[test]
fn what_others_keep_is_not_seen_and_not_changed() {
    let map = Map::default();
    for key in ["secret", "memory", "memor", ""] {
        (&map).set(key, b"theirs").unwrap();
    }
    for key in ["secret", "memory", "../secret"] {
        assert_eq!(given(&map, "recall", &json!({"key": key}))["found"], false);
        given(&map, "forget", &json!({"key": key}));
        given(&map, "remember", &json!({"key": key, "value": "ours"}));
    }
    assert_eq!(given(&map, "list_memories", &json!({"prefix": "s"}))["keys"], json!(["secret"]));
    assert_eq!((&map).get("secret").unwrap().unwrap(), b"theirs");
    (&map).set(&format!("{OURS}bytes"), &[0xff]).unwrap();
    (&map).set(&format!("{OURS}long"), &[b'x'; 65_537]).unwrap();
    assert!(why(&ask(&map, "recall", &json!({"key": "bytes"}))).contains("no text"));
    assert!(why(&ask(&map, "recall", &json!({"key": "long"}))).contains("too long"));
}

#[test]
fn what_is_too_long_or_left_out_is_refused() {
    let map = Map::default();
    let text = |char: &str, n: usize| char.repeat(n);
    let table = [
        ("remember", json!({"key": "", "value": "x"}), "the key is empty"),
        ("remember", json!({"key": text("x", 257), "value": "x"}), "257 bytes and may have 256"),
        ("recall", json!({"key": text("é", 129)}), "258 bytes"),
        ("forget", json!({"key": text("é", 1_000_000)}), "2000000 bytes"),
        ("remember", json!({"key": "k", "value": text("é", 32_769)}), "65538 bytes and may have 65536"),
        ("remember", json!({"key": "k"}), "as `value`"),
        ("recall", json!({}), "name a `key`"),
    ];
    for (name, arguments, what) in table {
        let answer = ask(&map, name, &arguments);
        assert!(why(&answer).contains(what), "{what}: {answer:?}");
    }
    assert!(map.entries.borrow().is_empty());
    given(&map, "remember", &json!({"key": text("x", 256), "value": text("é", 32_768)}));
    for (name, arguments) in [("recall", "[]"), ("recall", "{"), ("remember", r#"{"key": 1}"#)] {
        let refused = answer(name, arguments, || Ok(&map));
        assert!(matches!(refused, Err(Error::InvalidArguments(_))), "{arguments}");
    }
    assert!(matches!(answer("recite", "{}", || Ok(&map)), Err(Error::UnknownTool(_))));
}

#[test]
fn a_store_that_fails_is_told() {
    let grant = "`key_value_stores = [\"default\"]`";
    for (error, what) in [
        (store::Error::NoSuchStore, "there is no store `default`"),
        (store::Error::Denied, "may not use the store `default`"),
    ] {
        let answer = answer::<&Map>("recall", r#"{"key": "k"}"#, || Err(error)).unwrap();
        assert!(why(&answer).contains(what) && why(&answer).contains(grant), "{answer:?}");
    }
    let map = Map { full: true, ..Map::default() };
    let answer = ask(&map, "remember", &json!({"key": "k", "value": "v"}));
    assert!(why(&answer).contains("the store has 2 keys of 2: delete some"), "{answer:?}");
    assert!(why(&call("recall", r#"{"key": "k"}"#).unwrap()).contains(grant));
}

#[test]
fn listings_have_an_end() {
    let many = |n: usize, bytes: usize| {
        let map = Map::default();
        for key in 0..n {
            (&map).set(&format!("{OURS}{key:0bytes$}"), b"").unwrap();
        }
        let listed = given(&map, "list_memories", &json!({}));
        (listed["keys"].as_array().unwrap().len(), listed["truncated"].as_bool().unwrap())
    };
    assert_eq!(many(1000, 4), (1000, false));
    assert_eq!(many(1001, 4), (1000, true));
    assert_eq!(many(600, 256), (512, true));
    let map = Map { endless: true, ..Map::default() };
    assert_eq!(given(&map, "list_memories", &json!({})), json!({"keys": [], "truncated": true}));
}

#[test]
fn the_tools_are_described() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let tools = tools();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), describe::NAMES);
    for tool in &tools {
        assert_eq!(read(&tool.input_schema)["type"], "object");
        let output = read(tool.output_schema.as_deref().unwrap());
        let required = output["required"].as_array().unwrap();
        assert_eq!(required.len(), output["properties"].as_object().unwrap().len());
        let map = Map::default();
        let answer = given(&map, &tool.name, &json!({"key": "k", "value": "v"}));
        assert!(required.iter().all(|name| answer.get(name.as_str().unwrap()).is_some()), "{answer}");
    }
    let manner: Vec<_> = tools.iter().map(|tool| &tool.annotations).collect();
    let of = |n: usize| (manner[n].read_only, manner[n].destructive, manner[n].idempotent, manner[n].open_world);
    let changes = (Some(false), Some(true), Some(true), Some(false));
    let reads = (Some(true), None, None, Some(false));
    assert_eq!([of(0), of(1), of(2), of(3)], [changes, reads, changes, reads]);
}
