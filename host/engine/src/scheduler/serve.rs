//! Decoding a batch and handing out what it gave.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Scheduler;
use super::plan::Share;
use super::sequence::{Run, Sequence, Work};
use crate::clock::Clock;
use crate::command::SessionId;
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::options::{Finish, PrefillInfo};
use crate::sampling::Scratch;
use crate::tokenizer::Tokenizer;

/// What a sampled token means for its run.
enum Outcome {
    GoesOn,
    Ends(Finish),
    Fails(Error),
}

/// Chooses tokens; with it stands what choosing needs again and again.
pub(super) struct Chooser {
    tokenizer: Arc<dyn Tokenizer>,
    metrics: EngineMetrics,
    scratch: Scratch,
    piece: Vec<u8>,
}

impl Chooser {
    pub(super) fn new(tokenizer: Arc<dyn Tokenizer>, metrics: EngineMetrics) -> Self {
        Self { tokenizer, metrics, scratch: Scratch::default(), piece: Vec::new() }
    }

    /// Chooses the next token of the sequence's run.
    fn choose(&mut self, sequence: &mut Sequence, logits: &[f32], now: Duration) -> Outcome {
        let Work::Run(run) = &mut sequence.work else { return Outcome::GoesOn };
        let run: &mut Run = run;
        let Some(sampled) = run.sampler.sample(logits, &mut self.scratch) else {
            let text = "no token can be chosen: the logits are not finite, or the bias forbids every token";
            return Outcome::Fails(Error::Backend(text.into()));
        };
        self.metrics.generated_tokens.inc();
        self.piece.clear();
        if let Err(error) = self.tokenizer.piece(sampled.token, false, &mut self.piece) {
            return Outcome::Fails(error);
        }
        let ends = self.tokenizer.end_tokens();
        let finish = run.accept(sampled, &self.piece, ends, &mut sequence.tokens, sequence.limit, now);
        sequence.publish_len();
        finish.map_or(Outcome::GoesOn, Outcome::Ends)
    }
}

impl<C: Clock> Scheduler<C> {
    /// Decodes the batch that was filled. `shares` holds, for each, the index of
    /// its last entry.
    pub(super) fn decode(&mut self, shares: &[(Share, usize)]) {
        let begin = self.clock.now();
        let decoded = self.backend.decode(&self.batch);
        let now = self.clock.now();
        self.steps.fetch_add(1, Ordering::AcqRel);
        self.metrics.decode_steps.inc();
        self.metrics.decode_seconds.inc_by(now.saturating_sub(begin).as_secs_f64());
        self.pace.measured(self.batch.len(), now.saturating_sub(begin));
        self.metrics.batch_sequences.observe(shares.len() as f64);
        let sequences = i64::try_from(shares.len()).unwrap_or(i64::MAX);
        if sequences > self.metrics.batch_sequences_max.get() {
            self.metrics.batch_sequences_max.set(sequences);
        }
        if let Err(error) = decoded {
            tracing::error!(%error, sequences, "a batch failed");
            for (share, _) in shares {
                self.fail(share.id, Error::Backend(error.to_string()));
                // A state that cannot step back may be lost with the batch. The
                // tokens are kept: it is computed anew when it is next needed.
                self.release_by_id(share.id);
            }
            return;
        }
        for &(share, last) in shares {
            self.serve(share, last, now);
        }
    }

    fn serve(&mut self, share: Share, last: usize, now: Duration) {
        let Some(sequence) = self.sequences.get_mut(&share.id) else { return };
        self.cells.take(share.tokens, &mut sequence.cells);
        if matches!(sequence.work, Work::Prefill(_)) {
            self.metrics.prompt_tokens.inc_by(u64::from(share.tokens));
        }
        if sequence.todo() > 0 {
            return;
        }
        let Some(logits) = self.backend.logits(last) else {
            return self.fail(share.id, Error::Backend("the backend gave no logits".into()));
        };
        match std::mem::replace(&mut sequence.work, Work::Idle) {
            Work::Idle => {}
            Work::Prefill(prefill) => {
                sequence.logits = Some(logits.to_vec());
                sequence.publish_len();
                let new = u32::try_from(sequence.tokens.len().saturating_sub(prefill.before)).unwrap_or(u32::MAX);
                let cached = prefill.cached.min(new);
                let info =
                    PrefillInfo { cached, computed: new - cached, queued: prefill.wait.queued.unwrap_or_default() };
                self.publish(share.id);
                // Nobody listens: the caller gave up during this very step.
                if prefill.reply.send(Ok(info)).is_err() {
                    self.metrics.cancelled.inc();
                    self.undo(share.id, prefill.before);
                }
            }
            Work::Run(run) => {
                sequence.work = Work::Run(run);
                let outcome = self.chooser.choose(sequence, logits, now);
                self.settle(share.id, outcome);
            }
        }
    }

    /// Chooses the first token of a run from logits that were kept.
    pub(super) fn advance(&mut self, id: SessionId, logits: &[f32], now: Duration) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let outcome = self.chooser.choose(sequence, logits, now);
        self.settle(id, outcome);
    }

    fn settle(&mut self, id: SessionId, outcome: Outcome) {
        match outcome {
            Outcome::GoesOn => {}
            Outcome::Ends(finish) => self.finish(id, finish),
            Outcome::Fails(error) => self.fail(id, error),
        }
    }

    /// Ends the run of a session.
    pub(super) fn finish(&mut self, id: SessionId, finish: Finish) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        match std::mem::replace(&mut sequence.work, Work::Idle) {
            Work::Run(run) => run.finish(finish),
            other => sequence.work = other,
        }
    }

    /// Ends the work of a session with an error; a prefill is undone.
    pub(super) fn fail(&mut self, id: SessionId, error: Error) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        match std::mem::replace(&mut sequence.work, Work::Idle) {
            Work::Idle => {}
            Work::Run(run) => run.fail(error),
            Work::Prefill(prefill) => {
                let reply = prefill.reply;
                self.undo(id, prefill.before);
                let _ = reply.send(Err(error));
            }
        }
    }
}
