//! A process that changes a state folder is killed at random moments, again and
//! again. What it was answered has to be there each time, and what it had only
//! begun as a whole or not at all.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nala_deploy::{AppName, Digest, State, TenantName, VersionNumber};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;

/// Kills that are wanted, the time after which no more are made, and how many a
/// slow machine has to come to nevertheless.
const KILLS: u32 = 200;
const TIME: Duration = Duration::from_secs(60);
const LEAST: u32 = 40;
/// As in `examples/changing.rs`.
const KEPT: usize = 4;

/// Builds with the tests, as every example of the package does.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build --release -p nala-deploy --examples`", path.display());
    path
}

/// What has to be there.
#[derive(Debug, Clone, Default)]
struct Model {
    apps: BTreeMap<(TenantName, AppName), App>,
    /// Put, and not yet deployed or given up.
    claims: BTreeSet<(TenantName, Digest)>,
}

#[derive(Debug, Clone, PartialEq)]
struct App {
    current: u64,
    last: u64,
    /// Notes and components of the versions that are kept.
    versions: BTreeMap<u64, (String, Vec<Digest>)>,
}

fn field<T: serde::de::DeserializeOwned>(line: &Value, name: &str) -> T {
    serde_json::from_value(line[name].clone()).unwrap_or_else(|error| panic!("{name} of {line}: {error}"))
}

impl Model {
    /// With a change that was begun.
    fn after(mut self, begun: &Value) -> Self {
        let key = || (field::<TenantName>(begun, "tenant"), field::<AppName>(begun, "app"));
        match begun["begin"].as_str().unwrap() {
            "put" => {
                self.claims.insert((field(begun, "tenant"), field(begun, "digest")));
            }
            "deploy" => {
                let digests: Vec<Digest> = field(begun, "digests");
                self.claims.retain(|(tenant, digest)| *tenant != key().0 || !digests.contains(digest));
                let empty = App { current: 0, last: 0, versions: BTreeMap::new() };
                let app = self.apps.entry(key()).or_insert(empty);
                app.last += 1;
                app.current = app.last;
                app.versions.insert(app.last, (field(begun, "note"), digests));
                while app.versions.len() > KEPT {
                    app.versions.pop_first();
                }
            }
            "roll back" => self.apps.get_mut(&key()).unwrap().current = field(begun, "to"),
            "remove" => {
                self.apps.remove(&key());
            }
            "collect" if begun["all"] == true => self.claims.clear(),
            "collect" => {}
            other => panic!("{other}"),
        }
        self
    }

    /// What of it is not in the folder.
    fn lacks(&self, state: &State) -> Option<String> {
        let mut found = BTreeMap::new();
        for listed in state.list(None) {
            let history = state.history(&listed.tenant, &listed.app).unwrap();
            let versions = history.versions.into_iter().map(|version| {
                let digests = version.components.values().map(|component| component.digest).collect();
                (version.number.get(), (version.note, digests))
            });
            let key = (listed.tenant, listed.app);
            // The last number cannot be seen before it is used.
            let last = self.apps.get(&key).map_or(0, |app| app.last);
            found.insert(key, App { current: VersionNumber::get(history.current), last, versions: versions.collect() });
        }
        if found != self.apps {
            return Some(format!("there is {found:?}, and not {:?}", self.apps));
        }
        let lost = self.claims.iter().find(|(tenant, digest)| !state.holds(tenant, digest));
        lost.map(|(tenant, digest)| format!("{digest}, which {tenant} has put, is lost"))
    }
}

/// From when the time until a kill is counted.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    Start,
    /// The folder is open: a loaded machine is slow to come to that.
    Open,
}

/// Runs the process until it is killed; returns what it said.
fn run_and_kill(folder: &Path, seed: u64, from: Moment, after: Duration) -> Vec<Value> {
    let mut child =
        Command::new(example("changing")).arg(folder).arg(seed.to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (said, open) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = stdout.lines().map(|line| {
            let _ = said.send(());
            serde_json::from_str(&line.unwrap()).unwrap()
        });
        lines.collect()
    });
    if from == Moment::Open {
        let _ = open.recv();
    }
    std::thread::sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    // Anything else is a failure of the process itself, which it has told.
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
    reader.join().unwrap()
}

#[test]
fn what_was_answered_outlives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut model = Model::default();
    let (mut kills, mut answered, mut amid) = (0, 0, BTreeMap::<String, u32>::new());
    let end = Instant::now() + TIME;
    while kills < KILLS && Instant::now() < end {
        let after = Duration::from_millis(u64::from(random.next_u32() % 150));
        let from = if kills % 5 == 0 { Moment::Start } else { Moment::Open };
        let mut begun: Option<Value> = None;
        for line in run_and_kill(folder.path(), random.next_u64(), from, after) {
            match (line.get("begin"), line.get("answered")) {
                (Some(_), _) => begun = Some(line),
                (_, Some(answer)) => {
                    let begun = begun.take().unwrap();
                    if answer == true {
                        model = model.after(&begun);
                    }
                    answered += 1;
                }
                _ => {}
            }
        }
        kills += 1;
        let state = State::open(folder.path()).unwrap();
        state.verify().unwrap_or_else(|error| panic!("after kill {kills}: {error}"));
        assert_eq!(std::fs::read_dir(folder.path().join("drafts")).unwrap().count(), 0, "drafts are left");
        if let Some(begun) = &begun {
            *amid.entry(begun["begin"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let Some(missing) = model.lacks(&state) else { continue };
        let Some(begun) = begun else { panic!("after kill {kills}: {missing}") };
        // Giving up claims is many changes, each whole: some may be given up.
        if begun["begin"] == "collect" {
            model.claims.retain(|(tenant, digest)| begun["all"] == false || state.holds(tenant, digest));
        } else {
            model = model.after(&begun);
        }
        if let Some(missing) = model.lacks(&state) {
            panic!("after kill {kills}, amid {begun}: {missing}");
        }
    }
    println!("{kills} kills, {answered} answers, killed amid {amid:?}");
    assert!(kills >= LEAST, "only {kills} kills in {TIME:?}");
    assert!(amid.len() >= 2 && answered >= LEAST, "the kills hit too little: {answered} answers, {amid:?}");
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let error = State::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is in use by another process: stop that one"), "{error}");
    let output = Command::new(example("changing")).arg(folder.path()).arg("1").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("InUse"), "{output:?}");
    drop(state);
    State::open(folder.path()).unwrap();
}
