//! What sessions are asked for beside prefill and generation.

use std::sync::Arc;

use super::Scheduler;
use super::cells::Holder;
use super::guide::Guide;
use super::sequence::{Sequence, Work};
use super::snapshot::{Saved, Shelved};
use crate::Token;
use crate::clock::Clock;
use crate::command::{NewSession, SessionId};
use crate::error::Error;

impl<C: Clock> Scheduler<C> {
    /// Adds an empty session.
    pub(super) fn open(&mut self, new: NewSession) -> SessionId {
        let limit = new.max_tokens.min(self.limits.sequence_tokens);
        let id = new.id;
        self.sequences.insert(id, Sequence::new(new, limit));
        self.metrics.sessions.inc();
        id
    }

    /// Makes `new` a session that holds what another one holds. They share their
    /// cells; what either adds later is its own.
    pub(super) fn fork(&mut self, id: SessionId, new: NewSession) -> Result<(), Error> {
        let Some(parent) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        refuse_at_work(parent)?;
        let (tokens, logits) = (parent.tokens.clone(), parent.logits.clone());
        let (snapshot, keys, pure) = (parent.snapshot.clone(), parent.keys.clone(), parent.pure);
        let guide = parent.guide.as_ref().map(Guide::twin);
        let (from, cells) = (parent.seq, parent.cells.clone());
        let child = self.open(new);
        // Without a sequence the child begins without a state, and finds its
        // parent's beginning in the prefix cache or computes it anew.
        let shares = from.filter(|_| self.abilities.copy && !cells.is_empty());
        let seq = shares.and_then(|_| self.take_sequence());
        let copied = match (shares, seq) {
            (Some(from), Some(seq)) => self.backend.copy(from, seq, u32::try_from(cells.len()).unwrap_or(0)),
            _ => false,
        };
        let Some(sequence) = self.sequences.get_mut(&child) else { return Err(Error::Cancelled) };
        (sequence.tokens, sequence.logits, sequence.keys) = (tokens, logits, keys);
        sequence.guide = guide;
        sequence.limit = sequence.limit.max(u32::try_from(sequence.tokens.len()).unwrap_or(u32::MAX));
        sequence.snapshot = snapshot;
        sequence.seq = seq;
        if copied {
            self.cells.share(&cells, Holder::Session);
            sequence.cells = cells;
        }
        if copied || sequence.snapshot.is_some() {
            sequence.pure = pure;
        }
        sequence.publish_len();
        Ok(())
    }

    /// Shortens a session to `to` tokens.
    pub(super) fn rewind(&mut self, id: SessionId, to: u32) -> Result<u32, Error> {
        let Some(sequence) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        refuse_at_work(sequence)?;
        let len = u32::try_from(sequence.tokens.len()).unwrap_or(u32::MAX);
        if to > len {
            return Err(Error::InvalidArgument(format!(
                "the session holds {len} tokens, so it cannot go back to {to}"
            )));
        }
        if to < len {
            self.undo(id, to as usize);
        }
        Ok(to)
    }

    /// Takes `count` tokens at `at` out of a session and moves the others up.
    pub(super) fn evict(&mut self, id: SessionId, at: u32, count: u32) -> Result<(), Error> {
        let Some(sequence) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        refuse_at_work(sequence)?;
        let len = u32::try_from(sequence.tokens.len()).unwrap_or(u32::MAX);
        let Some(end) = at.checked_add(count).filter(|&end| end <= len) else {
            return Err(Error::InvalidArgument(format!(
                "the session holds {len} tokens, so {count} at {at} cannot be evicted"
            )));
        };
        if count == 0 {
            return Ok(());
        }
        if end == len {
            return self.rewind(id, at).map(drop);
        }
        if sequence.guide.as_ref().is_some_and(|guide| end as usize > guide.since()) {
            let text = "tokens of a text that follows a grammar cannot be evicted; evict those before it, or call \
                        `constrain` without a grammar first";
            return Err(Error::Unsupported(text.into()));
        }
        if !self.abilities.shift {
            let text = "this model cannot move what it has seen: `evict` works at the end of the session only";
            return Err(Error::Unsupported(text.into()));
        }
        if !self.place(id) {
            return Err(Error::Busy);
        }
        let Some(sequence) = self.sequences.get_mut(&id) else { return Err(Error::Cancelled) };
        // The last token of a run has no state yet. Where more have none, there
        // is nothing to move: it is computed from the tokens that are left.
        if sequence.todo() > 1 {
            sequence.take_out(at as usize..end as usize);
            self.cut(id, at);
            return Ok(());
        }
        // Cells that others hold too cannot move: this session gets its own.
        if self.cells.any_shared(sequence.cells.get(at as usize..).unwrap_or_default()) && !self.park(id) {
            return Err(Error::Busy);
        }
        if !self.place(id) {
            return Err(Error::Busy);
        }
        let Some(sequence) = self.sequences.get_mut(&id) else { return Err(Error::Cancelled) };
        let Some(seq) = sequence.seq else { return Err(Error::Busy) };
        if !self.backend.cut_out(seq, at, count) {
            return Err(Error::Unsupported("the model could not move what it has seen".into()));
        }
        let gone: Vec<_> = sequence.cells.drain(at as usize..end as usize).collect();
        sequence.take_out(at as usize..end as usize);
        sequence.pure = sequence.pure.min(at as usize);
        sequence.keys = None;
        // They were computed with the tokens that are gone.
        sequence.logits = None;
        self.cells.release(&gone, Holder::Session);
        Ok(())
    }

    /// Keeps what a session holds under a name, in place of what was there.
    pub(super) fn save(&mut self, id: SessionId, name: String) -> Result<(), Error> {
        let Some(sequence) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        refuse_at_work(sequence)?;
        let key = (Arc::clone(&sequence.scope), name);
        let of_scope = self.shelf.range((Arc::clone(&key.0), String::new())..).take_while(|(k, _)| k.0 == key.0);
        let most = self.config.max_saved as usize;
        if !self.shelf.contains_key(&key) && of_scope.count() >= most {
            return Err(Error::InvalidArgument(format!(
                "{most} sessions are saved already; save under a name of theirs"
            )));
        }
        let tenant = sequence.owner.tenant.clone();
        let before = Shelved::of(&self.shelf, &tenant.name, &key);
        if before.count >= tenant.max_saved {
            return Err(Error::Quota(format!(
                "{} sessions are saved already, which is all that may be; save under a name of theirs",
                before.count
            )));
        }
        let has_state = sequence.in_kv() > 0;
        let guide = sequence.guide.as_ref().map(|guide| (guide.grammar().clone(), guide.since()));
        let more = sequence.tokens.len() * size_of::<Token>()
            + sequence.logits.as_ref().map_or(0, |row| size_of_val(row.as_slice()))
            + guide.as_ref().map_or(0, |(grammar, _)| grammar.bytes());
        // A state is as large as those of its length were before.
        let expected = f64::from(sequence.in_kv()) * self.bytes_a_token;
        let wanted = before.bytes.saturating_add(more as u64).saturating_add(expected as u64);
        if wanted > tenant.saved_bytes {
            return Err(Error::Quota(format!(
                "saved sessions may take {} bytes, and with this one they would take {wanted}; rewind it, or save it \
                 under a name of theirs",
                tenant.saved_bytes
            )));
        }
        // Given back first: a state that is saved again needs its place once.
        let before = self.shelf.remove(&key);
        let snapshot = self.holding_up(id, |scheduler| scheduler.snapshot(id));
        let lacks_state = has_state && self.abilities.snapshot && snapshot.is_none();
        let charge = if lacks_state { None } else { self.charge(more as u64) };
        let (Some(charge), Some(sequence)) = (charge, self.sequences.get(&id)) else {
            self.shelf.extend(before.map(|before| (key, before)));
            return Err(Error::Busy);
        };
        let saved = Saved {
            tokens: sequence.tokens.clone(),
            snapshot,
            logits: sequence.logits.clone(),
            pure: sequence.pure,
            adapter: sequence.adapter,
            guide,
            tenant: tenant.name,
            charge: Arc::new(charge),
        };
        self.shelf.insert(key, saved);
        Ok(())
    }

    /// Makes `new` a session that holds what was saved under a name, and tells the
    /// bytes of its grammar, if it has one. None: there is nothing under that name.
    pub(super) fn restore(&mut self, name: String, new: NewSession) -> Result<Option<u64>, Error> {
        let Some(saved) = self.shelf.get(&(Arc::clone(&new.scope), name)).cloned() else { return Ok(None) };
        if saved.adapter != new.adapter {
            let text = "the session was saved with another adapter; open it with that one";
            return Err(Error::InvalidArgument(text.into()));
        }
        let limit = new.max_tokens.min(self.limits.sequence_tokens);
        if saved.tokens.len() > limit as usize {
            return Err(Error::ContextFull { free: limit });
        }
        let grammar = saved.guide.as_ref().map_or(0, |(grammar, _)| grammar.bytes() as u64);
        let id = self.open(new);
        let Some(sequence) = self.sequences.get_mut(&id) else { return Err(Error::Cancelled) };
        (sequence.tokens, sequence.snapshot, sequence.logits) = (saved.tokens, saved.snapshot, saved.logits);
        sequence.pure = saved.pure;
        sequence.guide = saved.guide.map(|(grammar, since)| Guide::new(grammar, since));
        sequence.publish_len();
        Ok(Some(grammar))
    }

    /// Moves a session's state into RAM, where there is room for it.
    pub(super) fn park_on_request(&mut self, id: SessionId) -> Result<(), Error> {
        let Some(sequence) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        refuse_at_work(sequence)?;
        // A hint: without room the state stays where it is.
        self.park(id);
        Ok(())
    }
}

/// Refuses a session that is busy with something, or whose state is gone.
pub(super) fn refuse_at_work(sequence: &Sequence) -> Result<(), Error> {
    match sequence.work {
        Work::Idle if sequence.evicted => Err(Error::Evicted),
        Work::Idle => Ok(()),
        Work::Prefill(_) | Work::Run(_) => {
            let text = "the session is at work; wait for its prefill or run to end, or cancel it";
            Err(Error::InvalidArgument(text.into()))
        }
    }
}
