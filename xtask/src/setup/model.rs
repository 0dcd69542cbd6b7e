//! The models that are served and tested with.

use anyhow::{Context, Result};
use nala_models::{Catalogue, DEFAULT_MODEL, Outcome, Stage, State, Store};

use crate::process::{Progress, say};
use crate::repo::Repo;

const MEBIBYTE: u64 = 1024 * 1024;

/// The models that only tests need.
const FOR_TESTS: &str = include_str!("../../../models/tests.toml");

/// Downloads the default model into `models/`, going on where it was stopped.
pub(super) fn default_model(repo: &Repo) -> Result<()> {
    fetch(&Store::open(repo.path("models"))?, DEFAULT_MODEL)
}

/// The same for the models that only tests need, in a folder of their own, so
/// that nobody is offered them.
pub(super) fn for_tests(repo: &Repo) -> Result<()> {
    let catalogue = Catalogue::parse(FOR_TESTS)?;
    let names: Vec<String> = catalogue.iter().map(|entry| entry.name.clone()).collect();
    let store = Store::with_catalogue(repo.path("models/tests"), catalogue);
    names.iter().try_for_each(|name| fetch(&store, name))
}

fn fetch(store: &Store, name: &str) -> Result<()> {
    // Looks at the size only: the digest was checked when the file was put there.
    let listed = store.list()?;
    let here = listed.iter().any(|model| model.name == name && matches!(model.state, State::Installed { .. }));
    if here {
        return Ok(());
    }
    let mut watch = Watch { progress: Progress::new("the model"), what: "", total: None };
    let pulled = store.pull(name, &mut watch);
    watch.progress.finish();
    let pulled = pulled.with_context(|| format!("the model {name} is not there"))?;
    if pulled.outcome != Outcome::AlreadyThere {
        say(&format!("the model {name} is in {}", pulled.path.display()));
    }
    Ok(())
}

/// Shows the course of a pull.
struct Watch {
    progress: Progress,
    what: &'static str,
    /// Bytes at the end of the stage, where known.
    total: Option<u64>,
}

impl nala_models::Progress for Watch {
    fn stage(&mut self, stage: Stage, total: Option<u64>) {
        self.what = match stage {
            Stage::Waiting => "waiting for another process that downloads it",
            Stage::Finding => "finding where it is",
            Stage::Downloading => "downloading",
            Stage::Unpacking => "unpacking",
            Stage::Verifying => "verifying",
        };
        self.total = total;
        self.progress.update(self.what);
    }

    fn reached(&mut self, done: u64) {
        let done = done / MEBIBYTE;
        let text = match self.total {
            Some(total) => format!("{} {done} of {} MiB", self.what, total / MEBIBYTE),
            None => format!("{} {done} MiB", self.what),
        };
        self.progress.update(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_for_tests_are_not_those_of_users() {
        let (ours, served) = (Catalogue::parse(FOR_TESTS).unwrap(), Catalogue::embedded().unwrap());
        assert!(ours.iter().count() > 0);
        for entry in ours.iter() {
            assert!(served.iter().all(|other| other.name != entry.name && other.file != entry.file), "{}", entry.name);
        }
    }
}
