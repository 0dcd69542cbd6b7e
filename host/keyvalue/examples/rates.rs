//! Prints operations a second, beside commits of redb alone in the same run:
//! `cargo run --release -p nala-keyvalue --example rates -- [SECONDS] [ROUNDS] [FOLDER]`.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nala_keyvalue::{Config, KeyValue, Scope, Store};
use redb::TableDefinition;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("raw");
/// Keys that are written and read.
const KEYS: u64 = 10_000;
const VALUE: [u8; 100] = [7; 100];

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().map_or(Ok(2.0), |text| text.parse())?;
    let rounds: u32 = args.next().map_or(Ok(2), |text| text.parse())?;
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    let time = Duration::from_secs_f64(seconds);
    let kv = KeyValue::open(folder.path(), Config::default())?;
    let store = kv.store(&Scope::new("tenant", "app")?, "default")?;
    let raw = raw_database(folder.path())?;
    fill(&store, &raw)?;
    println!("values of {} bytes, {KEYS} keys, {seconds} s each", VALUE.len());
    for _ in 0..rounds {
        for threads in [1, 8, 64] {
            let commits = kv.commits();
            let sets = rate(threads, time, |n| Ok(store.set(&key(n), &VALUE)?))?;
            let group = sets.total as f64 / (kv.commits() - commits).max(1) as f64;
            let alone = rate(threads, time, |n| raw_set(&raw, n))?;
            println!(
                "sets, {threads:2} writers: {:9.0}/s ({group:.1} a commit); redb with a commit each: {:9.0}/s",
                sets.a_second, alone.a_second
            );
        }
        for threads in [1, 2, 8] {
            let gets = rate(threads, time, |n| store.get(&key(n)).map(drop).map_err(Into::into))?;
            let alone = rate(threads, time, |n| raw_get(&raw, n))?;
            println!(
                "gets, {threads:2} readers: {:9.0}/s; redb with a transaction each: {:9.0}/s",
                gets.a_second, alone.a_second
            );
        }
    }
    Ok(())
}

fn key(n: u64) -> String {
    format!("key {:05}", n.wrapping_mul(2_654_435_761) % KEYS)
}

fn raw_database(folder: &Path) -> Outcome<redb::Database> {
    Ok(redb::Database::builder().set_cache_size(Config::default().cache_bytes).create(folder.join("raw.redb"))?)
}

fn fill(store: &Store, raw: &redb::Database) -> Outcome<()> {
    let transaction = raw.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for n in 0..KEYS {
            table.insert(format!("key {n:05}").as_bytes(), VALUE.as_slice())?;
        }
    }
    transaction.commit()?;
    let keys: Vec<u64> = (0..KEYS).collect();
    for part in keys.chunks(1000) {
        store.set_many(part.iter().map(|n| (format!("key {n:05}"), VALUE.to_vec())).collect())?;
    }
    Ok(())
}

fn raw_set(raw: &redb::Database, n: u64) -> Outcome<()> {
    let transaction = raw.begin_write()?;
    transaction.open_table(TABLE)?.insert(key(n).as_bytes(), VALUE.as_slice())?;
    Ok(transaction.commit()?)
}

fn raw_get(raw: &redb::Database, n: u64) -> Outcome<()> {
    use redb::ReadableDatabase;
    let table = raw.begin_read()?.open_table(TABLE)?;
    drop(table.get(key(n).as_bytes())?.map(|value| value.value().to_vec()));
    Ok(())
}

struct Rate {
    total: u64,
    a_second: f64,
}

/// Calls `work` on so many threads for so long.
fn rate(threads: u64, time: Duration, work: impl Fn(u64) -> Outcome<()> + Sync) -> Outcome<Rate> {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let mut n = thread << 32;
            while !stop.load(Ordering::Acquire) {
                work(n)?;
                n += 1;
                total.fetch_add(1, Ordering::AcqRel);
            }
            Outcome::Ok(())
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Release);
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    let total = total.into_inner();
    Ok(Rate { total, a_second: total as f64 / begun.elapsed().as_secs_f64() })
}
