//! How a model is loaded and its context is made.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use nala_engine::BackendLimits;

/// The most sequences one context of this llama.cpp can hold (`LLAMA_MAX_SEQ`).
pub(crate) const MAX_SEQUENCES: u32 = 256;

/// The most KV cells. llama.cpp's bookkeeping alone takes some 50 bytes a cell,
/// which it fills at once.
const MAX_CELLS: u32 = 1 << 24;

/// The most threads ggml takes (`GGML_MAX_N_THREADS`).
const MAX_THREADS: usize = 512;

/// So many threads are always taken, however few CPUs there are.
const FEW_THREADS: usize = 16;

/// The most threads a CPU. ggml's threads wait for each other by spinning, so
/// that with many more of them than CPUs nothing is ever done.
const THREADS_A_CPU: usize = 4;

/// Whether each thread that computes stays on a CPU of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// Where there are as many of them as CPUs that the process may use.
    ///
    /// They wait for each other some hundred times a token, by spinning. With all CPUs
    /// taken and others at work beside them, the system now and then puts two on one CPU,
    /// where each wait takes a time slice: a token takes seconds then. With CPUs to spare
    /// it finds each one its own, and can move them away from others' work.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Whether attention is computed by ggml's fused kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlashAttention {
    /// Where llama.cpp finds that the device supports it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: plain matrix products and a softmax.
    Off,
}

/// How keys or values are kept in the KV cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvType {
    /// 16 bits a number.
    #[default]
    F16,
    /// 8.5 bits a number.
    Q8_0,
    /// 4.5 bits a number. Answers change visibly.
    Q4_0,
}

impl KvType {
    /// Numbers that share a scale: a head's width must be a multiple of it.
    pub(crate) fn block(self) -> u32 {
        match self {
            Self::F16 => 1,
            Self::Q8_0 | Self::Q4_0 => 32,
        }
    }
}

/// A LoRA adapter to be loaded with the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterFile {
    /// The name it is asked for by, which no other adapter has.
    pub name: String,
    /// Its GGUF file, made for this very model.
    pub path: PathBuf,
}

/// How a model is loaded and its context is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads that decode single tokens. None: as many as the process may run
    /// in parallel.
    pub threads: Option<NonZeroUsize>,
    /// Threads that decode larger batches. None: as [`LoadOptions::threads`].
    pub batch_threads: Option<NonZeroUsize>,
    /// Whether each of them stays on a CPU of its own.
    pub pinning: Pinning,
    /// KV cells, one a token, shared by all sequences.
    pub kv_cells: u32,
    /// The most tokens of one batch, at least [`LoadOptions::max_sequences`].
    pub batch_tokens: u32,
    /// The most tokens computed at once; larger batches run in parts.
    pub micro_batch_tokens: u32,
    /// The most sequences, at most 256.
    pub max_sequences: u32,
    /// How attention is computed.
    pub flash_attention: FlashAttention,
    /// How the cells keep keys.
    pub kv_keys: KvType,
    /// How the cells keep values. Anything but [`KvType::F16`] needs flash
    /// attention.
    pub kv_values: KvType,
    /// LoRA adapters, loaded with the model.
    pub adapters: Vec<AdapterFile>,
    /// The longest input of an embedding, in tokens, and no more than
    /// [`LoadOptions::kv_cells`]. The first embedding makes a context with KV cells
    /// of its own, as many as its input needs; longer ones make it larger, up to so
    /// many.
    pub embedding_tokens: u32,
}

impl Default for LoadOptions {
    /// All cores, a thread on each, 16,384 cells, batches of 512 tokens, 64 sequences, flash
    /// attention where it is supported, 16 bits a number in the cells, embeddings
    /// of up to 8192 tokens, no adapters.
    fn default() -> Self {
        Self {
            threads: None,
            batch_threads: None,
            pinning: Pinning::Auto,
            kv_cells: 16_384,
            batch_tokens: 512,
            micro_batch_tokens: 512,
            max_sequences: 64,
            flash_attention: FlashAttention::Auto,
            kv_keys: KvType::F16,
            kv_values: KvType::F16,
            adapters: Vec::new(),
            embedding_tokens: 8192,
        }
    }
}

impl LoadOptions {
    /// Threads for single tokens and for larger batches.
    pub(crate) fn thread_counts(&self) -> (usize, usize) {
        let threads = self.threads.map_or_else(cpus, NonZeroUsize::get).min(MAX_THREADS);
        let batch = self.batch_threads.map_or(threads, NonZeroUsize::get).min(MAX_THREADS);
        (threads, batch)
    }

    /// The same, with numbers of threads that no longer depend on where this is asked: a
    /// thread that is pinned sees one CPU.
    pub(crate) fn settled(&self) -> Self {
        let (threads, batch) = self.thread_counts();
        Self { threads: NonZeroUsize::new(threads), batch_threads: NonZeroUsize::new(batch), ..self.clone() }
    }

    /// Where more threads are asked for than the process may use CPUs: how many, and how
    /// many CPUs.
    pub(crate) fn crowd(&self) -> Option<(usize, usize)> {
        let threads = self.threads.max(self.batch_threads).map(NonZeroUsize::get)?;
        let cpus = cpus();
        (threads > cpus).then_some((threads, cpus))
    }

    /// Says what is wrong with the numbers, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranges = [
            ("kv_cells", self.kv_cells, 1, MAX_CELLS),
            ("batch_tokens", self.batch_tokens, 1, 1 << 20),
            ("micro_batch_tokens", self.micro_batch_tokens, 1, 1 << 20),
            ("max_sequences", self.max_sequences, 1, MAX_SEQUENCES),
            ("embedding_tokens", self.embedding_tokens, 1, 1 << 20),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} is {value} but must be from {least} to {most}"));
            }
        }
        check_threads("threads", self.threads, cpus())?;
        check_threads("batch_threads", self.batch_threads, cpus())?;
        // Each running sequence needs a token of every batch, or those that came
        // last would never have a turn.
        let (batch, sequences) = (self.batch_tokens, self.max_sequences);
        if batch < sequences {
            return Err(format!(
                "batch_tokens is {batch} but max_sequences is {sequences}: a batch must have a token for each \
                 sequence; raise --batch-tokens to {sequences} or lower --max-sequences to {batch}"
            ));
        }
        // llama.cpp's plain attention multiplies with values by column, which a
        // block of them does not allow.
        if self.kv_values != KvType::F16 && self.flash_attention == FlashAttention::Off {
            return Err(format!(
                "kv_values is {:?}, which needs flash attention, but that is off; turn flash_attention on, or set \
                 kv_values to F16",
                self.kv_values
            ));
        }
        for (index, adapter) in self.adapters.iter().enumerate() {
            if adapter.name.is_empty() || self.adapters.iter().take(index).any(|other| other.name == adapter.name) {
                return Err(format!(
                    "the adapter {} is named `{}`; give each adapter a name of its own",
                    adapter.path.display(),
                    adapter.name
                ));
            }
        }
        Ok(())
    }

    /// Checks what depends on the model as well: the width of its heads' keys and
    /// values.
    pub(crate) fn check_widths(&self, keys: u32, values: u32) -> Result<(), String> {
        for (name, kind, width) in [("kv_keys", self.kv_keys, keys), ("kv_values", self.kv_values, values)] {
            if !width.is_multiple_of(kind.block()) {
                return Err(format!(
                    "{name} is {kind:?}, which needs heads whose width is a multiple of {}, but this model's is \
                     {width}; set {name} to F16",
                    kind.block()
                ));
            }
        }
        Ok(())
    }

    /// The most KV cells of the context for embeddings.
    #[must_use]
    pub fn longest_embedding(&self) -> u32 {
        self.embedding_tokens.min(self.kv_cells)
    }

    /// What a context of these options holds for a model trained for
    /// `ctx_train` tokens (0: unknown).
    pub(crate) fn limits(&self, vocab: u32, ctx_train: u32) -> BackendLimits {
        let trained = if ctx_train == 0 { u32::MAX } else { ctx_train };
        BackendLimits {
            kv_cells: self.kv_cells,
            sequence_tokens: trained.min(self.kv_cells),
            batch_tokens: self.batch_tokens.min(self.kv_cells),
            sequences: self.max_sequences,
            vocab,
        }
    }
}

/// The CPUs that the process may use.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn check_threads(name: &str, threads: Option<NonZeroUsize>, cpus: usize) -> Result<(), String> {
    let most = cpus.saturating_mul(THREADS_A_CPU).clamp(FEW_THREADS, MAX_THREADS);
    match threads.map(NonZeroUsize::get) {
        Some(threads) if threads > most => Err(format!(
            "{name} is {threads}, but the process may use {cpus} CPUs, for which {most} threads are the most; leave \
             out --{} to have one for each CPU, or give at most {most}",
            name.replace('_', "-")
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_the_cpus_can_run_are_refused() {
        let check = |threads: usize, cpus| check_threads("batch_threads", NonZeroUsize::new(threads), cpus);
        assert_eq!(check(16, 1), Ok(()));
        assert_eq!(check(32, 8), Ok(()));
        assert!(check(33, 8).is_err());
        assert!(check(513, 1000).is_err(), "more than ggml takes");
        let error = check(513, 2).unwrap_err();
        assert!(error.contains("is 513") && error.contains("2 CPUs") && error.contains("at most 16"), "{error}");
        assert!(error.contains("--batch-threads"), "{error}");
        for threads in [100_000, u32::MAX as usize] {
            let options = LoadOptions { threads: NonZeroUsize::new(threads), ..LoadOptions::default() };
            assert!(options.check().unwrap_err().starts_with("threads is"));
            let options = LoadOptions { batch_threads: NonZeroUsize::new(threads), ..LoadOptions::default() };
            assert!(options.check().unwrap_err().starts_with("batch_threads is"));
        }
    }

    #[test]
    fn the_defaults_are_in_range() {
        assert_eq!(LoadOptions::default().check(), Ok(()));
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let options = LoadOptions { max_sequences: 257, ..LoadOptions::default() };
        assert_eq!(options.check().unwrap_err(), "max_sequences is 257 but must be from 1 to 256");
        let options = LoadOptions { kv_cells: 0, ..LoadOptions::default() };
        assert!(options.check().unwrap_err().starts_with("kv_cells is 0"));
    }

    #[test]
    fn a_batch_has_a_token_for_each_sequence() {
        let options = LoadOptions { batch_tokens: 16, max_sequences: 17, ..LoadOptions::default() };
        let error = options.check().unwrap_err();
        assert!(error.contains("batch_tokens is 16 but max_sequences is 17"), "{error}");
        assert!(error.contains("--batch-tokens to 17 or lower --max-sequences to 16"), "{error}");
        let options = LoadOptions { batch_tokens: 17, ..options };
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn kinds_of_cells_that_cannot_be_are_refused_with_the_fix() {
        let options =
            LoadOptions { kv_values: KvType::Q8_0, flash_attention: FlashAttention::Off, ..LoadOptions::default() };
        let error = options.check().unwrap_err();
        assert!(error.contains("kv_values is Q8_0") && error.contains("turn flash_attention on"), "{error}");
        // Keys need none.
        let keys = LoadOptions { kv_keys: KvType::Q8_0, kv_values: KvType::F16, ..options.clone() };
        assert_eq!(keys.check(), Ok(()));
        assert_eq!(LoadOptions { flash_attention: FlashAttention::Auto, ..options.clone() }.check(), Ok(()));
        assert_eq!(options.check_widths(80, 64), Ok(()));
        let error = options.check_widths(64, 80).unwrap_err();
        assert!(error.contains("multiple of 32, but this model's is 80; set kv_values to F16"), "{error}");
    }

    #[test]
    fn adapters_have_names_of_their_own() {
        let adapter = |name: &str| AdapterFile { name: name.into(), path: "a.gguf".into() };
        let options = |names: &[&str]| LoadOptions {
            adapters: names.iter().map(|name| adapter(name)).collect(),
            ..LoadOptions::default()
        };
        assert_eq!(options(&["one", "two"]).check(), Ok(()));
        assert!(options(&["one", "one"]).check().unwrap_err().contains("`one`"));
        assert!(options(&[""]).check().is_err());
    }

    #[test]
    fn a_sequence_fits_the_cells_and_the_training_context() {
        let options = LoadOptions { kv_cells: 300, ..LoadOptions::default() };
        assert_eq!(options.limits(10, 8192).sequence_tokens, 300);
        assert_eq!(options.limits(10, 100).sequence_tokens, 100);
        assert_eq!(options.limits(10, 0).sequence_tokens, 300);
        assert_eq!(options.limits(10, 0).batch_tokens, 300);
    }
}
