//! Decoding a batch and handing out what it gave.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Scheduler;
use super::fill::Placed;
use super::guide::{Guide, Word};
use super::guided::PATIENCE;
use super::sequence::{Answer, Prefill, Run, Sequence, Work};
use super::speculate::Draft;
use crate::Token;
use crate::backend::DecodeError;
use crate::clock::Clock;
use crate::command::SessionId;
use crate::constraint::TokenMask;
use crate::error::Error;
use crate::metrics::EngineMetrics;
use crate::options::{Finish, PrefillInfo, Reading, Readout, Sampled};
use crate::sampling::{self, Sampler, Scratch};
use crate::tokenizer::Tokenizer;

/// What a sampled token means for its run.
pub(super) enum Outcome {
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
        let mask = sequence.guide.as_ref().and_then(Guide::mask);
        let Some(sampled) = run.sampler.sample(logits, mask, &mut self.scratch) else {
            return Outcome::Fails(nothing_to_choose(mask));
        };
        self.take(sequence, sampled, now)
    }

    /// Has the sequence's run say a token that comes without a choice.
    pub(super) fn take_forced(&mut self, sequence: &mut Sequence, token: Token, now: Duration) -> Outcome {
        self.metrics.forced_tokens.inc();
        self.take(sequence, Sampled { token, logprob: None, alternatives: Vec::new(), forced: true }, now)
    }

    fn take(&mut self, sequence: &mut Sequence, sampled: Sampled, now: Duration) -> Outcome {
        let Work::Run(run) = &mut sequence.work else { return Outcome::GoesOn };
        let run: &mut Run = run;
        self.metrics.generated_tokens.inc();
        self.piece.clear();
        let is_shown = run.shown.contains(&sampled.token);
        if let Err(error) = self.tokenizer.piece(sampled.token, is_shown, &mut self.piece) {
            return Outcome::Fails(error);
        }
        let ends = self.tokenizer.end_tokens();
        let finish = run.accept(sampled, &self.piece, ends, &mut sequence.tokens, sequence.limit, now);
        sequence.publish_len();
        finish.map_or(Outcome::GoesOn, Outcome::Ends)
    }

    /// What the logits after `len` tokens say.
    fn read(
        &mut self,
        readouts: &[Readout],
        logits: &[f32],
        mask: Option<&TokenMask>,
        len: usize,
    ) -> Result<Vec<Reading>, Error> {
        let read = |readout: &Readout| match readout {
            Readout::Sample(params) => {
                let mut params = (**params).clone();
                // One seed must not give the same draw at each place.
                params.seed = params.seed.map(|seed| seed.wrapping_add(len as u64));
                let mut sampler = Sampler::new(params, Vec::new(), None);
                let sampled = sampler.sample(logits, mask, &mut self.scratch);
                sampled.map(Reading::Token).ok_or_else(|| nothing_to_choose(mask))
            }
            Readout::Top(n) => Ok(Reading::Top(sampling::most_likely(logits, *n as usize, &mut self.scratch))),
            Readout::LogprobsOf(tokens) => Ok(Reading::Logprobs(sampling::logprobs(logits, tokens))),
            Readout::Entropy => Ok(Reading::Entropy(sampling::entropy(logits))),
        };
        readouts.iter().map(read).collect()
    }
}

const NO_LOGITS: &str = "the backend gave no logits";

/// Why no token can be chosen.
fn nothing_to_choose(mask: Option<&TokenMask>) -> Error {
    match mask {
        None => {
            Error::Backend("no token can be chosen: the logits are not finite, or the bias forbids every token".into())
        }
        Some(_) => Error::Constraint(
            "no token can be chosen: the logits are not finite, or the bias forbids all that the grammar allows".into(),
        ),
    }
}

impl<C: Clock> Scheduler<C> {
    /// Decodes the batch that was filled with `placed`.
    pub(super) fn decode(&mut self, placed: &[Placed]) {
        let begin = self.clock.now();
        let decoded = if self.backend.use_adapter(self.adapter) {
            self.backend.decode(&self.batch)
        } else {
            Err(DecodeError::Failed("the adapter is no longer there".into()))
        };
        let now = self.clock.now();
        self.patience = Instant::now() + PATIENCE;
        self.steps.fetch_add(1, Ordering::AcqRel);
        self.metrics.decode_steps.inc();
        self.metrics.decode_seconds.inc_by(now.saturating_sub(begin).as_secs_f64());
        self.pace.measured(self.batch.len(), now.saturating_sub(begin));
        self.note_company(placed, now.saturating_sub(begin), now);
        self.metrics.batch_sequences.observe(placed.len() as f64);
        let sequences = i64::try_from(placed.len()).unwrap_or(i64::MAX);
        if sequences > self.metrics.batch_sequences_max.get() {
            self.metrics.batch_sequences_max.set(sequences);
        }
        if let Err(error) = decoded {
            tracing::error!(%error, sequences, "a batch failed");
            for share in placed {
                self.fail(share.id, Error::Backend(error.to_string()));
                // A state that cannot step back may be lost with the batch. The
                // tokens are kept: it is computed anew when it is next needed.
                self.release_by_id(share.id);
            }
            return;
        }
        for &share in placed {
            self.serve(share, now);
        }
    }

    fn serve(&mut self, share: Placed, now: Duration) {
        self.served(share.id, share.tokens);
        let Some(sequence) = self.sequences.get_mut(&share.id) else { return };
        if matches!(sequence.work, Work::Prefill(_)) {
            self.metrics.prompt_tokens.inc_by(u64::from(share.tokens));
        }
        if sequence.todo() > 0 {
            return;
        }
        match std::mem::replace(&mut sequence.work, Work::Idle) {
            Work::Idle => {}
            Work::Prefill(prefill) => match self.backend.logits(share.last).map(<[f32]>::to_vec) {
                Some(logits) => self.end_prefill(share.id, prefill, logits),
                None => {
                    sequence.work = Work::Prefill(prefill);
                    self.fail(share.id, Error::Backend(NO_LOGITS.into()));
                }
            },
            Work::Run(run) => {
                sequence.work = Work::Run(run);
                self.settle_guesses(share, now);
            }
        }
    }

    /// How long this batch still waits for grammars.
    fn patience_left(&self) -> Duration {
        self.patience.saturating_duration_since(Instant::now())
    }

    /// Notes that so many tokens of a session have a state now.
    fn served(&mut self, id: SessionId, tokens: u32) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        self.cells.take(tokens, &mut sequence.cells);
        self.fair.served(&sequence.owner, tokens);
        sequence.turn = sequence.turn.saturating_add(tokens);
    }

    /// Ends a prefill whose tokens are computed, or has it wait for its grammar.
    pub(super) fn end_prefill(&mut self, id: SessionId, prefill: Prefill, logits: Vec<f32>) {
        let patience = self.patience_left();
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        if let Some(guide) = sequence.guide.as_mut().filter(|_| prefill.answer.samples()) {
            let word = guide.listen(sequence.tokens.len(), patience);
            if guide.mask().is_none() {
                sequence.work = Work::Prefill(prefill);
                sequence.logits = Some(logits);
                return if let Word::Fails(error) = word {
                    self.fail(id, error)
                };
            }
        }
        let new = u32::try_from(sequence.tokens.len().saturating_sub(prefill.before)).unwrap_or(u32::MAX);
        let cached = prefill.cached.min(new);
        // Said before the answer: who has that looks at this.
        sequence.publish_len();
        // Nobody listens: the caller gave up during this very step.
        let heard = match prefill.answer {
            Answer::Info(reply) => {
                let queued = prefill.wait.queued.unwrap_or_default();
                reply.send(Ok(PrefillInfo { cached, computed: new - cached, queued })).is_ok()
            }
            Answer::Readings(readouts, reply) => {
                let at = sequence.tokens.len();
                let mask = sequence.guide.as_ref().and_then(Guide::mask);
                reply.send(self.chooser.read(&readouts, &logits, mask, at)).is_ok()
            }
        };
        sequence.logits = Some(logits);
        self.publish(id);
        if !heard {
            self.metrics.cancelled.inc();
            self.undo(id, prefill.before);
        }
    }

    /// Chooses the next token of a run, and further ones for as long as what is
    /// chosen was guessed; then takes wrong guesses back.
    fn settle_guesses(&mut self, share: Placed, now: Duration) {
        let patience = self.patience_left();
        let Some(sequence) = self.sequences.get_mut(&share.id) else { return };
        if let Some(guide) = &mut sequence.guide {
            let word = guide.listen(sequence.tokens.len(), patience);
            if guide.mask().is_none() {
                sequence.logits = self.backend.logits(share.last).map(<[f32]>::to_vec);
                let lost = sequence.logits.is_none().then(|| Error::Backend(NO_LOGITS.into()));
                let failed = if let Word::Fails(error) = word { Some(error) } else { lost };
                if let Some(error) = failed {
                    self.fail(share.id, error);
                }
                return;
            }
        }
        let Work::Run(run) = &mut sequence.work else { return };
        let Draft { tokens: draft, source } = std::mem::take(&mut run.draft);
        let mut right = 0;
        let outcome = loop {
            let Some(logits) = self.backend.logits(share.last + right) else {
                break Outcome::Fails(Error::Backend(NO_LOGITS.into()));
            };
            let before = sequence.tokens.len();
            let outcome = self.chooser.choose(sequence, logits, now);
            let chosen = sequence.tokens.get(before);
            let came_true = chosen.is_some() && chosen == draft.get(right);
            right += usize::from(came_true);
            if !came_true || !matches!(outcome, Outcome::GoesOn) {
                break outcome;
            }
        };
        if !draft.is_empty() {
            let kept = u32::try_from(right).unwrap_or(0);
            self.metrics.drafted_tokens.inc_by(draft.len() as u64);
            self.metrics.accepted_tokens.inc_by(u64::from(kept));
            // Where the run has ended, what was not looked at says nothing.
            if let Work::Run(run) = &mut sequence.work {
                run.odds.of(source).saw(draft.len(), right);
            }
            self.served(share.id, kept);
            self.take_back(share.id, right < draft.len());
        }
        self.settle(share.id, outcome);
    }

    /// Drops the state of guesses that came to nothing.
    fn take_back(&mut self, id: SessionId, wrong: bool) {
        let Some(sequence) = self.sequences.get(&id).filter(|_| wrong) else { return };
        let Some(seq) = sequence.seq else { return };
        if !self.backend.truncate(seq, sequence.in_kv()) {
            // The state is computed anew from the tokens, which costs more than
            // guessing could ever give.
            tracing::info!("this model cannot take back guesses; from now on there are none");
            self.can_reject = false;
            self.release_by_id(id);
        }
    }

    /// Chooses the first token of a run from logits that were kept.
    pub(super) fn advance(&mut self, id: SessionId, logits: &[f32], now: Duration) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        let outcome = self.chooser.choose(sequence, logits, now);
        self.settle(id, outcome);
    }

    pub(super) fn settle(&mut self, id: SessionId, outcome: Outcome) {
        match outcome {
            Outcome::GoesOn => {
                if let Some(sequence) = self.sequences.get_mut(&id) {
                    sequence.ask_guide(&mut self.workers);
                }
            }
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
                self.undo(id, prefill.before);
                prefill.answer.refuse(error);
            }
        }
    }
}
