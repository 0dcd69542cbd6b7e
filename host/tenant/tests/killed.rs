//! A process that counts is killed again and again, wherever it is. No counter
//! that was written may be less afterwards, and no file may be damaged.
//!
//! Without arguments of its own this is the test; with a folder in the
//! environment it is the process that is killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test with a main function of its own, which clippy does not take for one"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nala_tenant::{Books, Counter, Declared, Directory, Roster, SystemClock};

const FOLDER: &str = "NALA_TENANT_TEST_FOLDER";
/// As short as periods can be, so that many end while they are looked at.
const PERIOD: Duration = Duration::from_secs(1);
const KILLS: u64 = 60;

fn main() {
    match std::env::var_os(FOLDER) {
        Some(folder) => count(Path::new(&folder)),
        None => kill_again_and_again(),
    }
}

/// Counts and writes for ever; says what is on disk before and after each write.
fn count(folder: &Path) {
    let (mut books, totals) = Books::open(folder, PERIOD).unwrap();
    let mut roster = Roster::new();
    roster.add(Declared::new("acme".parse().unwrap())).unwrap();
    let directory = Directory::new(roster, &totals, Arc::new(SystemClock::new()));
    let meter = directory.tenant("acme").unwrap().meter("c");
    let mut out = std::io::stdout().lock();
    loop {
        // Before counting, so that the first line is what was restored.
        writeln!(out, "{}", directory.totals().get("acme", "c").get(Counter::TokensOut)).unwrap();
        out.flush().unwrap();
        meter.add(Counter::TokensOut, 1);
        // Many components make the file long enough to be killed inside of it.
        for component in 0..200 {
            directory.tenant("acme").unwrap().meter(&format!("c{component}")).add(Counter::Requests, 1);
        }
        books.write(&directory.totals(), SystemTime::now()).unwrap();
    }
}

/// Kills the process after a while, and says what the first and the last line
/// were that it said.
fn run_and_kill(folder: &Path, after: Duration) -> (u64, u64) {
    let mut child: Child =
        Command::new(std::env::current_exe().unwrap()).env(FOLDER, folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let first: u64 = lines.next().expect("the process reads what the one before wrote").parse().unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    // A line that was cut off by the end is none.
    let last = lines.filter_map(|line| line.parse().ok()).last().unwrap_or(first);
    (first, last)
}

fn kill_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut written, mut lost_a_write) = (0, 0);
    for turn in 0..KILLS {
        let (first, last) = run_and_kill(folder.path(), Duration::from_micros(turn * 1_301));
        // What was said after a write was written, and at most one more write
        // came to its end before anything was said of it.
        assert!(first >= written, "turn {turn}: {first} after {written} was written");
        assert!(first <= written + 1, "turn {turn}: {first}, but {written} was written");
        lost_a_write += u64::from(first == written);
        written = last;
    }
    assert!(written > KILLS, "{written}: the processes did not come to write");
    assert!(lost_a_write > 0, "no process was killed before its write was done");
    let ended = ended_periods(folder.path());
    assert!(ended.len() > 1, "no period ended");
    let mut before = 0;
    for (from, requests) in ended {
        assert!(requests >= before, "the period from {from} has {requests} after {before}");
        before = requests;
    }
    assert!(before <= written + 1);
    println!("{KILLS} kills, {written} writes, none lost that was told");
}

/// The counter in each ended period's file, by when the period began.
fn ended_periods(folder: &Path) -> BTreeMap<u64, u64> {
    let mut ended = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(from) = name.strip_prefix("usage-").and_then(|rest| rest.strip_suffix(".jsonl")) else { continue };
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut value = lines.filter(|line| line["component"] == "c").map(|line| line["tokens_out"].as_u64().unwrap());
        ended.insert(from.parse().unwrap(), value.next_back().unwrap());
    }
    ended
}
