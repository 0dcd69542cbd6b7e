//! A context of llama.cpp, owned.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;

use crate::adapter::Adapter;
use crate::batch::Batch;
use crate::log;
use crate::model;
use crate::options::{FlashAttention, KvType, LoadOptions, MAX_SEQUENCES};
use crate::threads::{Cpus, Threads};

/// Making a context writes to the model, so no two are made at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What a context for vectors gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// One for each token.
    OfTokens,
    /// What the classification head makes of the whole text.
    OfTheHead,
}

/// Whether the context has a sequence more than callers see, for what has to be
/// decoded without being asked for. Where sequences cost memory it has none.
pub(crate) fn has_spare_sequence(model: &LlamaModel, options: &LoadOptions) -> bool {
    options.max_sequences < MAX_SEQUENCES && !model.is_recurrent() && !model.is_hybrid()
}

/// What all contexts of a model have in common.
fn params(options: &LoadOptions) -> sys::llama_context_params {
    let (threads, batch_threads) = options.thread_counts();
    // SAFETY: without arguments.
    let mut params = unsafe { sys::llama_context_default_params() };
    // Any entry of a batch may ask for logits.
    params.n_outputs_max = 0;
    params.n_outputs_max_per_seq = 0;
    params.n_threads = i32::try_from(threads).unwrap_or(1);
    params.n_threads_batch = i32::try_from(batch_threads).unwrap_or(1);
    params.flash_attn_type = match options.flash_attention {
        FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
        FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
        FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
    };
    params
}

fn ggml_type(kind: KvType) -> sys::ggml_type {
    match kind {
        KvType::F16 => sys::GGML_TYPE_F16,
        KvType::Q8_0 => sys::GGML_TYPE_Q8_0,
        KvType::Q4_0 => sys::GGML_TYPE_Q4_0,
    }
}

/// A context: the KV cells, the compute buffers and the threads of one model.
///
/// Neither Send nor Sync: it lives on the thread that made it.
pub(crate) struct Context {
    raw: NonNull<sys::llama_context>,
    // Both are used by `raw` and therefore dropped after it (see `drop`).
    _threads: Option<Threads>,
    _model: Arc<LlamaModel>,
}

impl Context {
    /// Makes the context that sequences are decoded in. The text of an error is
    /// for people.
    pub(crate) fn new(model: Arc<LlamaModel>, options: &LoadOptions, cpus: &Cpus) -> Result<Self, String> {
        let mut params = params(options);
        let sequences = options.max_sequences + u32::from(has_spare_sequence(&model, options));
        // llama.cpp aborts the process where a context has room for fewer tokens
        // than sequences; the limits that callers see stay as asked for.
        params.n_ctx = options.kv_cells.max(sequences);
        params.n_batch = options.batch_tokens.max(sequences);
        params.n_ubatch = options.micro_batch_tokens;
        params.n_seq_max = sequences;
        params.type_k = ggml_type(options.kv_keys);
        params.type_v = ggml_type(options.kv_values);
        // All sequences share the cells. Layers with a sliding window have as
        // many of them as the others. Fewer would do for the windows alone, but
        // shared cells never leave a window's cache, so that it could be full
        // while cells are counted as free; positions could not be moved; and
        // with many sequences there is little to save, since each needs a window
        // of its own.
        params.kv_unified = true;
        params.swa_full = true;
        let mut this = Self::with(model, params).map_err(|errors| {
            format!(
                "llama.cpp cannot make a context of {} KV cells ({errors}); lower the number of KV cells or of sequences",
                options.kv_cells
            )
        })?;
        this._threads = Threads::attach(&this, options.thread_counts(), cpus);
        Ok(this)
    }

    /// Makes a context for one text at a time, of up to `cells` tokens, whose
    /// tokens' vectors are wanted, or, for ranking, what the model's head makes of
    /// them. Up to `batch` tokens are decoded at once.
    pub(crate) fn for_vectors(
        model: Arc<LlamaModel>,
        options: &LoadOptions,
        cpus: &Cpus,
        cells: u32,
        batch: u32,
        of: Vectors,
    ) -> Result<Self, String> {
        let mut params = params(options);
        params.n_ctx = cells;
        params.n_batch = batch;
        params.n_ubatch = batch;
        params.n_seq_max = 1;
        params.embeddings = true;
        params.pooling_type = match of {
            Vectors::OfTokens => sys::LLAMA_POOLING_TYPE_NONE,
            Vectors::OfTheHead => sys::LLAMA_POOLING_TYPE_RANK,
        };
        params.kv_unified = true;
        // Nothing is ever cut or moved.
        params.swa_full = false;
        let mut this = Self::with(model, params).map_err(|errors| {
            format!(
                "llama.cpp cannot make a context for embeddings of {cells} tokens ({errors}); lower embedding_tokens"
            )
        })?;
        this._threads = Threads::attach(&this, options.thread_counts(), cpus);
        Ok(this)
    }

    fn with(model: Arc<LlamaModel>, params: sys::llama_context_params) -> Result<Self, String> {
        let (context, errors) = {
            let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the model is alive and stays so, since the context owns a
            // part of it; the parameters hold no pointers; the lock keeps other
            // contexts of this process from being made meanwhile.
            log::capture(|| unsafe { sys::llama_init_from_model(model::raw(&model).as_ptr(), params) })
        };
        let raw = NonNull::new(context).ok_or(errors)?;
        Ok(Self { raw, _threads: None, _model: model })
    }

    /// The pointer, valid while `self` lives.
    pub(crate) fn raw(&self) -> NonNull<sys::llama_context> {
        self.raw
    }

    /// Decodes a batch. `Err` carries llama.cpp's code and its error lines.
    ///
    /// The caller has checked the entries: llama.cpp aborts the process where
    /// there are more than the context takes.
    pub(crate) fn decode(&mut self, batch: &Batch) -> Result<(), (i32, String)> {
        // SAFETY: the context is alive and used by this thread alone; the batch
        // describes `n_tokens` initialised entries (see `Batch::fill`), which
        // llama.cpp copies before it returns.
        let (code, errors) = log::capture(|| unsafe { sys::llama_decode(self.raw.as_ptr(), batch.raw()) });
        if code != 0 {
            return Err((code, errors));
        }
        // Puts the rows of logits into the order of the entries now, so that
        // `logits` moves nothing that a caller may still be looking at.
        // SAFETY: the context is alive.
        unsafe { sys::llama_get_logits(self.raw.as_ptr()) };
        Ok(())
    }

    /// The logits after entry `index` of the last batch, which asked for them.
    pub(crate) fn logits(&self, index: i32, vocab: usize) -> Option<&[f32]> {
        // SAFETY: the context is alive; an index without logits gives null.
        let row = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), index) };
        let row = NonNull::new(row)?;
        // SAFETY: a row has as many floats as the vocabulary has entries, and
        // stays in place until the next decode, which needs `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(row.as_ptr(), vocab) })
    }

    /// The vector after entry `index` of the last batch, in a context for vectors
    /// of tokens.
    pub(crate) fn vector(&self, index: i32, width: usize) -> Option<&[f32]> {
        // SAFETY: the context is alive; an index without a vector gives null.
        let row = unsafe { sys::llama_get_embeddings_ith(self.raw.as_ptr(), index) };
        let row = NonNull::new(row)?;
        // SAFETY: a row has as many floats as the model's output is wide, which
        // callers pass, and stays in place until the next decode, which needs
        // `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(row.as_ptr(), width) })
    }

    /// What the head made of the text in sequence 0, in a context for vectors of
    /// the head.
    pub(crate) fn scores(&self, count: usize) -> Option<&[f32]> {
        // SAFETY: the context is alive; a sequence without a vector gives null.
        let row = unsafe { sys::llama_get_embeddings_seq(self.raw.as_ptr(), 0) };
        let row = NonNull::new(row)?;
        // SAFETY: there are as many floats as the head has outputs, which callers
        // pass, and they stay in place until the next decode, which needs
        // `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(row.as_ptr(), count) })
    }

    /// Forgets all sequences.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the context is alive and has a memory, since it decodes.
        unsafe { sys::llama_memory_clear(sys::llama_get_memory(self.raw.as_ptr()), false) };
    }

    /// The first position that a sequence still holds in every layer; -1: none.
    pub(crate) fn first_position(&self, seq: i32) -> i32 {
        // SAFETY: the context is alive and has a memory, since it decodes;
        // callers pass sequences below the context's maximum.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            sys::llama_memory_seq_pos_min(memory, seq)
        }
    }

    /// Has what is decoded from now on computed with an adapter, or without one.
    /// False: llama.cpp refused, which it does for none that was loaded for the
    /// context's model.
    pub(crate) fn set_adapter(&mut self, adapter: Option<&Adapter>) -> bool {
        let mut all: Vec<*mut sys::llama_adapter_lora> = adapter.map(Adapter::raw).into_iter().collect();
        let mut scales = vec![1.0_f32; all.len()];
        // SAFETY: the context is alive; the arrays have the given length and are
        // copied; an adapter lives as long as its model, a part of which the
        // context owns, and callers pass those of this model only.
        let code = unsafe {
            sys::llama_set_adapters_lora(self.raw.as_ptr(), all.as_mut_ptr(), all.len(), scales.as_mut_ptr())
        };
        code == 0
    }

    /// Drops what a sequence holds from position `from` on. False: the model
    /// cannot cut there.
    pub(crate) fn remove(&mut self, seq: i32, from: i32) -> bool {
        // SAFETY: the context is alive and has a memory, since it decodes;
        // callers pass sequences below the context's maximum.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            sys::llama_memory_seq_rm(memory, seq, from, -1)
        }
    }

    /// Has sequence `to` hold the positions of `from` below `len` as well.
    pub(crate) fn share(&mut self, from: i32, to: i32, len: i32) {
        // SAFETY: the context is alive and has a memory, since it decodes;
        // callers pass sequences below the context's maximum. All sequences are
        // of one stream (`kv_unified`), so that a part can be shared.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            sys::llama_memory_seq_cp(memory, from, to, 0, len);
        }
    }

    /// Whether positions can be moved, see [`Context::cut_out`].
    pub(crate) fn can_shift(&self) -> bool {
        // SAFETY: the context is alive.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            sys::llama_memory_can_shift(memory)
        }
    }

    /// Drops the positions from `at` to `end` of a sequence and moves those
    /// behind them up; the keys are rotated to their new places with the next
    /// decode. False: the model cannot cut there.
    ///
    /// The caller has seen to it that [`Context::can_shift`] holds, and that the
    /// cells that move belong to this sequence alone.
    pub(crate) fn cut_out(&mut self, seq: i32, at: i32, end: i32) -> bool {
        // SAFETY: the context is alive; callers pass sequences below the
        // context's maximum; a memory that can shift has one position a token,
        // which is what llama.cpp asserts.
        unsafe {
            let memory = sys::llama_get_memory(self.raw.as_ptr());
            if !sys::llama_memory_seq_rm(memory, seq, at, end) {
                return false;
            }
            sys::llama_memory_seq_add(memory, seq, end, -1, at - end);
        }
        true
    }

    /// The size of a sequence's state in bytes, as it is now.
    pub(crate) fn state_size(&mut self, seq: i32) -> usize {
        // SAFETY: the context is alive.
        unsafe { sys::llama_state_seq_get_size(self.raw.as_ptr(), seq) }
    }

    /// Writes the state of a sequence into all of `state`, which is as long as
    /// [`Context::state_size`] says. False: llama.cpp failed to write it.
    pub(crate) fn write_state(&mut self, seq: i32, state: &mut [u8]) -> bool {
        // SAFETY: the context is alive; llama.cpp writes no more than the length
        // that it is told.
        let (written, _) = log::capture(|| unsafe {
            sys::llama_state_seq_get_data(self.raw.as_ptr(), state.as_mut_ptr(), state.len(), seq)
        });
        written == state.len()
    }

    /// Puts a state into a sequence. False: there is no room, or it is none.
    ///
    /// The state must be whole and one of this context's: llama.cpp reads the
    /// counts in it as they are.
    pub(crate) fn set_state(&mut self, seq: i32, state: &[u8]) -> bool {
        // SAFETY: the context is alive; the buffer is as long as said, and
        // llama.cpp reads no further.
        let (read, _) = log::capture(|| unsafe {
            sys::llama_state_seq_set_data(self.raw.as_ptr(), state.as_ptr(), state.len(), seq)
        });
        read == state.len()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once; the threadpools and the model are
        // dropped after it.
        unsafe { sys::llama_free(self.raw.as_ptr()) };
    }
}
