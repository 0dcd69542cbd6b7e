//! Which CPUs the threads that compute keep to.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;

use nala_engine::{BatchEntry, Pooling, SeqId};
use nala_llama::bare::decode_loop;
use nala_llama::{LoadOptions, Pinning, load};

/// The CPUs that a thread may run on.
fn cpus_of(task: &Path) -> String {
    let status = std::fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

/// Those of each thread that has a name, and of those that it started, which have the same.
fn all_cpus_of(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let named = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name));
    named.map(|task| cpus_of(&task)).collect()
}

/// Loads on a thread of this name, decodes there, and says what its threads keep to.
fn kept_to(name: &'static str, threads: usize, pinning: Pinning) -> Vec<String> {
    let options = LoadOptions { threads: NonZero::new(threads), pinning, ..common::options() };
    let loaded = load(&common::model_path(), &options, |_| {}).unwrap();
    let work = move || {
        let mut backend = (loaded.backend)().unwrap();
        backend.decode(&[BatchEntry { token: 1, position: 0, seq: SeqId(0), logits: true }]).unwrap();
        // Their context is made now, by a thread that may be pinned.
        backend.embed(&[vec![1, 2, 3]], Pooling::Mean).unwrap();
        all_cpus_of(name)
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(work).unwrap().join().unwrap()
}

#[test]
fn as_many_threads_as_cpus_have_one_each() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let all = cpus_of(Path::new("/proc/thread-self"));
    // Two contexts, and one thread that is in both.
    let threads = if cpus < 2 { 1 } else { 2 * cpus - 1 };
    let kept = kept_to("pinned", cpus, Pinning::Auto);
    assert_eq!(kept.len(), threads, "{kept:?}");
    let each: BTreeSet<&String> = kept.iter().collect();
    // With a quota there are fewer than could be counted: none is pinned.
    let granted = rustix::thread::sched_getaffinity(None).unwrap().count() as usize;
    assert_eq!(each.len(), if granted == cpus { cpus } else { 1 }, "{kept:?} of {all}");
    let kept = kept_to("free", cpus, Pinning::Off);
    assert_eq!(kept, vec![all; threads]);
}

#[test]
fn a_bare_loop_leaves_its_caller_all_cpus() {
    let threads = NonZero::new(std::thread::available_parallelism().unwrap().get());
    let options = LoadOptions { threads, pinning: Pinning::Auto, ..common::options() };
    let all = cpus_of(Path::new("/proc/thread-self"));
    let first = decode_loop(&common::model_path(), &options, 1, &[1, 2, 3], 4).unwrap();
    assert_eq!(cpus_of(Path::new("/proc/thread-self")), all);
    let second = decode_loop(&common::model_path(), &options, 1, &[1, 2, 3], 4).unwrap();
    assert_eq!(cpus_of(Path::new("/proc/thread-self")), all);
    assert_eq!(first.first_stream, second.first_stream);
}
