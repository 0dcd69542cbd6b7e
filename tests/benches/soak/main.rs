//! Half an hour of everything at once, and what is left of it: memory, handles, threads
//! and whatever the host counts are measured at rest, before and after.
//!
//! `cargo xtask bench soak -- [--minutes N]`

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark: it prints, and a failure ends it"
)]

use std::time::Duration;

use nala_e2e::soak::{Counts, Held, Soak};

/// Until caches are full and threads there.
const WARM_UP: Duration = Duration::from_secs(60);
/// Between two looks.
const PART: Duration = Duration::from_secs(300);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let minutes = args.iter().position(|a| a == "--minutes").and_then(|at| args.get(at + 1));
    let mut left = Duration::from_secs(60 * minutes.map_or(30, |minutes| minutes.parse().expect("a number")));
    let soak = Soak::start();
    let warm = soak.load(WARM_UP);
    let before = soak.rest();
    print("after a minute", &before, &warm);
    let mut passed = Duration::ZERO;
    let mut after = before;
    while !left.is_zero() {
        let part = left.min(PART);
        let counts = soak.load(part);
        after = soak.rest();
        (left, passed) = (left - part, passed + part);
        print(&format!("after {} minutes more", passed.as_secs() / 60), &after, &counts);
    }
    println!(
        "left over: {:+.1} MiB of memory, {:+} files, {:+} threads; nobody holds a request, instance, session or cell",
        (after.anonymous as f64 - before.anonymous as f64) / f64::from(1 << 20),
        after.files as i64 - before.files as i64,
        after.threads as i64 - before.threads as i64
    );
}

fn print(when: &str, held: &Held, counts: &Counts) {
    let counts: Vec<String> =
        counts.iter().map(|(what, (done, failed))| format!("{done} {what} ({failed} failed)")).collect();
    println!(
        "{when}: {:.1} MiB, {} files, {} threads at rest; {}",
        held.anonymous as f64 / f64::from(1 << 20),
        held.files,
        held.threads,
        counts.join(", ")
    );
}
