//! The model that is served and tested with.

use anyhow::{Context, Result};
use nala_models::{DEFAULT_MODEL, Outcome, Stage, State, Store};

use crate::process::{Progress, say};
use crate::repo::Repo;

const MEBIBYTE: u64 = 1024 * 1024;

/// Downloads the default model into `models/`, going on where it was stopped.
pub(super) fn default_model(repo: &Repo) -> Result<()> {
    let store = Store::open(repo.path("models"))?;
    // Looks at the size only: the digest was checked when the file was put there.
    let listed = store.list()?;
    let here = listed.iter().any(|model| model.name == DEFAULT_MODEL && matches!(model.state, State::Installed { .. }));
    if here {
        return Ok(());
    }
    let mut watch = Watch { progress: Progress::new("the model"), what: "", total: None };
    let pulled = store.pull(DEFAULT_MODEL, &mut watch);
    watch.progress.finish();
    let pulled = pulled.with_context(|| format!("the model {DEFAULT_MODEL} is not there"))?;
    if pulled.outcome != Outcome::AlreadyThere {
        say(&format!("the model {DEFAULT_MODEL} is in {}", pulled.path.display()));
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
