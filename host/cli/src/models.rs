//! From what the user calls models to a pool that serves them.

mod memory;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::ProgressBar;
use nala_engine::pool::LoadFailure;
use nala_engine::{EngineConfig, ModelPool, ModelSpec, PoolConfig, PooledModel, Residence};
use nala_llama::{AdapterFile, LoadOptions};
use nala_models::{Catalogue, Store};

pub(crate) use self::memory::default_budget;
use crate::args::{EngineArgs, ModelName, ModelsArgs};
use crate::console::{Console, Help};

/// Tokens of embeddings that a model is loaded for which only drafts.
const NONE_EMBEDDED: u32 = 1;

/// Makes pools of models with the same settings.
pub(crate) struct Loader {
    store: Store,
    options: LoadOptions,
    max_draft: u32,
    models: ModelsArgs,
    console: Console,
    /// The bar of the load that people wait for, if they wait for one.
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

/// What is loaded with a model.
#[derive(Clone)]
struct Extras {
    adapters: Vec<AdapterFile>,
    /// The file of the model that guesses.
    draft: Option<PathBuf>,
}

/// A model that was looked up, and whose header is sound.
struct Found {
    name: String,
    path: PathBuf,
    /// Of the file.
    size: u64,
    /// What it takes when it is loaded.
    bytes: u64,
}

impl Loader {
    /// # Errors
    /// No folder for models can be named.
    pub(crate) fn new(engine: &EngineArgs, models: &ModelsArgs, console: Console) -> anyhow::Result<Self> {
        let (store, options) = (Store::open_default()?, options(engine));
        Ok(Self { store, options, max_draft: engine.max_draft, models: models.clone(), console, bar: Arc::default() })
    }

    /// The models of the command line, or else `otherwise`.
    pub(crate) fn asked(&self, otherwise: &[&str]) -> Vec<ModelName> {
        match self.models.models.as_slice() {
            [] => otherwise.iter().map(|name| ModelName::plain(name)).collect(),
            named => named.to_vec(),
        }
    }

    /// Looks all models up, and loads those that are to be there from the start:
    /// the first, and the resident ones. Takes as long as the disk needs.
    ///
    /// # Errors
    /// A model is not there, or is not one, or the memory does not suffice; each
    /// error says what to do.
    pub(crate) fn pool(&self, asked: &[ModelName]) -> anyhow::Result<ModelPool> {
        let mut found = asked.iter().map(|model| self.look_up(model)).collect::<anyhow::Result<Vec<_>>>()?;
        let extras = self.extras()?;
        if let (Some(default), Some(draft)) = (found.first_mut(), &extras.draft) {
            let size = std::fs::metadata(draft).map_or(0, |meta| meta.len());
            let options = LoadOptions { embedding_tokens: NONE_EMBEDDED, ..self.options.clone() };
            default.bytes = default.bytes.saturating_add(memory::estimate(draft, size, &options));
        }
        let found = found;
        refuse_doubles(asked, &found)?;
        self.refuse_unknown_residents(&found)?;
        let residence = |model: &Found| match found.as_slice() {
            [_] => Residence::Resident,
            _ if self.models.resident.contains(&model.name) => Residence::Resident,
            _ => Residence::OnDemand,
        };
        let needs: Vec<_> = found.iter().map(|model| (model.bytes, residence(model))).collect();
        let budget = self.budget(&needs);
        let plain = Extras { adapters: Vec::new(), draft: None };
        let extras = std::iter::once(extras).chain(std::iter::repeat(plain));
        let specs = found.iter().zip(extras).map(|(model, extras)| self.spec(model, residence(model), extras));
        let config = PoolConfig { budget, idle: self.models.idle(), ..PoolConfig::default() };
        let pool = ModelPool::new(config, specs.collect(), tokio::runtime::Handle::current()).map_err(|error| {
            let what = error.to_string();
            Help { what, help: "raise --model-memory, or lower --kv-cells".to_owned() }
        })?;
        // Resident ones first: their room must not be taken by one that may go.
        let early = |wanted| found.iter().zip(pool.models()).filter(move |(model, _)| residence(model) == wanted);
        for (model, pooled) in early(Residence::Resident) {
            self.preload(model, &pooled)?;
        }
        if let Some((model, pooled)) = found.iter().zip(pool.models()).next()
            && residence(model) == Residence::OnDemand
        {
            self.preload(model, &pooled)?;
        }
        for (model, pooled) in found.iter().zip(pool.models()) {
            if pooled.limits().is_none() {
                let (name, size) = (&model.name, mebibytes(model.size));
                self.console.say(&format!("{name} ({size}) will be loaded when it is first used"));
            }
        }
        Ok(pool)
    }

    fn look_up(&self, model: &ModelName) -> anyhow::Result<Found> {
        let path = self.store.resolve(&model.source)?;
        // Also of those that are loaded later: what is wrong is told now.
        nala_llama::check(&path, &self.options)?;
        let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        let bytes = memory::estimate(&path, size, &self.options);
        let name = model.serve_as.clone().unwrap_or_else(|| served_name(&path, self.store.catalogue()));
        Ok(Found { name, path, size, bytes })
    }

    fn refuse_unknown_residents(&self, found: &[Found]) -> anyhow::Result<()> {
        let known = |name: &String| found.iter().any(|model| model.name == *name);
        match self.models.resident.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let names: Vec<&str> = found.iter().map(|model| model.name.as_str()).collect();
                let what = format!("--resident names {name}, but no model is served by that name");
                Err(Help { what, help: format!("name one of: {}", names.join(", ")) }.into())
            }
        }
    }

    /// The memory budget. One that was given is kept to; the default gives way
    /// where it would keep a model from being served at all.
    fn budget(&self, needs: &[(u64, Residence)]) -> u64 {
        let (default, least) = (default_budget(), memory::least(needs));
        match (self.models.model_memory, default) {
            (Some(given), _) => given,
            (None, Some(default)) if least > default => {
                self.console.warn(&format!(
                    "the models need {} at least, but {} is three quarters of what this process may use; give it more \
                     memory, choose smaller models, or lower --kv-cells",
                    mebibytes(least),
                    mebibytes(default)
                ));
                least
            }
            (None, Some(default)) => default,
            (None, None) => u64::MAX,
        }
    }

    /// What is loaded with the default model.
    fn extras(&self) -> anyhow::Result<Extras> {
        let draft = self.models.draft_model.as_ref().map(|name| {
            let path = self.store.resolve(name)?;
            nala_llama::check(&path, &self.options)?;
            anyhow::Ok(path)
        });
        Ok(Extras { adapters: self.models.adapter.clone(), draft: draft.transpose()? })
    }

    fn spec(&self, model: &Found, residence: Residence, extras: Extras) -> ModelSpec {
        let (path, bar) = (model.path.clone(), Arc::clone(&self.bar));
        let options = LoadOptions { adapters: extras.adapters, ..self.options.clone() };
        ModelSpec {
            name: model.name.clone(),
            bytes: model.bytes,
            residence,
            engine: EngineConfig { max_draft: self.max_draft, ..EngineConfig::default() },
            load: Box::new(move || {
                let bar = bar.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let progress = move |part: f32| {
                    if let Some(bar) = &bar {
                        bar.set_position((part * 1000.0) as u64);
                    }
                };
                let mut model = nala_llama::load(&path, &options, progress)?;
                if let Some(draft) = &extras.draft {
                    let options =
                        LoadOptions { adapters: Vec::new(), embedding_tokens: NONE_EMBEDDED, ..options.clone() };
                    model.draft = Some(Box::new(nala_llama::load(draft, &options, |_| {})?));
                }
                Ok(model)
            }),
        }
    }

    fn show(&self, bar: Option<ProgressBar>) -> Option<ProgressBar> {
        std::mem::replace(&mut *self.bar.lock().unwrap_or_else(PoisonError::into_inner), bar)
    }

    fn preload(&self, model: &Found, pooled: &PooledModel) -> anyhow::Result<()> {
        let Found { name, path, size, .. } = model;
        let size = mebibytes(*size);
        if self.console != Console::Terminal {
            self.console.say(&format!("Loading {name} from {} ({size})", path.display()));
        }
        let bar = self.console.bar(1000, "Loading {msg} [{bar:30}] {percent}%");
        bar.set_message(name.clone());
        self.show(Some(bar));
        let started = Instant::now();
        let loaded = pooled.preload();
        if let Some(bar) = self.show(None) {
            bar.finish_and_clear();
        }
        let lease = loaded.map_err(|failure| match *failure {
            LoadFailure::Start(_) => anyhow::Error::new(failure)
                .context(format!("{name} cannot be served; with less memory, try a smaller --kv-cells")),
            _ => anyhow::Error::new(failure),
        })?;
        self.console.say(&format!(
            "Loaded {name} ({}, {size}) in {:.1} s",
            lease.info().description,
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}

fn refuse_doubles(asked: &[ModelName], found: &[Found]) -> anyhow::Result<()> {
    for (at, model) in found.iter().enumerate() {
        let first = found.iter().take(at).position(|other| other.name == model.name);
        if let Some((first, second)) = first.and_then(|first| asked.get(first).zip(asked.get(at))) {
            let what = format!("two models are named {}: {first} and {second}", model.name);
            let help = format!("leave one out, or name it otherwise: --model OTHER={}", second.source);
            return Err(Help { what, help }.into());
        }
    }
    Ok(())
}

/// What llama.cpp is told: as many threads as the process is granted CPUs.
pub(crate) fn options(args: &EngineArgs) -> LoadOptions {
    let granted = std::num::NonZeroUsize::new(nala_machine::granted_cpus().threads);
    LoadOptions {
        threads: args.threads.or(granted),
        pinning: args.pin_threads.into(),
        kv_cells: args.kv_cells,
        max_sequences: args.max_sequences,
        batch_tokens: args.batch_tokens,
        embedding_tokens: args.embedding_tokens,
        flash_attention: args.flash_attention.into(),
        kv_keys: args.cache_type_k.into(),
        kv_values: args.cache_type_v.into(),
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
