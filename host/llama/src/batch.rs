//! The batch that a context is fed with.

use llama_cpp_sys_2 as sys;
use nala_engine::BatchEntry;

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
