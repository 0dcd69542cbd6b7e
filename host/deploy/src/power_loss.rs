//! What a folder looks like after the power failed, or a write did, at every
//! step of a course of changes.
//!
//! [`record::Recorder`] writes down each step that changes the disk.
//! [`replay::after_power_loss`] makes the folder that a disk may have after the
//! first of them: what was synchronised is there, and of the rest any part. Each
//! such folder has to hold all that was answered, and what was not answered as a
//! whole or not at all.

mod course;
mod record;
mod replay;

use std::path::{Path, PathBuf};

use course::{Seen, course, look, perform};
use record::{Recorder, Step, Unsynchronised, fail_at, recorded};
use replay::after_power_loss;

use crate::error::Error;
use crate::state::State;

/// A folder in memory where the system has that: thousands of them are made.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn open(folder: &Path) -> Result<State, Error> {
    // What follows reads the folder at once, so nothing has to be made safe.
    State::open_on(folder.to_owned(), Box::new(Unsynchronised))
}

/// All steps of the course, and what was seen after each of its changes.
fn run() -> (Vec<Step>, Vec<Seen>) {
    let folder = scratch();
    let (disk, log) = recorded(folder.path());
    let state = State::open_on(folder.path().to_owned(), disk).unwrap();
    let mut seen = vec![look(&state)];
    Recorder::mark(&log, 0);
    for (change, number) in course().into_iter().zip(1..) {
        perform(&state, &change).unwrap();
        seen.push(look(&state));
        Recorder::mark(&log, number);
    }
    let steps = log.lock().unwrap().clone();
    (steps, seen)
}

/// Opens what the power failure left, and says what is wrong with it.
fn check(steps: &[Step], seen: &[Seen], seed: u64) -> Result<(), String> {
    let folder = scratch();
    after_power_loss(steps, seed, folder.path());
    let state = open(folder.path()).map_err(|error| error.to_string())?;
    state.verify().map_err(|error| error.to_string())?;
    let found = look(&state);
    let answered = steps.iter().rev().find_map(|step| if let Step::Answered(n) = step { Some(*n) } else { None });
    // Before the folder was opened for the first time there was nothing to lose.
    let answered = answered.unwrap_or(0);
    let possible = seen.iter().skip(answered).take(2);
    if !possible.clone().any(|possible| found.is_at_least(possible)) {
        return Err(format!("after {answered} answers there is {found:?}"));
    }
    // It has to be of use, too.
    course::deploy_anew(&state).map_err(|error| error.to_string())
}

/// Tries power failures after each step, until one is not survived.
fn violation(steps: &[Step], seen: &[Seen]) -> Option<String> {
    let mut failures = (0..=steps.len()).flat_map(|end| (0..2).map(move |seed| (end, seed)));
    failures.find_map(|(end, seed)| {
        let error = check(&steps[..end], seen, seed).err()?;
        Some(format!("after step {end} (seed {seed}, {:?}): {error}", steps[..end].last()))
    })
}

#[test]
fn nothing_that_was_answered_is_lost_when_the_power_fails() {
    let (steps, seen) = run();
    assert_eq!(violation(&steps, &seen), None);
}

/// The check above is worth something only if it sees what it is for.
#[test]
fn each_synchronisation_that_is_left_out_is_seen() {
    let (steps, seen) = run();
    let without = |left_out: &dyn Fn(&Step) -> bool| -> Vec<Step> {
        steps.iter().filter(|step| !left_out(step)).cloned().collect()
    };
    let contents = without(&|step| matches!(step, Step::SyncFile(_)));
    assert!(contents.len() < steps.len());
    assert!(violation(&contents, &seen).is_some(), "without what makes contents safe nothing was lost");
    let mut folders: Vec<PathBuf> = steps
        .iter()
        .filter_map(|step| if let Step::SyncDir(path) = step { Some(path.clone()) } else { None })
        .collect();
    folders.sort();
    folders.dedup();
    assert!(folders.len() > 8, "{folders:?}");
    for folder in folders {
        let steps = without(&|step| matches!(step, Step::SyncDir(path) if *path == folder));
        assert!(violation(&steps, &seen).is_some(), "without what makes {} safe nothing was lost", folder.display());
    }
}

/// A name before its content: the mistake that a rename invites.
#[test]
fn a_name_that_comes_before_its_content_is_seen() {
    let (mut steps, seen) = run();
    for at in 1..steps.len() {
        if matches!((&steps[at - 1], &steps[at]), (Step::SyncFile(_), Step::Rename(..))) {
            steps.swap(at - 1, at);
        }
    }
    assert!(violation(&steps, &seen).is_some());
}

#[test]
fn a_disk_that_fails_once_leaves_the_folder_before_or_after_the_change() {
    let (steps, _) = run();
    let mut failed = 0;
    let mut unsure = 0;
    for at in 0..steps.len() {
        let folder = scratch();
        let Ok(state) = State::open_on(folder.path().to_owned(), fail_at(at)) else {
            // The next process finds the rest of the folder that was being made.
            look(&open(folder.path()).unwrap());
            failed += 1;
            continue;
        };
        let mut before_and_after = None;
        for change in course() {
            let before = look(&state);
            let Err(error) = perform(&state, &change) else { continue };
            assert!(matches!(error, Error::Io { .. }), "{error}");
            assert_eq!(look(&state), before, "a change that failed is seen");
            assert!(before_and_after.is_none(), "the disk failed twice");
            failed += 1;
            before_and_after = Some((before, change.clone()));
            // The disk is well again: the change is made, or refused for good.
            match perform(&state, &change) {
                Ok(()) => {}
                Err(Error::Unsure) => break,
                Err(error) => panic!("step {at}, again: {error}"),
            }
        }
        let last = look(&state);
        let sure = !matches!(state.begin_for_tests(), Err(Error::Unsure));
        drop(state);
        let state = open(folder.path()).unwrap();
        state.verify().unwrap();
        let found = look(&state);
        if sure {
            assert!(found.is_at_least(&last), "step {at}: the disk has {found:?}, and memory had {last:?}");
        } else {
            unsure += 1;
            let (before, change) = before_and_after.unwrap();
            if !found.is_at_least(&before) {
                // Then it is after the change, which cannot be made once more from here.
                let again = perform(&state, &change);
                assert!(again.is_ok() || matches!(again, Err(Error::NoSuchApplication { .. })), "step {at}: {again:?}");
            }
        }
    }
    // Failures of clearing away are not told to anybody, all others are.
    assert!(failed > 60 && unsure > 10, "{failed} failed, {unsure} of them in doubt");
}
