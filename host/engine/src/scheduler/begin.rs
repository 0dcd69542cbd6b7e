//! Giving sessions work.

use std::time::Duration;

use super::Scheduler;
use super::fair::Owner;
use super::guide::Guide;
use super::sequence::{Answer, Prefill, Run, Wait, Work};
use super::sessions::refuse_at_work;
use super::speculate::{Chances, Draft, Lookup};
use crate::Token;
use crate::clock::Clock;
use crate::command::{Reply, SessionId, StepCommand};
use crate::constraint::Grammar;
use crate::error::Error;
use crate::options::{GenerateOptions, PrefillInfo, Priority};
use crate::outbox::Writer;
use crate::sampling::Sampler;
use crate::text::TextAssembler;

impl<C: Clock> Scheduler<C> {
    pub(super) fn begin_prefill(&mut self, id: SessionId, tokens: Vec<Token>, reply: Reply<PrefillInfo>) {
        if let Err(error) = self.may_take(id, tokens.len()) {
            return Answer::Info(reply).refuse(error);
        }
        if tokens.is_empty() {
            // A handle that no longer listens is no error: its session is going.
            let _ = reply.send(Ok(PrefillInfo { cached: 0, computed: 0, queued: Duration::ZERO }));
            return;
        }
        self.begin_input(id, tokens, Answer::Info(reply));
    }

    /// Begins one session's part of a submitted step.
    pub(super) fn begin_step(&mut self, step: StepCommand) {
        let StepCommand { id, input, readouts, reply } = step;
        let answer = Answer::Readings(readouts, reply);
        if answer.is_closed() {
            self.metrics.cancelled.inc();
            return;
        }
        if let Err(error) = self.may_take(id, input.len()) {
            return answer.refuse(error);
        }
        let Some(sequence) = self.sequences.get(&id) else { return answer.refuse(Error::Cancelled) };
        if !input.is_empty() {
            return self.begin_input(id, input, answer);
        }
        if sequence.tokens.is_empty() {
            let text = "the session is empty and the step has no input: there is nothing to read";
            return answer.refuse(Error::InvalidArgument(text.into()));
        }
        self.want_logits(id);
        self.begin_input(id, Vec::new(), answer);
    }

    /// Has the last token of a session decoded again where its logits were not kept.
    fn want_logits(&mut self, id: SessionId) {
        let Some(sequence) = self.sequences.get(&id) else { return };
        if sequence.logits.is_none() && sequence.todo() == 0 {
            let again = sequence.in_kv().saturating_sub(1);
            self.cut(id, again);
        }
    }

    fn begin_input(&mut self, id: SessionId, tokens: Vec<Token>, answer: Answer) {
        let now = self.clock.now();
        let Some(sequence) = self.sequences.get_mut(&id) else { return answer.refuse(Error::Cancelled) };
        let before = sequence.tokens.len();
        if !tokens.is_empty() {
            sequence.tokens.extend(tokens);
            sequence.logits = None;
            sequence.keys = None;
        }
        let samples = answer.samples();
        sequence.work = Work::Prefill(Prefill { answer, before, cached: 0, wait: Wait::new(now) });
        match (&mut sequence.guide, samples) {
            (Some(_), true) => sequence.ask_guide(&mut self.workers),
            (Some(guide), false) => guide.outdated(),
            (None, _) => {}
        }
        self.goes_to_work(id);
    }

    pub(super) fn begin_run(&mut self, id: SessionId, number: u64, options: GenerateOptions, outbox: Writer) {
        let now = self.clock.now();
        if let Some(sequence) = self.sequences.get(&id) {
            sequence.state.saw_run();
        }
        if let Some(error) = self.refusal(id) {
            return outbox.close(Err(error));
        }
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return outbox.close(Err(Error::Cancelled));
        };
        if sequence.free() == 0 {
            return outbox.close(Err(Error::ContextFull { free: 0 }));
        }
        if sequence.tokens.is_empty() {
            let text = "the session is empty; prefill at least one token before generating";
            return outbox.close(Err(Error::InvalidArgument(text.into())));
        }
        let run = Run {
            number,
            outbox,
            sampler: Sampler::new(options.sampling, options.bias, options.top_logprobs),
            text: TextAssembler::new(options.stop_text),
            left: options.max_new,
            stop_tokens: options.stop_tokens,
            shown: options.shown,
            ends_at_model_end: !options.ignore_end,
            deadline: options.deadline.map(|d| now + d),
            wait: Wait::new(now),
            max_draft: options.draft.unwrap_or(self.config.max_draft).min(self.config.max_draft),
            lookup: Lookup::default(),
            odds: Chances::default(),
            draft: Draft::default(),
        };
        sequence.work = Work::Run(Box::new(run));
        sequence.keys = None;
        self.goes_to_work(id);
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.ask_guide(&mut self.workers);
        if sequence.logits.is_none() {
            return self.want_logits(id);
        }
        // The prefill left the logits: the first token costs no batch.
        if let Some(wait) = sequence.wait_mut() {
            wait.served(now);
        }
        // Under a grammar it is chosen when that has been asked.
        if sequence.guide.is_none()
            && let Some(logits) = sequence.logits.take()
        {
            self.advance(id, &logits, now);
        }
    }

    /// Adds tokens to a run, as if it had generated them. Their text does not leave,
    /// and neither stop texts nor penalties look at them.
    pub(super) fn inject(&mut self, id: SessionId, number: u64, tokens: Vec<Token>) -> Result<(), Error> {
        let ended = || Error::InvalidArgument("the run has ended; prefill the tokens and start another".into());
        let sequence = self.sequences.get_mut(&id).ok_or(Error::Cancelled)?;
        let free = sequence.free();
        match &sequence.work {
            Work::Run(run) if run.number == number => {}
            _ => return Err(ended()),
        }
        // One token must still fit, or the run could not go on.
        if tokens.len() >= free as usize {
            return Err(Error::ContextFull { free: free.saturating_sub(1) });
        }
        if tokens.is_empty() {
            return Ok(());
        }
        sequence.tokens.extend(tokens);
        sequence.publish_len();
        // Logits that wait for a grammar are those of a place that is past.
        sequence.logits = None;
        sequence.ask_guide(&mut self.workers);
        Ok(())
    }

    pub(super) fn constrain(&mut self, id: SessionId, grammar: Option<Grammar>) {
        // A session at work refuses on its handle's side.
        let idle = self.sequences.get_mut(&id).filter(|sequence| matches!(sequence.work, Work::Idle));
        if let Some(sequence) = idle {
            sequence.guide = grammar.map(|grammar| Guide::new(grammar, sequence.tokens.len()));
        }
    }

    pub(super) fn prioritise(&mut self, id: SessionId, priority: Priority) {
        let Some(sequence) = self.sequences.get_mut(&id).filter(|s| s.owner.priority != priority) else { return };
        sequence.owner.priority = priority;
        if self.at_work.remove(&id) {
            self.joins(id);
        }
    }

    /// Notes that a session has got work.
    fn goes_to_work(&mut self, id: SessionId) {
        self.uses += 1;
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.used = self.uses;
        }
        self.joins(id);
    }

    fn joins(&mut self, id: SessionId) {
        let Some(owner) = self.sequences.get(&id).map(|sequence| sequence.owner.clone()) else { return };
        self.begins(&owner);
        self.at_work.insert(id);
    }

    /// Notes that somebody begins to want something beside those who do already.
    pub(super) fn begins(&mut self, owner: &Owner) {
        let at_work = self.at_work.iter().filter_map(|other| self.sequences.get(other));
        let sessions = at_work.filter(|sequence| !matches!(sequence.work, Work::Idle)).map(|sequence| &sequence.owner);
        self.fair.begins(owner, sessions.chain(self.embeddings.owners()));
    }

    /// Whether a session can be given so many tokens now.
    fn may_take(&mut self, id: SessionId, tokens: usize) -> Result<(), Error> {
        if let Some(error) = self.refusal(id) {
            return Err(error);
        }
        let Some(sequence) = self.sequences.get(&id) else { return Err(Error::Cancelled) };
        let free = sequence.free().min(self.cells.total());
        if tokens > free as usize { Err(Error::ContextFull { free }) } else { Ok(()) }
    }

    /// Why a session can take no new work, if it cannot.
    fn refusal(&mut self, id: SessionId) -> Option<Error> {
        let waits = |id: &SessionId| {
            let wait = self.sequences.get(id).and_then(|sequence| sequence.wait());
            wait.is_some_and(|wait| wait.queued.is_none())
        };
        let queued = self.at_work.iter().filter(|id| waits(id)).count();
        let Some(sequence) = self.sequences.get_mut(&id) else { return Some(Error::Cancelled) };
        if let Err(error) = refuse_at_work(sequence) {
            // That its state is gone is said once to who gives it work, which it
            // can then be given.
            sequence.evicted = false;
            return Some(error);
        }
        // Who holds a sequence waits for none, and has paid for its state.
        (sequence.seq.is_none() && queued >= self.config.max_queued as usize).then_some(Error::Busy)
    }
}
