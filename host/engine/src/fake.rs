//! A deterministic backend without a model, for scripting edges in tests.
//!
//! Its vocabulary is the 256 bytes and a few control tokens. What it "predicts"
//! is a function of the sequence so far, by default the next letter of the
//! alphabet, so a test can say what must come out. It keeps the rules of
//! [`Backend`] as strictly as the real one and records every batch.

#![allow(clippy::indexing_slicing, reason = "a test double, in a module only so that several crates can use it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{
    Abilities, Backend, BackendLimits, BatchEntry, DecodeError, Embedding, EmbeddingInfo, LoadedModel, ModelInfo,
    Pooling, RankingInfo, SeqId, StateKind, Token,
};
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Begins a sequence; written `<bos>`.
pub const BOS: Token = 256;
/// Ends a turn; written `<end>`.
pub const END: Token = 257;
/// Some control token; written `<user>`.
pub const USER: Token = 258;
const VOCAB: u32 = 259;
const SPECIAL: [(&str, Token); 3] = [("<bos>", BOS), ("<end>", END), ("<user>", USER)];

/// Says what follows a sequence.
pub type Script = Arc<dyn Fn(&[Token]) -> Token + Send + Sync>;

/// Called before each batch is decoded; an error is what the batch comes to.
pub type BeforeDecode = Arc<dyn Fn(&[BatchEntry]) -> Result<(), DecodeError> + Send + Sync>;

/// Called before each part of an input is computed for an embedding.
pub type BeforeEmbedding = Arc<dyn Fn(&[Token]) + Send + Sync>;

/// See [`Fake::before_copy`].
pub type BeforeCopy = Arc<dyn Fn(usize) + Send + Sync>;

/// A fake model to be made.
#[derive(Clone)]
pub struct Fake {
    /// What the backend can hold. The vocabulary's size is fixed.
    pub limits: BackendLimits,
    /// What follows a sequence.
    pub script: Script,
    /// Hook for delays and failures.
    pub before_decode: BeforeDecode,
    /// Hook for delays of embeddings.
    pub before_embedding: BeforeEmbedding,
    /// Hook for delays of states that are copied out or in; told how many tokens they are of.
    pub before_copy: BeforeCopy,
    /// What else the backend can do.
    pub abilities: Abilities,
    /// A sliding window, in tokens. What it has left behind is forgotten at once,
    /// so that a sequence longer than it cannot be cut.
    pub window: Option<u32>,
    /// Names of adapters. The one with number `n` has every text token that the
    /// script predicts be the one `n + 1` behind it.
    pub adapters: Vec<String>,
    /// What it offers as embeddings.
    pub embeddings: Option<EmbeddingInfo>,
    /// Every part of an input that was computed for an embedding.
    pub embedded: Arc<Mutex<Vec<Vec<Token>>>>,
    /// Every batch that was decoded.
    pub batches: Arc<Mutex<Vec<Vec<BatchEntry>>>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            limits: BackendLimits {
                kv_cells: 4096,
                sequence_tokens: 1024,
                batch_tokens: 64,
                sequences: 32,
                vocab: VOCAB,
            },
            script: Arc::new(alphabet),
            before_decode: Arc::new(|_| Ok(())),
            before_embedding: Arc::new(|_| {}),
            before_copy: Arc::new(|_| {}),
            abilities: Abilities { copy: true, shift: true, snapshot: true },
            window: None,
            adapters: Vec::new(),
            embeddings: Some(EmbeddingInfo {
                width: 8,
                max_tokens: 64,
                pooling: Pooling::Mean,
                ranking: Some(RankingInfo { scores: 1, max_tokens: 60 }),
            }),
            embedded: Arc::default(),
            batches: Arc::default(),
        }
    }
}

/// After a letter the next one, after z and everything else an a.
fn alphabet(tokens: &[Token]) -> Token {
    match tokens.last() {
        Some(&t) if (u32::from(b'a')..u32::from(b'z')).contains(&t) => t + 1,
        _ => u32::from(b'a'),
    }
}

impl Fake {
    /// A fake that says `text` after any prompt and then ends its turn. The
    /// prompt must not end with a beginning of the text.
    #[must_use]
    pub fn saying(text: &str) -> Self {
        let bytes: Vec<Token> = text.bytes().map(Token::from).collect();
        let script: Script = Arc::new(move |tokens| {
            let said = (0..=bytes.len().min(tokens.len())).rev().find(|&n| tokens.ends_with(&bytes[..n]));
            said.and_then(|n| bytes.get(n)).copied().unwrap_or(END)
        });
        Self { script, ..Self::default() }
    }

    /// The model, as an engine takes it.
    #[must_use]
    pub fn load(&self) -> LoadedModel {
        let fake = self.clone();
        LoadedModel {
            info: ModelInfo {
                arch: "fake".into(),
                description: "fake, bytes".into(),
                n_vocab: VOCAB,
                n_embd: self.embeddings.map_or(1, |embeddings| embeddings.width),
                ctx_train: self.limits.sequence_tokens,
                state: StateKind::Attention,
                window: self.window,
                adapters: self.adapters.clone(),
                embeddings: self.embeddings,
                chat_template: Some("{% for m in messages %}<user>{{ m.content }}{% endfor %}<end>".into()),
                metadata: BTreeMap::from([("general.architecture".into(), "fake".into())]),
                tensor_bytes: 0,
                parameters: 0,
            },
            tokenizer: Arc::new(FakeTokenizer),
            backend: Box::new(move || Ok(Box::new(fake.backend()))),
            draft: None,
        }
    }

    /// The backend alone.
    #[must_use]
    pub fn backend(&self) -> FakeBackend {
        FakeBackend {
            fake: self.clone(),
            sequences: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            cells: 0,
            adapter: None,
            rows: Vec::new(),
            embedding: 0,
        }
    }

    /// How many sequences each batch had.
    #[must_use]
    pub fn fills(&self) -> Vec<usize> {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let distinct =
            |batch: &Vec<BatchEntry>| batch.iter().map(|e| e.seq).collect::<std::collections::BTreeSet<_>>().len();
        batches.iter().map(distinct).collect()
    }
}

/// A token in its cell, which sequences may share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    name: u64,
    token: Token,
    /// What it was computed with.
    adapter: Option<u16>,
}

impl Cell {
    fn to_bytes(self) -> [u8; 4] {
        let adapter = self.adapter.map_or(0, |adapter| u32::from(adapter) + 1);
        (self.token | adapter << 16).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 4], name: u64) -> Self {
        let number = u32::from_le_bytes(bytes);
        let adapter = (number >> 16).checked_sub(1).and_then(|adapter| u16::try_from(adapter).ok());
        Self { name, token: number & 0xffff, adapter }
    }
}

/// The backend of a [`Fake`].
pub struct FakeBackend {
    fake: Fake,
    sequences: BTreeMap<SeqId, Vec<Cell>>,
    /// How many tokens the window has left behind, of sequences where it has.
    forgotten: BTreeMap<SeqId, u32>,
    /// Cells ever made, to name them.
    cells: u64,
    adapter: Option<u16>,
    rows: Vec<Option<Vec<f32>>>,
    /// Tokens that are computed of the input that was begun last.
    embedding: u32,
}

impl FakeBackend {
    fn new_cell(&mut self, token: Token) -> Cell {
        self.cells += 1;
        Cell { name: self.cells, token, adapter: self.adapter }
    }

    /// How many tokens the window has left behind where `len` are held.
    fn behind(&self, len: u32) -> u32 {
        self.fake.window.map_or(0, |window| (len + 1).saturating_sub(window))
    }

    /// Whether all is there that the token behind the first `len` looks at.
    fn can_end_at(&self, seq: SeqId, len: u32) -> bool {
        let forgotten = self.forgotten.get(&seq).copied().unwrap_or(0);
        len == 0 || forgotten <= self.behind(len)
    }

    fn forget(&mut self, seq: SeqId) {
        let len = self.sequences.get(&seq).map_or(0, Vec::len);
        let behind = self.behind(u32::try_from(len).unwrap_or(u32::MAX));
        let forgotten = self.forgotten.entry(seq).or_default();
        *forgotten = behind.max(*forgotten);
    }

    fn check(&self, batch: &[BatchEntry]) -> Result<(), DecodeError> {
        let limits = self.fake.limits;
        let invalid = |text: String| Err(DecodeError::InvalidBatch(text));
        if batch.is_empty() || batch.len() > limits.batch_tokens as usize {
            return invalid(format!("{} entries", batch.len()));
        }
        let mut lengths: BTreeMap<SeqId, usize> = BTreeMap::new();
        for entry in batch {
            if entry.token >= limits.vocab || entry.seq.0 >= limits.sequences {
                return invalid(format!("{entry:?}"));
            }
            let held = self.sequences.get(&entry.seq).map_or(0, Vec::len);
            let length = lengths.entry(entry.seq).or_insert(held);
            if entry.position as usize != *length || entry.position >= limits.sequence_tokens {
                return invalid(format!("position {} after {length} tokens", entry.position));
            }
            *length += 1;
        }
        let used = self.sequences.values().flatten().map(|cell| cell.name).collect::<BTreeSet<_>>().len();
        if used + batch.len() > limits.kv_cells as usize { Err(DecodeError::NoCells) } else { Ok(()) }
    }
}

impl Backend for FakeBackend {
    fn limits(&self) -> BackendLimits {
        self.fake.limits
    }

    fn decode(&mut self, batch: &[BatchEntry]) -> Result<(), DecodeError> {
        self.check(batch)?;
        (self.fake.before_decode)(batch)?;
        self.rows.clear();
        for entry in batch {
            let cell = self.new_cell(entry.token);
            let sequence = self.sequences.entry(entry.seq).or_default();
            sequence.push(cell);
            let tokens: Vec<Token> = sequence.iter().map(|cell| cell.token).collect();
            let seen: Vec<Token> = sequence.iter().map(|cell| u32::from_le_bytes(cell.to_bytes())).collect();
            let next = match ((self.fake.script)(&tokens), self.adapter) {
                (next, Some(adapter)) if next < BOS => (next + u32::from(adapter) + 1) % BOS,
                (next, _) => next,
            };
            self.rows.push(entry.logits.then(|| row(next, &seen)));
            self.forget(entry.seq);
        }
        self.fake.batches.lock().unwrap_or_else(PoisonError::into_inner).push(batch.to_vec());
        Ok(())
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.rows.get(index)?.as_deref()
    }

    fn truncate(&mut self, seq: SeqId, len: u32) -> bool {
        let held = self.sequences.get(&seq).map_or(0, Vec::len);
        if len as usize >= held {
            return true;
        }
        if !self.can_end_at(seq, len) {
            return false;
        }
        if len == 0 {
            self.forgotten.remove(&seq);
        }
        self.sequences.entry(seq).or_default().truncate(len as usize);
        true
    }

    fn abilities(&self) -> Abilities {
        self.fake.abilities
    }

    fn copy(&mut self, from: SeqId, to: SeqId, len: u32) -> bool {
        let Some(cells) = self.sequences.get(&from).and_then(|cells| cells.get(..len as usize)) else { return false };
        let cells = cells.to_vec();
        let can = self.fake.abilities.copy && self.can_end_at(from, len);
        let into = self.sequences.entry(to).or_default();
        if !can || !into.is_empty() {
            return false;
        }
        *into = cells;
        let forgotten = self.forgotten.get(&from).copied().unwrap_or(0);
        self.forgotten.insert(to, forgotten.min(len));
        true
    }

    fn cut_out(&mut self, seq: SeqId, at: u32, count: u32) -> bool {
        let Some(cells) = self.sequences.get(&seq) else { return false };
        let (at, end) = (at as usize, (at + count) as usize);
        let Some(moved) = cells.get(end..) else { return false };
        let others = self.sequences.iter().filter(|(other, _)| **other != seq).flat_map(|(_, cells)| cells);
        let shared = others.filter(|cell| moved.contains(cell)).count() > 0;
        let forgotten = self.forgotten.get(&seq).copied().unwrap_or(0) > 0;
        if !self.fake.abilities.shift || shared || forgotten {
            return false;
        }
        self.sequences.entry(seq).or_default().drain(at..end);
        true
    }

    fn save(&mut self, seq: SeqId) -> Option<Vec<u8>> {
        let cells = self.sequences.get(&seq).filter(|_| self.fake.abilities.snapshot)?;
        (self.fake.before_copy)(cells.len());
        Some(cells.iter().flat_map(|cell| cell.to_bytes()).collect())
    }

    fn load(&mut self, seq: SeqId, state: &[u8], len: u32) -> bool {
        if state.len() != 4 * len as usize || self.sequences.get(&seq).is_some_and(|cells| !cells.is_empty()) {
            return false;
        }
        (self.fake.before_copy)(len as usize);
        let mut cells = Vec::new();
        for bytes in state.chunks_exact(4) {
            self.cells += 1;
            cells.push(Cell::from_bytes([bytes[0], bytes[1], bytes[2], bytes[3]], self.cells));
        }
        self.sequences.insert(seq, cells);
        self.forget(seq);
        true
    }

    fn adapters(&self) -> &[String] {
        &self.fake.adapters
    }

    fn use_adapter(&mut self, adapter: Option<usize>) -> bool {
        if adapter.is_some_and(|adapter| adapter >= self.fake.adapters.len()) {
            return false;
        }
        self.adapter = adapter.and_then(|adapter| u16::try_from(adapter).ok());
        true
    }

    fn embed_part(
        &mut self,
        input: &[Token],
        pooling: Pooling,
        computed: u32,
        most: u32,
    ) -> Result<Embedding, DecodeError> {
        let Some(info) = self.fake.embeddings else {
            return Err(DecodeError::Unsupported("this fake gives no embeddings".into()));
        };
        let Some(longest) = info.most(pooling) else {
            return Err(DecodeError::Unsupported("this fake has no head for scores".into()));
        };
        let is_known = computed == 0 || computed == self.embedding && (computed as usize) < input.len();
        if input.is_empty() || input.len() > longest as usize || input.iter().any(|&t| t >= VOCAB) || !is_known {
            return Err(DecodeError::InvalidBatch(format!("{computed} of {} tokens", input.len())));
        }
        let rest = &input[computed as usize..];
        let (part, width) = match (pooling, info.ranking) {
            (Pooling::Rank, Some(ranking)) => (rest, ranking.scores),
            _ => (&rest[..rest.len().min(most as usize)], info.width),
        };
        (self.fake.before_embedding)(part);
        self.fake.embedded.lock().unwrap_or_else(PoisonError::into_inner).push(part.to_vec());
        self.embedding = computed + part.len() as u32;
        if (self.embedding as usize) < input.len() {
            return Ok(Embedding::Part(self.embedding));
        }
        self.embedding = 0;
        Ok(Embedding::Whole(vector(input, pooling, width as usize)))
    }
}

/// A vector that depends on what the pooling looks at.
fn vector(input: &[Token], pooling: Pooling, width: usize) -> Vec<f32> {
    let tokens = match pooling {
        Pooling::First => &input[..1],
        Pooling::Last | Pooling::Mean | Pooling::Rank => input,
    };
    let mut vector = row(VOCAB, &[tokens, &[pooling as Token]].concat());
    vector.truncate(width);
    if pooling != Pooling::Rank {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// Logits that favour `next` and otherwise depend on the whole sequence.
fn row(next: Token, sequence: &[Token]) -> Vec<f32> {
    let mut hash =
        sequence.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, &t| (h ^ u64::from(t)).wrapping_mul(0x100_0000_01b3));
    (0..VOCAB)
        .map(|token| {
            hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (hash >> 40) as f32 / (1_u32 << 24) as f32;
            if token == next { 12.0 } else { noise }
        })
        .collect()
}

struct FakeTokenizer;

impl Tokenizer for FakeTokenizer {
    fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<Token>, Error> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(&byte) = rest.as_bytes().first() {
            let special = SPECIAL.iter().find(|(name, _)| parse_special && rest.starts_with(name));
            if let Some(&(name, token)) = special {
                tokens.push(token);
                rest = &rest[name.len()..];
                continue;
            }
            tokens.push(Token::from(byte));
            let next = rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at);
            tokens.extend(rest.bytes().take(next).skip(1).map(Token::from));
            rest = &rest[next..];
        }
        Ok(tokens)
    }

    fn piece(&self, token: Token, special: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Ok(byte) = u8::try_from(token) {
            out.push(byte);
            return Ok(());
        }
        match SPECIAL.iter().find(|(_, t)| *t == token) {
            Some((name, _)) if special => out.extend_from_slice(name.as_bytes()),
            Some(_) => {}
            None => return Err(Error::InvalidArgument(format!("token {token} is outside the vocabulary"))),
        }
        Ok(())
    }

    fn vocab(&self) -> u32 {
        VOCAB
    }

    fn bos(&self) -> Option<Token> {
        Some(BOS)
    }

    fn adds_bos(&self) -> bool {
        false
    }

    fn end_tokens(&self) -> &[Token] {
        &[END]
    }
}
