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
    Abilities, Backend, BackendLimits, BatchEntry, DecodeError, LoadedModel, ModelInfo, SeqId, StateKind, Token,
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

/// A fake model to be made.
#[derive(Clone)]
pub struct Fake {
    /// What the backend can hold. The vocabulary's size is fixed.
    pub limits: BackendLimits,
    /// What follows a sequence.
    pub script: Script,
    /// Hook for delays and failures.
    pub before_decode: BeforeDecode,
    /// What else the backend can do.
    pub abilities: Abilities,
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
            abilities: Abilities { copy: true, shift: true, snapshot: true },
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
                n_embd: 1,
                ctx_train: self.limits.sequence_tokens,
                state: StateKind::Attention,
                chat_template: Some("{% for m in messages %}<user>{{ m.content }}{% endfor %}<end>".into()),
                metadata: BTreeMap::from([("general.architecture".into(), "fake".into())]),
                tensor_bytes: 0,
                parameters: 0,
            },
            tokenizer: Arc::new(FakeTokenizer),
            backend: Box::new(move || Ok(Box::new(fake.backend()))),
        }
    }

    /// The backend alone.
    #[must_use]
    pub fn backend(&self) -> FakeBackend {
        FakeBackend { fake: self.clone(), sequences: BTreeMap::new(), cells: 0, rows: Vec::new() }
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
}

/// The backend of a [`Fake`].
pub struct FakeBackend {
    fake: Fake,
    sequences: BTreeMap<SeqId, Vec<Cell>>,
    /// Cells ever made, to name them.
    cells: u64,
    rows: Vec<Option<Vec<f32>>>,
}

impl FakeBackend {
    fn new_cell(&mut self, token: Token) -> Cell {
        self.cells += 1;
        Cell { name: self.cells, token }
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
            self.rows.push(entry.logits.then(|| row((self.fake.script)(&tokens), &tokens)));
        }
        self.fake.batches.lock().unwrap_or_else(PoisonError::into_inner).push(batch.to_vec());
        Ok(())
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.rows.get(index)?.as_deref()
    }

    fn truncate(&mut self, seq: SeqId, len: u32) -> bool {
        if let Some(sequence) = self.sequences.get_mut(&seq) {
            sequence.truncate(len as usize);
        }
        true
    }

    fn abilities(&self) -> Abilities {
        self.fake.abilities
    }

    fn copy(&mut self, from: SeqId, to: SeqId, len: u32) -> bool {
        let Some(cells) = self.sequences.get(&from).and_then(|cells| cells.get(..len as usize)) else { return false };
        let cells = cells.to_vec();
        let into = self.sequences.entry(to).or_default();
        if !self.fake.abilities.copy || !into.is_empty() {
            return false;
        }
        *into = cells;
        true
    }

    fn cut_out(&mut self, seq: SeqId, at: u32, count: u32) -> bool {
        let Some(cells) = self.sequences.get(&seq) else { return false };
        let (at, end) = (at as usize, (at + count) as usize);
        let Some(moved) = cells.get(end..) else { return false };
        let others = self.sequences.iter().filter(|(other, _)| **other != seq).flat_map(|(_, cells)| cells);
        let shared = others.filter(|cell| moved.contains(cell)).count() > 0;
        if !self.fake.abilities.shift || shared {
            return false;
        }
        self.sequences.entry(seq).or_default().drain(at..end);
        true
    }

    fn save(&mut self, seq: SeqId) -> Option<Vec<u8>> {
        let cells = self.sequences.get(&seq).filter(|_| self.fake.abilities.snapshot)?;
        Some(cells.iter().flat_map(|cell| cell.token.to_le_bytes()).collect())
    }

    fn load(&mut self, seq: SeqId, state: &[u8], len: u32) -> bool {
        if state.len() != 4 * len as usize || self.sequences.get(&seq).is_some_and(|cells| !cells.is_empty()) {
            return false;
        }
        let tokens = state.chunks_exact(4).map(|b| Token::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let cells = tokens.map(|token| self.new_cell(token)).collect();
        self.sequences.insert(seq, cells);
        true
    }
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
