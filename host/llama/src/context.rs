//! A context of llama.cpp and the batch it is fed with, owned.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;
use nala_engine::BatchEntry;

use crate::log;
use crate::model;
use crate::options::{FlashAttention, LoadOptions};
use crate::threads::Threads;

/// Making a context writes to the model, so no two are made at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

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
    /// Makes a context. The text of an error is for people.
    pub(crate) fn new(model: Arc<LlamaModel>, options: &LoadOptions) -> Result<Self, String> {
        let (threads, batch_threads) = options.thread_counts();
        // SAFETY: without arguments.
        let mut params = unsafe { sys::llama_context_default_params() };
        // llama.cpp aborts the process where a context has room for fewer tokens
        // than sequences; the limits that callers see stay as asked for.
        params.n_ctx = options.kv_cells.max(options.max_sequences);
        params.n_batch = options.batch_tokens.max(options.max_sequences);
        params.n_ubatch = options.micro_batch_tokens;
        params.n_seq_max = options.max_sequences;
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
        // All sequences share the cells, and sliding windows keep theirs, so
        // that a sequence can be cut anywhere.
        params.kv_unified = true;
        params.swa_full = true;

        let (context, errors) = {
            let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the model is alive and stays so, since the context owns a
            // part of it; the parameters hold no pointers; the lock keeps other
            // contexts of this process from being made meanwhile.
            log::capture(|| unsafe { sys::llama_init_from_model(model::raw(&model).as_ptr(), params) })
        };
        let raw = NonNull::new(context).ok_or_else(|| {
            format!(
                "llama.cpp cannot make a context of {} KV cells ({errors}); lower the number of KV cells or of sequences",
                options.kv_cells
            )
        })?;
        let mut this = Self { raw, _threads: None, _model: model };
        this._threads = Threads::attach(&this, threads, batch_threads);
        Ok(this)
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
        let (code, errors) = log::capture(|| unsafe { sys::llama_decode(self.raw.as_ptr(), batch.raw) });
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

    /// The state of a sequence. None: llama.cpp failed to write it.
    pub(crate) fn state(&mut self, seq: i32) -> Option<Vec<u8>> {
        // SAFETY: the context is alive; the size is what `get_data` will write.
        let size = unsafe { sys::llama_state_seq_get_size(self.raw.as_ptr(), seq) };
        let mut state = vec![0; size];
        // SAFETY: the buffer has `size` bytes, which llama.cpp does not exceed.
        let (written, _) =
            log::capture(|| unsafe { sys::llama_state_seq_get_data(self.raw.as_ptr(), state.as_mut_ptr(), size, seq) });
        (written == size && size > 0).then_some(state)
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

/// An owned `llama_batch`, allocated once.
pub(crate) struct Batch {
    raw: sys::llama_batch,
    capacity: usize,
}

impl Batch {
    /// Room for `capacity` entries of one sequence each. None: out of memory.
    pub(crate) fn new(capacity: u32) -> Option<Self> {
        let tokens = i32::try_from(capacity).ok()?;
        // SAFETY: plain numbers; the arrays belong to us until `drop`.
        let raw = unsafe { sys::llama_batch_init(tokens, 0, 1) };
        let this = Self { raw, capacity: capacity as usize };
        let complete = !raw.token.is_null()
            && !raw.pos.is_null()
            && !raw.n_seq_id.is_null()
            && !raw.seq_id.is_null()
            && !raw.logits.is_null();
        complete.then_some(this)
    }

    /// The arrays, valid while `self` lives and is not filled again.
    pub(crate) fn raw(&self) -> sys::llama_batch {
        self.raw
    }

    /// Puts entries in place of those before. False, changing nothing, if they
    /// do not fit.
    pub(crate) fn fill(&mut self, entries: &[BatchEntry]) -> bool {
        if entries.len() > self.capacity {
            return false;
        }
        for (index, entry) in entries.iter().enumerate() {
            // SAFETY: `index` is below the capacity that each of the arrays was
            // allocated for; `seq_id[index]` points to room for one number.
            unsafe {
                self.raw.token.add(index).write(entry.token.cast_signed());
                self.raw.pos.add(index).write(entry.position.cast_signed());
                self.raw.n_seq_id.add(index).write(1);
                (*self.raw.seq_id.add(index)).write(entry.seq.0.cast_signed());
                self.raw.logits.add(index).write(i8::from(entry.logits));
            }
        }
        self.raw.n_tokens = i32::try_from(entries.len()).unwrap_or(0);
        true
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: made by `llama_batch_init`, freed once.
        unsafe { sys::llama_batch_free(self.raw) };
    }
}
