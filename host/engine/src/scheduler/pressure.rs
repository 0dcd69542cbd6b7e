//! When cells, sequences or time run out.
//!
//! Nothing is dropped silently: work waits, then a run is ended as preempted, or
//! a request is refused as busy.

use std::time::Duration;

use super::sequence::{Restore, Sequence, Work};
use super::{Progress, Scheduler};
use crate::clock::Clock;
use crate::command::SessionId;
use crate::error::Error;
use crate::options::Finish;

impl<C: Clock> Scheduler<C> {
    /// Ends what has passed its deadline or waited too long, and hands over
    /// tokens that have gathered long enough.
    pub(super) fn expire(&mut self, now: Duration) {
        let max_wait = self.config.max_wait;
        let mut late = Vec::new();
        let mut refused = Vec::new();
        let mut abandoned = Vec::new();
        for (&id, sequence) in &self.sequences {
            match &sequence.work {
                Work::Idle => {}
                Work::Prefill(prefill) => {
                    if prefill.reply.is_closed() {
                        abandoned.push(id);
                    } else if overdue(prefill.wait.blocked, max_wait, now) {
                        refused.push(id);
                    }
                }
                Work::Run(run) => {
                    run.outbox.flush_overdue(now);
                    if run.deadline.is_some_and(|deadline| now >= deadline) {
                        late.push(id);
                    }
                }
            }
        }
        for id in late {
            self.finish(id, Finish::Deadline);
        }
        for id in refused {
            self.fail(id, Error::Busy);
        }
        for id in abandoned {
            self.metrics.cancelled.inc();
            self.fail(id, Error::Cancelled);
        }
    }

    /// Called when nothing could be put into a batch: makes room, or says how
    /// long to wait.
    pub(super) fn relieve(&mut self, blocked: &[SessionId], now: Duration) -> Progress {
        for id in blocked {
            if let Some(wait) = self.sequences.get_mut(id).and_then(Sequence::wait_mut) {
                wait.blocked.get_or_insert(now);
            }
        }
        if let Some(victim) = self.victim(blocked, now) {
            tracing::warn!(session = victim.0, "KV cells ran out; the youngest run is ended as preempted");
            self.metrics.preempted.inc();
            self.finish(victim, Finish::Preempted);
            if let Some(sequence) = self.sequences.get_mut(&victim) {
                sequence.evicted = true;
                sequence.tokens.clear();
                sequence.publish_len();
            }
            self.release_by_id(victim);
            self.report();
            return Progress::Worked;
        }
        self.report();
        self.next_event(now).map_or(Progress::Idle, Progress::Waiting)
    }

    /// The run to end so that others can go on. With several blocked runs that
    /// is the youngest, at once: none of them can move. A single one may find
    /// cells when an idle session is dropped, so it waits first.
    fn victim(&self, blocked: &[SessionId], now: Duration) -> Option<SessionId> {
        let mut runs = Vec::new();
        for &id in blocked {
            if let Some(Work::Run(run)) = self.sequences.get(&id).map(|s| &s.work) {
                runs.push((run.wait.asked, id, run.wait.blocked));
            }
        }
        runs.sort_by_key(|&(asked, id, _)| (asked, id));
        let &(_, youngest, since) = runs.last()?;
        (runs.len() > 1 || overdue(since, self.config.max_wait, now)).then_some(youngest)
    }

    /// When something will happen without a command.
    fn next_event(&self, now: Duration) -> Option<Duration> {
        let max_wait = self.config.max_wait;
        let times = self.sequences.values().filter_map(|sequence| match &sequence.work {
            Work::Idle => None,
            Work::Prefill(prefill) => prefill.wait.blocked.map(|since| since + max_wait),
            Work::Run(run) => {
                let blocked = run.wait.blocked.map(|since| since + max_wait);
                [blocked, run.deadline, run.outbox.due_at()].into_iter().flatten().min()
            }
        });
        times.min().map(|at| at.saturating_sub(now))
    }

    /// Takes a prefill back.
    pub(super) fn undo(&mut self, id: SessionId, before: Restore) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        sequence.tokens.truncate(before.tokens);
        sequence.logits = None;
        sequence.publish_len();
        let Some(seq) = sequence.seq else { return };
        if sequence.in_kv > before.in_kv {
            if self.backend.truncate(seq, before.in_kv) {
                self.cells.give(sequence.in_kv - before.in_kv, &self.metrics);
                sequence.in_kv = before.in_kv;
            } else {
                // A recurrent state cannot step back: start over from the tokens.
                self.release_by_id(id);
            }
        }
    }

    pub(super) fn release_by_id(&mut self, id: SessionId) {
        if let Some(mut sequence) = self.sequences.remove(&id) {
            self.release(&mut sequence);
            self.sequences.insert(id, sequence);
        }
    }

    /// Gives back a session's cells and its sequence.
    pub(super) fn release(&mut self, sequence: &mut Sequence) {
        if let Some(seq) = sequence.seq.take() {
            self.backend.truncate(seq, 0);
            self.cells.give(sequence.in_kv, &self.metrics);
            self.cells.give_sequence(seq);
        }
        sequence.in_kv = 0;
        sequence.logits = None;
    }
}

fn overdue(since: Option<Duration>, max_wait: Duration, now: Duration) -> bool {
    since.is_some_and(|since| now.saturating_sub(since) >= max_wait)
}
