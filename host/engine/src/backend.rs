//! The seam between the scheduler and whatever computes logits.
//!
//! A [`Backend`] is a dumb machine: it runs one batch of tokens at a time and
//! keeps the state ("KV cells") of numbered sequences. Which tokens, in which
//! order and for whom is the scheduler's business. It is owned by the engine
//! thread; what other threads may ask of a model is a [`Tokenizer`] and a
//! [`ModelInfo`].

use thiserror::Error;

use crate::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An entry of the vocabulary.
pub type Token = u32;

/// The number of a sequence in the backend, from 0 to
/// [`BackendLimits::sequences`] - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqId(pub u32);

/// One token to be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEntry {
    /// The token.
    pub token: Token,
    /// Its position in the sequence, counted from 0. Positions of a sequence
    /// follow each other without gaps.
    pub position: u32,
    /// The sequence it belongs to.
    pub seq: SeqId,
    /// Whether the logits after it are wanted.
    pub logits: bool,
}

/// What a backend can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendLimits {
    /// KV cells, shared by all sequences: one a token.
    pub kv_cells: u32,
    /// The longest sequence, in tokens.
    pub sequence_tokens: u32,
    /// The most entries of one batch.
    pub batch_tokens: u32,
    /// The most sequences.
    pub sequences: u32,
    /// Entries of the vocabulary, which is the length of a row of logits.
    pub vocab: u32,
}

/// Why a batch was not decoded. The state is as before the call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The batch breaks a rule: it is empty or too long, or an entry names a
    /// token, position or sequence that cannot be.
    #[error("invalid batch: {0}")]
    InvalidBatch(String),
    /// No KV cells are left.
    #[error("no KV cells are left")]
    NoCells,
    /// The model or the backend cannot do this at all; the text says why.
    #[error("{0}")]
    Unsupported(String),
    /// The computation failed.
    #[error("{0}")]
    Failed(String),
}

/// Computes logits for batches of tokens.
pub trait Backend {
    /// What it can hold. Does not change.
    fn limits(&self) -> BackendLimits;

    /// Decodes a batch, which may mix sequences and prefill with decode.
    ///
    /// Entries of one sequence stand in the order of their positions.
    ///
    /// # Errors
    /// See [`DecodeError`]. On an error no sequence has changed, but for those of
    /// the batch that cannot step back: they may be empty now. Who asked cuts
    /// them to 0.
    fn decode(&mut self, batch: &[BatchEntry]) -> Result<(), DecodeError>;

    /// The logits after entry `index` of the last batch, one for each entry of
    /// the vocabulary. None where that entry did not ask for logits.
    fn logits(&self, index: usize) -> Option<&[f32]>;

    /// Drops what a sequence holds from position `len` on; 0 frees it wholly.
    ///
    /// Returns false, changing nothing, where the model cannot cut there (see
    /// [`ModelInfo::rewind`]). Cutting to 0 always succeeds.
    fn truncate(&mut self, seq: SeqId, len: u32) -> bool;

    /// What else it can do. Does not change.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// Has an empty sequence hold the first `len` tokens of another one, sharing
    /// their cells. False, changing nothing, where it cannot
    /// ([`Abilities::copy`]), or where the other one could not be cut there.
    fn copy(&mut self, _from: SeqId, _to: SeqId, _len: u32) -> bool {
        false
    }

    /// Takes `count` tokens at `at` out of a sequence that shares no cells from
    /// there on, and moves those behind them up. False, changing nothing, where
    /// it cannot ([`Abilities::shift`]).
    fn cut_out(&mut self, _seq: SeqId, _at: u32, _count: u32) -> bool {
        false
    }

    /// The state of a sequence, as bytes. None where it cannot
    /// ([`Abilities::snapshot`]).
    fn save(&mut self, _seq: SeqId) -> Option<Vec<u8>> {
        None
    }

    /// Puts a state of `len` tokens that [`Backend::save`] gave into an empty
    /// sequence. On false it is still empty.
    fn load(&mut self, _seq: SeqId, _state: &[u8], _len: u32) -> bool {
        false
    }

    /// The names of the LoRA adapters it was loaded with. Does not change.
    fn adapters(&self) -> &[String] {
        &[]
    }

    /// Has everything that is decoded from now on computed with an adapter, by
    /// its place in [`Backend::adapters`], or with the model alone. False,
    /// changing nothing, for an adapter that is not there.
    ///
    /// State that is held already stays what it was computed with: who wants the
    /// answers of one adapter decodes every token of a sequence with it, and
    /// shares no cells between sequences of different ones.
    fn use_adapter(&mut self, adapter: Option<usize>) -> bool {
        adapter.is_none()
    }

    /// Goes on with the vector of an input, of which `computed` tokens have been
    /// computed by the calls before; with 0 the input is begun, and one that was
    /// begun before is forgotten. The sequences are as before.
    ///
    /// Computes about `most` tokens, at least one, and what cannot be computed in
    /// parts ([`Pooling::Rank`]) as a whole. A backend may have parts of its own, of
    /// which it computes as many as hold `most`. Vectors have the length 1, but for
    /// those of [`Pooling::Rank`], which are the scores. Computed with the model
    /// alone, whatever adapter is in force.
    ///
    /// # Errors
    /// [`DecodeError::Unsupported`] where [`ModelInfo::embeddings`] says so, and
    /// for a pooling that the model has no head for;
    /// [`DecodeError::InvalidBatch`] for an input that is empty, longer than
    /// [`EmbeddingInfo::most`], or has a token outside of the vocabulary, and for a
    /// number of computed tokens other than what the call before said;
    /// [`DecodeError::Failed`], also where there is no memory for it.
    fn embed_part(
        &mut self,
        _input: &[Token],
        _pooling: Pooling,
        _computed: u32,
        _most: u32,
    ) -> Result<Embedding, DecodeError> {
        Err(DecodeError::Unsupported("this backend computes no embeddings".into()))
    }

    /// One vector for each input, see [`Backend::embed_part`].
    ///
    /// # Errors
    /// As [`Backend::embed_part`].
    fn embed(&mut self, inputs: &[Vec<Token>], pooling: Pooling) -> Result<Vec<Vec<f32>>, DecodeError> {
        let whole = |input: &Vec<Token>| {
            let mut computed = 0;
            loop {
                match self.embed_part(input, pooling, computed, u32::MAX)? {
                    Embedding::Whole(vector) => return Ok(vector),
                    Embedding::Part(reached) if reached > computed => computed = reached,
                    Embedding::Part(_) => return Err(DecodeError::Failed("an embedding makes no progress".into())),
                }
            }
        };
        inputs.iter().map(whole).collect()
    }
}

/// How far an embedding came.
#[derive(Debug, Clone, PartialEq)]
pub enum Embedding {
    /// So many tokens of the input are computed, in all.
    Part(u32),
    /// The input's vector, or what the head says of it.
    Whole(Vec<f32>),
}

/// How the vectors of an input's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The one of the first token ("CLS").
    First,
    /// The one of the last token.
    Last,
    /// What the model's classification head makes of them: one score, or one a
    /// class. The input is a question and a document, put together as the model
    /// was trained for.
    Rank,
}

/// What a model offers as embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingInfo {
    /// Numbers in a vector.
    pub width: u32,
    /// The longest input whose vector can be had, in tokens.
    pub max_tokens: u32,
    /// The pooling that the model file names; the mean where it names none, as
    /// those of plain language models do.
    pub pooling: Pooling,
    /// What the classification head offers ([`Pooling::Rank`]). None: the model has
    /// no such head.
    pub ranking: Option<RankingInfo>,
}

/// What a model's classification head offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankingInfo {
    /// Numbers that it gives: one score, or one a class.
    pub scores: u32,
    /// The longest input, in tokens: it is computed as a whole.
    pub max_tokens: u32,
}

impl EmbeddingInfo {
    /// The longest input for a pooling, in tokens. None: the model has no head for it.
    #[must_use]
    pub fn most(&self, pooling: Pooling) -> Option<u32> {
        match pooling {
            Pooling::Mean | Pooling::First | Pooling::Last => Some(self.max_tokens),
            Pooling::Rank => self.ranking.map(|ranking| ranking.max_tokens),
        }
    }
}

/// What a backend can do with sequences beside decoding them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Sequences can share their beginning, where it could also be cut.
    pub copy: bool,
    /// Tokens can be taken out of the middle.
    pub shift: bool,
    /// A state can leave and come back.
    pub snapshot: bool,
}

/// How a model keeps the past of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// One KV cell a token; can be cut anywhere.
    Attention,
    /// A running state; can only be dropped whole.
    Recurrent,
    /// Layers of both kinds.
    Hybrid,
}

/// Where the state of a sequence can be cut ([`Backend::truncate`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewind {
    /// Anywhere.
    Anywhere,
    /// Where the cells are still there that the window reaches back to from the
    /// cut. Cells that no window reaches any more are used again when others are
    /// short, so that every cut of a sequence longer than the window may be
    /// refused, and those of a shorter one are not.
    InsideWindow,
    /// Nowhere: the state can be dropped as a whole only.
    Nowhere,
}

/// What is known of a model without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Architecture named in the model file.
    pub arch: String,
    /// A description for people, for example `llama 135M Q4_1`.
    pub description: String,
    /// Entries of the vocabulary.
    pub n_vocab: u32,
    /// Width of the embeddings.
    pub n_embd: u32,
    /// The context the model was trained for, in tokens.
    pub ctx_train: u32,
    /// How the past is kept.
    pub state: StateKind,
    /// How many tokens back some layers look (sliding-window attention), the
    /// present one included. None: all of them see everything.
    pub window: Option<u32>,
    /// The names of the LoRA adapters that were loaded with it.
    pub adapters: Vec<String>,
    /// What it offers as embeddings. None: nothing.
    pub embeddings: Option<EmbeddingInfo>,
    /// Jinja source of the chat template in the model file.
    pub chat_template: Option<String>,
    /// The model file's scalar metadata, as text.
    pub metadata: BTreeMap<String, String>,
    /// Bytes of all tensors.
    pub tensor_bytes: u64,
    /// Number of parameters.
    pub parameters: u64,
}

impl ModelInfo {
    /// Where the state of a sequence can be cut.
    #[must_use]
    pub fn rewind(&self) -> Rewind {
        match (self.state, self.window) {
            (StateKind::Attention, None) => Rewind::Anywhere,
            (StateKind::Attention, Some(_)) => Rewind::InsideWindow,
            (StateKind::Recurrent | StateKind::Hybrid, _) => Rewind::Nowhere,
        }
    }
}

/// A model ready to be served: the parts that `Engine::start` takes.
pub struct LoadedModel {
    /// What is known of it.
    pub info: ModelInfo,
    /// Its vocabulary.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// Makes the backend, on the engine thread, which is to own it.
    #[allow(clippy::type_complexity, reason = "a boxed constructor has no simpler spelling")]
    pub backend: Box<dyn FnOnce() -> Result<Box<dyn Backend>, String> + Send>,
    /// A smaller model of the same vocabulary that guesses what this one will say.
    pub draft: Option<Box<LoadedModel>>,
}
