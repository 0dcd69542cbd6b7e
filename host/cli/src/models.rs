//! From what the user calls a model to an engine that serves it.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use nala_engine::{Engine, EngineConfig};
use nala_llama::LoadOptions;
use nala_models::{Catalogue, Store};

use crate::args::EngineArgs;
use crate::console::Console;

/// Loads models with the same settings.
pub(crate) struct Loader {
    store: Store,
    options: LoadOptions,
    console: Console,
}

impl Loader {
    /// # Errors
    /// No folder for models can be named.
    pub(crate) fn new(args: &EngineArgs, console: Console) -> anyhow::Result<Self> {
        Ok(Self { store: Store::open_default()?, options: options(args), console })
    }

    /// Loads `model`, a name or a path, and starts its engine. Takes as long as
    /// the disk needs.
    ///
    /// # Errors
    /// The model is not there, or is not one; each error says what to do.
    pub(crate) fn load(&self, model: &str) -> anyhow::Result<Engine> {
        let path = self.store.resolve(model)?;
        let name = served_name(&path, self.store.catalogue());
        let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if self.console != Console::Terminal {
            self.console.say(&format!("Loading {name} from {} ({})", path.display(), mebibytes(size)));
        }
        let bar = self.console.bar(1000, "Loading {msg} [{bar:30}] {percent}%");
        bar.set_message(name.clone());
        let started = Instant::now();
        let loaded = {
            let bar = bar.clone();
            nala_llama::load(&path, &self.options, move |part| bar.set_position((part * 1000.0) as u64))
        };
        bar.finish_and_clear();
        let engine = Engine::start(&name, loaded?, EngineConfig::default())
            .with_context(|| format!("{name} cannot be served; with less memory, try a smaller --kv-cells"))?;
        self.console.say(&format!(
            "Loaded {name} ({}, {}) in {:.1} s",
            engine.info().description,
            mebibytes(size),
            started.elapsed().as_secs_f64()
        ));
        Ok(engine)
    }
}

/// What llama.cpp is told: as many threads as the process is granted CPUs.
pub(crate) fn options(args: &EngineArgs) -> LoadOptions {
    let granted = std::num::NonZeroUsize::new(nala_machine::granted_cpus().threads);
    LoadOptions {
        threads: args.threads.or(granted),
        kv_cells: args.kv_cells,
        max_sequences: args.max_sequences,
        batch_tokens: args.batch_tokens,
        micro_batch_tokens: args.batch_tokens.min(LoadOptions::default().micro_batch_tokens),
        ..LoadOptions::default()
    }
}

/// The name that clients use: the catalogue's where the file is the one it
/// lists, else the file's without its ending.
pub(crate) fn served_name(path: &Path, catalogue: &Catalogue) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let size = std::fs::metadata(path).map(|meta| meta.len()).ok();
    let listed = catalogue.iter().find(|entry| entry.file == file && Some(entry.size) == size);
    match listed {
        Some(entry) => entry.name.clone(),
        None => file.strip_suffix(".gguf").map_or(file.clone(), str::to_owned),
    }
}

/// A size for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_catalogue_lists_has_the_catalogues_name() {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::embedded().unwrap();
        let entry = catalogue.get(nala_models::DEFAULT_MODEL).unwrap();
        let path = folder.path().join(&entry.file);
        let file = std::fs::File::create(&path).unwrap();
        assert_eq!(served_name(&path, &catalogue), "SmolLM2-135M-Instruct.Q4_1", "another size is another file");
        file.set_len(entry.size).unwrap();
        assert_eq!(served_name(&path, &catalogue), entry.name);
        assert_eq!(served_name(Path::new("dir/my.model.gguf"), &catalogue), "my.model");
    }
}
