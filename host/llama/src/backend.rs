//! The [`Backend`] over a llama.cpp context.
//!
//! llama.cpp guards some of its rules with assertions that abort the process
//! and others not at all, so each batch is checked here in full first.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use nala_engine::{
    Abilities, Backend, BackendLimits, BatchEntry, DecodeError, Embedding, ModelInfo, Pooling, SeqId, StateKind, Token,
};

use crate::adapter::Adapter;
use crate::batch::Batch;
use crate::context::{Context, has_spare_sequence};
use crate::embed::Embeddings;
use crate::holdings::Holdings;
use crate::model;
use crate::options::LoadOptions;
use crate::threads::Cpus;

/// `llama_decode`'s answer where no KV cells are left.
const NO_CELLS: i32 = 1;

/// A model's context, driven by the engine.
pub(crate) struct LlamaCpp {
    context: Context,
    batch: Batch,
    limits: BackendLimits,
    state: StateKind,
    /// How far back layers with a sliding window look.
    window: Option<u32>,
    holdings: Holdings,
    adapters: Vec<Adapter>,
    adapter_names: Vec<String>,
    /// The adapter in force.
    adapter: Option<usize>,
    embeddings: Embeddings,
    /// The lengths after the batch at hand; kept to save the allocation.
    next: Vec<u32>,
    /// Which entries of the last batch have logits; empty after a failure.
    outputs: Vec<bool>,
    /// Whether keys still wait to be moved, which the next decode does.
    shifting: bool,
    /// A sequence of the context that callers do not see.
    spare: Option<u32>,
}

/// What a saved state begins with: a mark, and the length of what follows, so
/// that llama.cpp is never given a state that is not whole.
const MARK: &[u8; 8] = b"nala-kv1";

impl LlamaCpp {
    /// Makes the context. The text of an error is for people.
    pub(crate) fn new(
        model: Arc<LlamaModel>,
        options: &LoadOptions,
        cpus: Cpus,
        info: &ModelInfo,
        adapters: Vec<Adapter>,
    ) -> Result<Self, String> {
        let vocab = u32::try_from(model.vocab().n_tokens()).unwrap_or(0);
        let limits = options.limits(vocab, model::context_trained(&model));
        let embeddings = Embeddings::new(Arc::clone(&model), options, cpus, info.embeddings);
        let spare = has_spare_sequence(&model, options).then_some(options.max_sequences);
        let context = Context::new(model, options, &cpus)?;
        let batch = Batch::new(limits.batch_tokens).ok_or("not enough memory for a batch; lower batch_tokens")?;
        let sequences = limits.sequences as usize;
        Ok(Self {
            context,
            batch,
            limits,
            state: info.state,
            window: info.window,
            adapters,
            adapter_names: info.adapters.clone(),
            adapter: None,
            embeddings,
            holdings: Holdings::new(limits.kv_cells, limits.sequences),
            next: vec![0; sequences],
            outputs: Vec::with_capacity(limits.batch_tokens as usize),
            shifting: false,
            spare,
        })
    }

    /// Checks a batch against everything llama.cpp demands and leaves the new
    /// lengths in `self.next`.
    fn check(&mut self, batch: &[BatchEntry]) -> Result<(), DecodeError> {
        let limits = self.limits;
        if batch.is_empty() {
            return Err(invalid("it is empty"));
        }
        if batch.len() > limits.batch_tokens as usize {
            return Err(invalid(format!("{} entries, but {} is the most", batch.len(), limits.batch_tokens)));
        }
        for (next, length) in self.next.iter_mut().zip(self.holdings.lengths()) {
            *next = length;
        }
        for (index, entry) in batch.iter().enumerate() {
            if entry.token >= limits.vocab {
                return Err(invalid(format!(
                    "entry {index} is token {} of a vocabulary of {}",
                    entry.token, limits.vocab
                )));
            }
            let Some(length) = self.next.get_mut(entry.seq.0 as usize) else {
                return Err(invalid(format!(
                    "entry {index} is of sequence {}, but there are {}",
                    entry.seq.0, limits.sequences
                )));
            };
            if entry.position != *length {
                return Err(invalid(format!(
                    "entry {index} is at position {} of sequence {}, where {} comes next",
                    entry.position, entry.seq.0, length
                )));
            }
            if *length >= limits.sequence_tokens {
                return Err(invalid(format!(
                    "entry {index} is at position {length}, but a sequence holds {}",
                    limits.sequence_tokens
                )));
            }
            *length += 1;
        }
        // Nobody drops what it holds in a batch, so all entries are additions.
        if self.state != StateKind::Recurrent && batch.len() > self.holdings.free() as usize {
            return Err(DecodeError::NoCells);
        }
        Ok(())
    }

    /// Cuts every sequence back to what it held before the batch at hand.
    fn undo(&mut self) {
        let before: Vec<u32> = self.holdings.lengths().collect();
        for ((seq, before), &after) in (0..).zip(before).zip(&self.next) {
            if before != after
                && !(self.reaches_back(seq, before) && self.context.remove(u32::cast_signed(seq), before.cast_signed()))
            {
                // A recurrent state cannot go back, and a window may have left
                // cells behind. It is dropped, so that the next batch of this
                // sequence is refused instead of wrong.
                self.context.remove(seq.cast_signed(), 0);
                self.holdings.cut(seq, 0);
            }
        }
    }

    /// Has keys move that still wait for it: they would be saved for the wrong
    /// places. llama.cpp moves them before it decodes, whatever that is, and
    /// offers no other way; so a token is decoded that is dropped again. False:
    /// there is no sequence for it.
    fn settle(&mut self) -> bool {
        if !self.shifting {
            return true;
        }
        let empty = || (0..).zip(self.holdings.lengths()).find(|&(_, length)| length == 0).map(|(seq, _)| seq);
        let Some(seq) = self.spare.or_else(empty) else { return false };
        let token = BatchEntry { token: 0, position: 0, seq: SeqId(seq), logits: false };
        self.outputs.clear();
        // Where there is no cell for it, the keys have moved all the same.
        let moved =
            self.batch.fill(&[token]) && matches!(self.context.decode(&self.batch), Ok(()) | Err((NO_CELLS, _)));
        self.context.remove(seq.cast_signed(), 0);
        self.shifting = !moved;
        moved
    }

    /// The same for a sequence out of which `count` tokens at `at` are taken: what
    /// is behind them moves up, and the window with it.
    fn reaches_back_without(&self, seq: u32, at: u32, count: u32, length: u32) -> bool {
        let Some(window) = self.window else { return true };
        let first = u32::try_from(self.context.first_position(seq.cast_signed())).unwrap_or(0);
        let first = if first <= at { first } else { at.max(first.saturating_sub(count)) };
        first <= (length - count + 1).saturating_sub(window)
    }

    /// Whether all is there that the token behind the first `len` of a sequence
    /// looks at. Layers with a sliding window use cells again that no window
    /// reaches any more (`llama_kv_cache::find_slot`); the window that counts here
    /// is the one at the cut.
    fn reaches_back(&self, seq: u32, len: u32) -> bool {
        let Some(window) = self.window.filter(|_| len > 0) else { return true };
        self.context.first_position(seq.cast_signed()) <= (len + 1).saturating_sub(window).cast_signed()
    }
}

impl Backend for LlamaCpp {
    fn limits(&self) -> BackendLimits {
        self.limits
    }

    fn decode(&mut self, batch: &[BatchEntry]) -> Result<(), DecodeError> {
        self.check(batch)?;
        if !self.batch.fill(batch) {
            return Err(invalid("it is too long"));
        }
        self.outputs.clear();
        match self.context.decode(&self.batch) {
            Ok(()) => {
                self.outputs.extend(batch.iter().map(|entry| entry.logits));
                for (seq, &length) in (0..).zip(&self.next) {
                    self.holdings.grow(seq, length);
                }
                self.shifting = false;
                Ok(())
            }
            Err((code, errors)) => {
                self.undo();
                Err(match code {
                    NO_CELLS => DecodeError::NoCells,
                    -1 => invalid(errors),
                    _ => DecodeError::Failed(format!("llama_decode returned {code}: {errors}")),
                })
            }
        }
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        if !self.outputs.get(index).copied().unwrap_or(false) {
            return None;
        }
        self.context.logits(i32::try_from(index).ok()?, self.limits.vocab as usize)
    }

    fn truncate(&mut self, seq: SeqId, len: u32) -> bool {
        let Some(length) = self.holdings.length(seq.0) else {
            // Nothing to drop in a sequence that cannot be.
            return len == 0;
        };
        if len >= length {
            return true;
        }
        if !self.reaches_back(seq.0, len) {
            return false;
        }
        let removed = self.context.remove(seq.0.cast_signed(), len.cast_signed());
        if removed {
            self.holdings.cut(seq.0, len);
        }
        removed
    }

    fn abilities(&self) -> Abilities {
        let attention = self.state == StateKind::Attention;
        Abilities { copy: attention, shift: attention && self.context.can_shift(), snapshot: true }
    }

    fn copy(&mut self, from: SeqId, to: SeqId, len: u32) -> bool {
        let held = self.holdings.length(from.0).unwrap_or(0);
        if self.state != StateKind::Attention || self.holdings.length(to.0) != Some(0) || len > held || from == to {
            return false;
        }
        if !self.reaches_back(from.0, len) {
            return false;
        }
        self.context.share(from.0.cast_signed(), to.0.cast_signed(), len.cast_signed());
        self.holdings.share(from.0, to.0, len);
        true
    }

    fn cut_out(&mut self, seq: SeqId, at: u32, count: u32) -> bool {
        let length = self.holdings.length(seq.0).unwrap_or(0);
        let Some(end) = at.checked_add(count).filter(|&end| end <= length) else { return false };
        if !self.abilities().shift || !self.reaches_back_without(seq.0, at, count, length) {
            return false;
        }
        if !self.context.cut_out(seq.0.cast_signed(), at.cast_signed(), end.cast_signed()) {
            return false;
        }
        self.holdings.cut_out(seq.0, at, count);
        self.shifting = true;
        true
    }

    fn save(&mut self, seq: SeqId) -> Option<Vec<u8>> {
        if self.holdings.length(seq.0).is_none_or(|length| length == 0) || !self.settle() {
            return None;
        }
        let size = self.context.state_size(seq.0.cast_signed());
        // Written where it stays: others wait for as long as this takes, and most of it
        // is the first touch of memory.
        let mut bytes = vec![0; MARK.len() + 8 + size];
        let (mark, rest) = bytes.split_at_mut(MARK.len());
        let (length, payload) = rest.split_at_mut(8);
        mark.copy_from_slice(MARK);
        length.copy_from_slice(&(size as u64).to_le_bytes());
        (size > 0 && self.context.write_state(seq.0.cast_signed(), payload)).then_some(bytes)
    }

    fn load(&mut self, seq: SeqId, state: &[u8], len: u32) -> bool {
        let payload = state.strip_prefix(MARK).and_then(|rest| {
            let (size, payload) = rest.split_first_chunk::<8>()?;
            (u64::from_le_bytes(*size) == payload.len() as u64).then_some(payload)
        });
        let empty = self.holdings.length(seq.0) == Some(0) && len <= self.holdings.free();
        let Some(payload) = payload.filter(|_| empty) else { return false };
        if !self.context.set_state(seq.0.cast_signed(), payload) {
            self.context.remove(seq.0.cast_signed(), 0);
            return false;
        }
        self.holdings.grow(seq.0, len);
        true
    }

    fn adapters(&self) -> &[String] {
        &self.adapter_names
    }

    fn use_adapter(&mut self, adapter: Option<usize>) -> bool {
        if adapter == self.adapter {
            return true;
        }
        let chosen = match adapter {
            None => None,
            Some(index) => match self.adapters.get(index) {
                None => return false,
                chosen => chosen,
            },
        };
        if !self.context.set_adapter(chosen) {
            return false;
        }
        self.adapter = adapter;
        true
    }

    fn embed_part(
        &mut self,
        input: &[Token],
        pooling: Pooling,
        computed: u32,
        most: u32,
    ) -> Result<Embedding, DecodeError> {
        self.embeddings.embed_part(input, pooling, computed, most, self.limits.vocab)
    }
}

fn invalid(reason: impl Into<String>) -> DecodeError {
    DecodeError::InvalidBatch(reason.into())
}
