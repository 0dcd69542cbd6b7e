//! A process that is killed while it writes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nala_keyvalue::{Config, KeyValue, Scope, Store};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Tells the child where to write.
const FOLDER: &str = "NALA_TEST_KEYVALUE_FOLDER";
const WRITERS: usize = 4;
const KILLS: u32 = 60;

fn open(folder: &Path) -> (KeyValue, Vec<Store>) {
    let kv = KeyValue::open(folder, Config::default()).unwrap();
    let store = |n| kv.store(&Scope::new(&format!("tenant {}", n % 2), "app").unwrap(), &format!("s{n}")).unwrap();
    let stores = (0..WRITERS).map(store).collect();
    (kv, stores)
}

fn read_number(store: &Store, key: &str) -> u64 {
    store.get(key).unwrap().map_or(0, |value| String::from_utf8(value).unwrap().parse().unwrap())
}

/// The child: writes until it is killed, and says what was acknowledged.
#[test]
fn write_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (_kv, stores) = open(Path::new(&folder));
    std::thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let mut number = read_number(store, "a");
                loop {
                    number += 1;
                    let filler = vec![1; (number * 37 % 3000) as usize];
                    let text = number.to_string().into_bytes();
                    let batch = [("a", text.clone()), (&format!("x{}", number % 50), filler), ("b", text)];
                    store.set_many(batch.map(|(key, value)| (key.to_owned(), value)).to_vec()).unwrap();
                    store.increment("n", 1).unwrap();
                    store.delete(&format!("x{}", number * 7 % 50)).unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "wrote {writer} {number}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let begun = Instant::now();
    let mut acknowledged: BTreeMap<usize, u64> = BTreeMap::new();
    // Batches and increments of each writer after the last kill.
    let mut before = [(0, 0); WRITERS];
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "write_until_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut take = |line: std::io::Result<String>| {
            let line = line.unwrap();
            // The harness prints lines of its own.
            let Some((_, wrote)) = line.split_once("wrote ") else { return };
            let (writer, number) = wrote.split_once(' ').unwrap();
            acknowledged.insert(writer.parse().unwrap(), number.parse().unwrap());
        };
        // It is at work when it has written something.
        for line in lines.by_ref() {
            let wrote = line.as_ref().is_ok_and(|line| line.contains("wrote "));
            take(line);
            if wrote {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(u64::from(random.next_u32() % 40_000)));
        child.kill().unwrap();
        lines.for_each(&mut take);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), None, "{}", String::from_utf8_lossy(&ended.stderr));

        let (kv, stores) = open(folder.path());
        for (writer, store) in stores.iter().enumerate() {
            let (a, b, n) = (read_number(store, "a"), read_number(store, "b"), read_number(store, "n"));
            let (batches, increments) = before[writer];
            let number = acknowledged.get(&writer).copied().unwrap_or(0).max(batches);
            assert_eq!(a, b, "kill {kill}: half of a batch was written");
            assert!(a == number || a == number + 1, "kill {kill}: {number} was acknowledged, {a} is there");
            // The last batch may have been killed before its increment.
            let (more, added) = (a - batches, n - increments);
            assert!(added == more || added + 1 == more, "kill {kill}: {added} increments beside {more} batches");
            assert!(added >= number - batches, "kill {kill}: {added} increments of {} acknowledged", number - batches);
            before[writer] = (a, n);
        }
        let recount = kv.recount().unwrap();
        assert_eq!(recount.differences, [], "kill {kill}");
        assert!(recount.keys > 0);
    }
    println!("{KILLS} kills in {:?}; acknowledged by writer: {acknowledged:?}", begun.elapsed());
    assert_eq!(acknowledged.len(), WRITERS);
}
