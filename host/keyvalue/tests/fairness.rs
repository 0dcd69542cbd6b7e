//! One tenant's flood beside another's few writes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "figures are read with --nocapture")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nala_keyvalue::{AsyncStore, Config, Error, KeyValue, Limits, Queue, Scope};

const WAITING: usize = 400;
/// Commits a quiet write may see: the one that is being made when it comes, its own
/// and, where the flood's credit was spent first, one more. The flood has more than
/// ten of them waiting.
const COMMITS: u64 = 3;

fn config() -> Config {
    let queue = Queue { tenant_writes: WAITING, group_writes: 32, ..Queue::default() };
    Config { queue, ..Config::default() }
}

fn store(kv: &KeyValue, tenant: &str) -> AsyncStore {
    kv.store(&Scope::new(tenant, "app").unwrap(), "default").unwrap().to_async()
}

/// Writes one after the other: how long each took, and how many commits nine of ten saw
/// at the most. A task that is woken late on a busy machine sees more than it waited for.
async fn quiet_writes(kv: &KeyValue, store: &AsyncStore, count: usize) -> (Vec<Duration>, u64) {
    let mut times = Vec::new();
    let mut seen = Vec::new();
    for n in 0..count {
        let (begun, commits) = (Instant::now(), kv.commits());
        store.set(format!("k{n}"), vec![0; 100]).await.unwrap();
        seen.push(kv.commits() - commits);
        times.push(begun.elapsed());
    }
    times.sort();
    seen.sort_unstable();
    (times, seen[(count - 1) * 9 / 10])
}

fn show(what: &str, times: &[Duration]) {
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: median {:?}, 99 % {:?}, most {:?}", at(50), at(99), at(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_tenant_does_not_delay_another() {
    let folder = tempfile::tempdir().unwrap();
    let kv = KeyValue::open(folder.path(), config()).unwrap();
    let quiet = store(&kv, "quiet");
    let (alone, _) = quiet_writes(&kv, &quiet, 100).await;
    show("the quiet tenant alone", &alone);

    let flood = store(&kv, "flood");
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for task in 0..WAITING {
        let (flood, stop, written) = (flood.clone(), Arc::clone(&stop), Arc::clone(&written));
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Acquire) {
                let begun = Instant::now();
                flood.set(format!("k{task}"), vec![0; 100]).await.unwrap();
                times.push(begun.elapsed());
                written.fetch_add(1, Ordering::AcqRel);
            }
            times
        }));
    }
    while written.load(Ordering::Acquire) < WAITING as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (beside, most) = quiet_writes(&kv, &quiet, 100).await;
    stop.store(true, Ordering::Release);
    let mut flooded = Vec::new();
    for task in tasks {
        flooded.extend(task.await.unwrap());
    }
    flooded.sort();
    show("the quiet tenant beside a flood", &beside);
    show("the flood", &flooded);
    println!("nine of ten quiet writes saw {most} commits at most; the flood wrote {} times", flooded.len());
    assert!(most <= COMMITS, "writes of the quiet tenant waited for {most} commits");
    assert_eq!(kv.recount().unwrap().differences, []);
}

#[tokio::test]
async fn what_is_too_much_is_busy_and_the_rest_is_written() {
    let queue = Queue { tenant_writes: 3, ..Queue::default() };
    let kv = KeyValue::in_memory(Config { queue, ..Config::default() }).unwrap();
    let store = store(&kv, "t");
    let writes = (0..2000).map(|n| {
        let store = store.clone();
        async move { store.increment("n".to_owned(), 1).await.map(|_| n) }
    });
    let (mut written, mut busy) = (0, 0);
    // All are begun before any is waited for.
    let tasks: Vec<_> = writes.map(tokio::spawn).collect();
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => written += 1,
            Err(Error::Busy { waiting }) => {
                assert_eq!(waiting, 3);
                busy += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(busy > 0, "2000 writes were let in where 3 may wait");
    assert_eq!(store.increment("n".to_owned(), 0).await.unwrap(), written);
}

#[test]
fn a_removal_lets_others_write_and_its_own_tenant_wait() {
    let limits = Limits { tenant_bytes: 1 << 30, ..Limits::default() };
    let kv = KeyValue::in_memory(Config { limits, ..Config::default() }).unwrap();
    let of = |tenant: &str| kv.store(&Scope::new(tenant, "app").unwrap(), "default").unwrap();
    let (large, other) = (of("large"), of("other"));
    for part in 0..20 {
        large.set_many((0..1000).map(|n| (format!("{part}/{n}"), vec![0; 10])).collect()).unwrap();
    }
    std::thread::scope(|scope| {
        let removal = scope.spawn(|| kv.remove_tenant("large"));
        let mut beside = 0;
        while !removal.is_finished() {
            other.set("k", b"v").unwrap();
            beside += u64::from(!removal.is_finished());
        }
        println!("{beside} writes of another tenant during a removal");
        assert!(beside > 5, "only {beside} writes were let in between");
        removal.join().unwrap().unwrap();
    });
    assert_eq!(kv.tenant_bytes("large").unwrap(), 0);
    assert!(other.exists("k").unwrap());
}
