//! Runs and steps whose sessions follow a grammar: hearing what it allows, and going
//! on with that.

use std::time::{Duration, Instant};

use super::Scheduler;
use super::guide::{Ends, Guide, Word};
use super::sequence::{Sequence, Work};
use super::serve::Outcome;
use crate::Token;
use crate::clock::Clock;
use crate::command::SessionId;
use crate::options::Finish;

/// How long a step waits for what grammars force or allow. It is known in less, but
/// for grammars that are slow: their runs sit out until it is.
pub(super) const PATIENCE: Duration = Duration::from_millis(1);

impl<C: Clock> Scheduler<C> {
    /// Hears from the workers, and has runs go on with what they found.
    pub(super) fn hear_guides(&mut self, now: Duration) {
        let guided = |id: &&SessionId| self.sequences.get(id).is_some_and(|sequence| sequence.guide.is_some());
        let ids: Vec<SessionId> = self.at_work.iter().filter(guided).copied().collect();
        if ids.is_empty() {
            return;
        }
        // What must come is best known before the next batch: it can be part of it.
        let until = Instant::now() + PATIENCE;
        for &id in &ids {
            while self.hear_guide(id, Patience::Until(until), now) {}
        }
    }

    /// Where nothing else can be done: waits for a grammar. False: nobody has to.
    pub(super) fn wait_for_a_guide(&mut self) -> bool {
        let awaits = |id: &SessionId| self.sequences.get(id).is_some_and(awaits_guide);
        let Some(id) = self.at_work.iter().copied().find(awaits) else { return false };
        let now = self.clock.now();
        let until = Instant::now() + PATIENCE;
        self.hear_guide(id, Patience::ForAll(until), now);
        true
    }

    /// Answers steps whose logits were kept, or came before their mask. A few at a
    /// time: each looks at whole vocabularies.
    pub(super) fn answer_computed(&mut self) -> bool {
        let is_due = |id: &SessionId| {
            let Some(sequence) = self.sequences.get(id) else { return false };
            let known = !sequence.chooses() || sequence.guide.as_ref().is_none_or(|guide| guide.mask().is_some());
            matches!(sequence.work, Work::Prefill(_)) && sequence.is_computed() && known
        };
        let due: Vec<SessionId> = self.at_work.iter().copied().filter(is_due).take(ANSWERS_A_STEP).collect();
        let now = self.clock.now();
        for &id in &due {
            self.go_on_late(id, now);
        }
        !due.is_empty()
    }

    /// Hears one word. Whether there may be another.
    fn hear_guide(&mut self, id: SessionId, patience: Patience, now: Duration) -> bool {
        let Some(sequence) = self.sequences.get_mut(&id) else { return false };
        let (held, is_computed, chooses) = (sequence.tokens.len(), sequence.is_computed(), sequence.chooses());
        let Some(guide) = sequence.guide.as_mut().filter(|_| chooses) else { return false };
        if guide.is_unasked() {
            sequence.ask_guide(&mut self.workers);
            return true;
        }
        match guide.listen(held, patience.left(guide)) {
            Word::Silence => guide.is_unasked(),
            Word::Fails(error) => {
                self.fail(id, error);
                false
            }
            Word::Forced(tokens, ends) => {
                self.take_forced(id, &tokens, ends, now);
                true
            }
            Word::Ready => {
                if is_computed {
                    self.go_on_late(id, now);
                }
                false
            }
        }
    }

    /// Has a run say what must come.
    fn take_forced(&mut self, id: SessionId, tokens: &[Token], ends: Ends, now: Duration) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        if !matches!(sequence.work, Work::Run(_)) {
            return;
        }
        if !tokens.is_empty() {
            // Those that were kept are of a place that is past now.
            sequence.logits = None;
        }
        for &token in tokens {
            match self.chooser.take_forced(sequence, token, now) {
                Outcome::GoesOn => {}
                ended => return self.settle(id, ended),
            }
        }
        if ends == Ends::Here {
            self.finish(id, Finish::ConstraintDone);
        }
    }

    /// Goes on with logits that were there before the mask was.
    fn go_on_late(&mut self, id: SessionId, now: Duration) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let Some(logits) = sequence.logits.take() else { return };
        match std::mem::replace(&mut sequence.work, Work::Idle) {
            Work::Idle => sequence.logits = Some(logits),
            Work::Run(run) => {
                sequence.work = Work::Run(run);
                self.advance(id, &logits, now);
            }
            Work::Prefill(prefill) => self.end_prefill(id, prefill, logits),
        }
    }
}

/// The most steps that are answered from kept logits before each batch.
const ANSWERS_A_STEP: usize = 16;

/// Whether a session's work has to wait for its grammar.
fn awaits_guide(sequence: &Sequence) -> bool {
    let awaited = sequence.guide.as_ref().is_some_and(|guide| guide.is_awaited(sequence.is_computed()));
    awaited && sequence.chooses() && !is_stalled(sequence)
}

/// Whether a run waits for its reader.
fn is_stalled(sequence: &Sequence) -> bool {
    matches!(&sequence.work, Work::Run(run) if !run.outbox.has_room())
}

/// How long to wait for a word.
#[derive(Clone, Copy)]
enum Patience {
    /// Until then for those who cannot be part of the batch otherwise.
    Until(Instant),
    /// Until then, whoever it is.
    ForAll(Instant),
}

impl Patience {
    fn left(self, guide: &Guide) -> Duration {
        match self {
            Self::Until(_) if guide.lets_decode() => Duration::ZERO,
            Self::Until(until) | Self::ForAll(until) => until.saturating_duration_since(Instant::now()),
        }
    }
}
