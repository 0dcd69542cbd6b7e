//! A small model that guesses what the large one will say.
//!
//! It follows the sessions of runs on sequences of its own, and takes the likeliest
//! token each time. It is a guide only: what is said is always sampled from the
//! large model's logits (see [`super::speculate`]). So it may forget a session at
//! any time, and lag behind one for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::SeqId;
use crate::backend::{Backend, BackendLimits, BatchEntry, Token};
use crate::command::SessionId;
use crate::sampling::argmax;

/// The most tokens of one session that it reads in one step. A long prompt is
/// caught up with over several, beside the large model's own work.
const CATCH_UP: usize = 128;
/// How much of the estimate of a round's cost the latest one makes up.
const WEIGHT: f64 = 0.3;

/// A session as the small model knows it.
struct Held {
    seq: SeqId,
    /// Tokens whose state it has.
    tokens: Vec<Token>,
    /// When it was last asked about.
    used: u64,
}

/// A question: what comes after these tokens?
pub(super) struct Ask<'a> {
    pub(super) id: SessionId,
    pub(super) tokens: &'a [Token],
    /// The most tokens that are wanted.
    pub(super) most: usize,
}

/// The small model.
pub(super) struct DraftModel {
    backend: Box<dyn Backend>,
    limits: BackendLimits,
    held: BTreeMap<SessionId, Held>,
    free: Vec<SeqId>,
    uses: u64,
    /// Seconds that one more token takes for all sessions of a step, once known.
    round: Option<f64>,
}

impl DraftModel {
    pub(super) fn new(backend: Box<dyn Backend>) -> Self {
        let limits = backend.limits();
        let free = (0..limits.sequences).rev().map(SeqId).collect();
        Self { backend, limits, held: BTreeMap::new(), free, uses: 0, round: None }
    }

    /// What a guessed token costs, in seconds; 0 while that is not known.
    pub(super) fn cost(&self) -> f64 {
        self.round.unwrap_or(0.0)
    }

    /// Guesses for each question. None are given for a session that it is still
    /// catching up with, or after a failure.
    pub(super) fn guess(&mut self, asks: &[Ask<'_>]) -> BTreeMap<SessionId, Vec<Token>> {
        let mut guesses: BTreeMap<SessionId, Vec<Token>> = BTreeMap::new();
        let mut todo: Vec<(SessionId, Vec<Token>)> = Vec::new();
        for ask in asks {
            let Some(rest) = self.catch_up(ask) else { continue };
            // It is to say something only where it knows everything before.
            if rest.len() == ask.tokens.len() - self.len(ask.id) {
                guesses.insert(ask.id, Vec::new());
            }
            todo.push((ask.id, rest));
        }
        let deepest = asks.iter().map(|ask| ask.most).max().unwrap_or(0);
        for round in 0..deepest {
            let begin = Instant::now();
            let Some(said) = self.read(&todo) else { return BTreeMap::new() };
            if round > 0 {
                self.took(begin.elapsed());
            }
            todo.clear();
            for (id, token) in said {
                let Some(guess) = guesses.get_mut(&id) else { continue };
                guess.push(token);
                let most = asks.iter().find(|ask| ask.id == id).map_or(0, |ask| ask.most);
                if guess.len() < most {
                    todo.push((id, vec![token]));
                }
            }
            if todo.is_empty() {
                break;
            }
        }
        guesses
    }

    /// Drops what it knows of a session.
    pub(super) fn forget(&mut self, id: SessionId) {
        if let Some(held) = self.held.remove(&id) {
            self.backend.truncate(held.seq, 0);
            self.free.push(held.seq);
        }
    }

    fn len(&self, id: SessionId) -> usize {
        self.held.get(&id).map_or(0, |held| held.tokens.len())
    }

    /// Goes back to what it has in common with the session, and says what is to be
    /// read next. None: the session is too long for it, or there is no room.
    fn catch_up(&mut self, ask: &Ask<'_>) -> Option<Vec<Token>> {
        if ask.tokens.len() + ask.most > self.limits.sequence_tokens as usize {
            self.forget(ask.id);
            return None;
        }
        self.uses += 1;
        if !self.held.contains_key(&ask.id) {
            if self.free.is_empty() {
                self.forget_the_oldest(ask.id);
            }
            let seq = self.free.pop()?;
            self.held.insert(ask.id, Held { seq, tokens: Vec::new(), used: 0 });
        }
        let held = self.held.get_mut(&ask.id)?;
        held.used = self.uses;
        let common = held.tokens.iter().zip(ask.tokens).take_while(|(a, b)| a == b).count();
        // The last token is read in any case: its logits are wanted.
        let keep = common.min(ask.tokens.len().saturating_sub(1));
        if keep < held.tokens.len() {
            let kept = self.backend.truncate(held.seq, u32::try_from(keep).unwrap_or(u32::MAX));
            if !kept {
                self.backend.truncate(held.seq, 0);
            }
            held.tokens.truncate(if kept { keep } else { 0 });
        }
        let known = held.tokens.len();
        let rest: Vec<Token> = ask.tokens.get(known..)?.iter().take(CATCH_UP).copied().collect();
        let wanted = rest.len() + ask.most;
        while self.cells() + wanted > self.limits.kv_cells as usize {
            if !self.forget_the_oldest(ask.id) {
                self.forget(ask.id);
                return None;
            }
        }
        Some(rest)
    }

    fn cells(&self) -> usize {
        self.held.values().map(|held| held.tokens.len()).sum()
    }

    /// Forgets the session that was not asked about for the longest time, other than
    /// `keep`.
    fn forget_the_oldest(&mut self, keep: SessionId) -> bool {
        let others = self.held.iter().filter(|(id, _)| **id != keep);
        let oldest = others.min_by_key(|(_, held)| held.used).map(|(&id, _)| id);
        oldest.inspect(|&id| self.forget(id)).is_some()
    }

    /// Reads tokens and says what is likeliest after each session's last one. None:
    /// that failed, and everything is forgotten.
    fn read(&mut self, todo: &[(SessionId, Vec<Token>)]) -> Option<Vec<(SessionId, Token)>> {
        let mut batch = Vec::new();
        let mut ends = Vec::new();
        for (id, tokens) in todo {
            let Some(held) = self.held.get(id) else { continue };
            if batch.len() + tokens.len() > self.limits.batch_tokens as usize {
                // It is caught up with in a later step.
                continue;
            }
            let from = u32::try_from(held.tokens.len()).unwrap_or(u32::MAX);
            for (position, (n, &token)) in (from..).zip(tokens.iter().enumerate()) {
                batch.push(BatchEntry { token, position, seq: held.seq, logits: n + 1 == tokens.len() });
            }
            ends.push((*id, tokens, batch.len().saturating_sub(1)));
        }
        if batch.is_empty() {
            return Some(Vec::new());
        }
        if let Err(error) = self.backend.decode(&batch) {
            tracing::warn!(%error, "the draft model failed; it begins again");
            let all: Vec<SessionId> = self.held.keys().copied().collect();
            all.into_iter().for_each(|id| self.forget(id));
            return None;
        }
        let mut said = Vec::with_capacity(ends.len());
        for (id, tokens, last) in ends {
            if let Some(held) = self.held.get_mut(&id) {
                held.tokens.extend(tokens);
            }
            if let Some(token) = self.backend.logits(last).and_then(argmax) {
                said.push((id, token));
            }
        }
        Some(said)
    }

    fn took(&mut self, time: Duration) {
        let now = time.as_secs_f64();
        self.round = Some(self.round.map_or(now, |before| before + WEIGHT * (now - before)));
    }
}
