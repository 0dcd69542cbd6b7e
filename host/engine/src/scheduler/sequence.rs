//! One session as the scheduler keeps it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::cells::CellId;
use super::fair::Owner;
use super::guide::{Guide, Jump};
use super::snapshot::Snapshot;
use super::speculate::{Chances, Draft, Lookup};
use super::workers::Workers;
use crate::command::{NewSession, Reply, Seat, SessionState};
use crate::error::Error;
use crate::options::{Finish, PrefillInfo, Reading, Readout, Sampled};
use crate::outbox::Writer;
use crate::sampling::Sampler;
use crate::text::{Pushed, TextAssembler};
use crate::{SeqId, Token};

/// A run with more tokens than this to decode waits its turn as a prompt does: it
/// was parked or given tokens, and must not make the others' step long.
const DECODE_TOKENS: usize = 32;

/// A session: its tokens, how many of them the backend holds, and what is being
/// done with it.
pub(super) struct Sequence {
    _seat: Seat,
    pub(super) state: Arc<SessionState>,
    /// The most tokens it may hold.
    pub(super) limit: u32,
    /// All tokens, oldest first.
    pub(super) tokens: Vec<Token>,
    /// The cells of those that have a state, from the first on. The rest is
    /// decoded next.
    pub(super) cells: Vec<CellId>,
    /// How many of them have a state that follows from the tokens alone: what was
    /// moved up behind evicted tokens has seen those.
    pub(super) pure: usize,
    /// The state, while it is in RAM and not in cells.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Who may restore what it saves.
    pub(super) scope: Arc<str>,
    /// The adapter it is computed with.
    pub(super) adapter: Option<usize>,
    /// Whose beginnings it may share: those of its scope and adapter.
    pub(super) kin: Arc<str>,
    /// Who is served with it.
    pub(super) owner: Owner,
    /// Keys of the tokens' blocks, while they are looked for in the prefix cache.
    pub(super) keys: Option<Vec<u64>>,
    /// When it was last given work, in the scheduler's count of such events.
    pub(super) used: u64,
    /// The backend's sequence, once work was done.
    pub(super) seq: Option<SeqId>,
    /// Tokens that it was served since it has that.
    pub(super) turn: u32,
    /// When it was given that.
    pub(super) placed_at: Option<Duration>,
    /// Logits after the last token, where all are decoded.
    pub(super) logits: Option<Vec<f32>>,
    /// What keeps what it says within a grammar.
    pub(super) guide: Option<Guide>,
    /// Its cells were taken back and its owner does not know yet.
    pub(super) evicted: bool,
    pub(super) work: Work,
}

/// What is being done with a session.
pub(super) enum Work {
    Idle,
    Prefill(Prefill),
    Run(Box<Run>),
}

/// A prefill in progress. Its tokens already stand in `Sequence::tokens`.
pub(super) struct Prefill {
    pub(super) answer: Answer,
    /// How many tokens the session held before: what it goes back to on an
    /// error.
    pub(super) before: usize,
    /// How many the prefix cache had.
    pub(super) cached: u32,
    pub(super) wait: Wait,
}

/// What a prefill is for, and where the answer goes.
pub(super) enum Answer {
    /// For the state after it.
    Info(Reply<PrefillInfo>),
    /// For what the logits after it say.
    Readings(Vec<Readout>, Reply<Vec<Reading>>),
}

impl Answer {
    /// Whether a token is to be chosen, for which a grammar has to be asked.
    pub(super) fn samples(&self) -> bool {
        matches!(self, Self::Readings(readouts, _) if readouts.iter().any(|r| matches!(r, Readout::Sample(_))))
    }

    /// Whether nobody listens any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Info(reply) => reply.is_closed(),
            Self::Readings(_, reply) => reply.is_closed(),
        }
    }

    /// Says why there is none.
    pub(super) fn refuse(self, error: Error) {
        // A handle that no longer listens is no error: its session is going.
        match self {
            Self::Info(reply) => drop(reply.send(Err(error))),
            Self::Readings(_, reply) => drop(reply.send(Err(error))),
        }
    }
}

/// A run of the decode loop.
pub(super) struct Run {
    /// Tells it from earlier runs of the session.
    pub(super) number: u64,
    pub(super) outbox: Writer,
    pub(super) sampler: Sampler,
    pub(super) text: TextAssembler,
    pub(super) left: u32,
    pub(super) stop_tokens: Vec<Token>,
    /// Control tokens whose text leaves.
    pub(super) shown: Vec<Token>,
    pub(super) ends_at_model_end: bool,
    pub(super) deadline: Option<Duration>,
    pub(super) wait: Wait,
    /// The most tokens to guess ahead.
    pub(super) max_draft: u32,
    pub(super) lookup: Lookup,
    pub(super) odds: Chances,
    /// Guesses that are part of the batch being decoded.
    pub(super) draft: Draft,
}

/// How long work has been waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// When it was asked for.
    pub(super) asked: Duration,
    /// Since when it is its turn: when it was asked for, or when it gave way.
    pub(super) since: Duration,
    /// How long it waited for its first batch.
    pub(super) queued: Option<Duration>,
    /// Since when it lacks KV cells or a sequence.
    pub(super) blocked: Option<Duration>,
}

impl Wait {
    pub(super) fn new(now: Duration) -> Self {
        Self { asked: now, since: now, queued: None, blocked: None }
    }

    /// Notes that the work is part of a batch.
    pub(super) fn served(&mut self, now: Duration) -> Duration {
        self.blocked = None;
        *self.queued.get_or_insert(now.saturating_sub(self.asked))
    }
}

impl Sequence {
    /// `limit` is the most tokens it may hold.
    pub(super) fn new(new: NewSession, limit: u32) -> Self {
        let NewSession { seat, state, scope, tenant, priority, adapter, .. } = new;
        let kin = match adapter {
            None => Arc::clone(&scope),
            // No scope ends like this by chance, and one that does shares its own.
            Some(adapter) => format!("{scope}\0adapter {adapter}").into(),
        };
        Self {
            _seat: seat,
            state,
            limit,
            adapter,
            kin,
            owner: Owner { tenant, priority },
            tokens: Vec::new(),
            cells: Vec::new(),
            pure: usize::MAX,
            snapshot: None,
            scope,
            keys: None,
            used: 0,
            seq: None,
            turn: 0,
            placed_at: None,
            logits: None,
            guide: None,
            evicted: false,
            work: Work::Idle,
        }
    }

    /// Tokens with KV cells.
    pub(super) fn in_kv(&self) -> u32 {
        u32::try_from(self.cells.len()).unwrap_or(u32::MAX)
    }

    /// Tokens without KV cells.
    pub(super) fn todo(&self) -> usize {
        self.tokens.len().saturating_sub(self.cells.len())
    }

    /// Whether the logits after its last token are there.
    pub(super) fn is_computed(&self) -> bool {
        self.todo() == 0 && self.logits.is_some()
    }

    /// Whether its work chooses tokens, for which a grammar has to be asked.
    pub(super) fn chooses(&self) -> bool {
        match &self.work {
            Work::Idle => false,
            Work::Run(_) => true,
            Work::Prefill(prefill) => prefill.answer.samples(),
        }
    }

    /// Notes that the prefix cache had some of the tokens.
    pub(super) fn note_cached(&mut self, tokens: u32) {
        if let Work::Prefill(prefill) = &mut self.work {
            prefill.cached = tokens;
        }
    }

    /// Tells the session's owner its length.
    pub(super) fn publish_len(&self) {
        let len = u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        self.state.len.store(len, Ordering::Release);
    }

    /// Takes tokens out of the middle; those behind them move up.
    pub(super) fn take_out(&mut self, range: std::ops::Range<usize>) {
        if let Some(guide) = &mut self.guide {
            guide.moved_up(range.len());
        }
        self.tokens.drain(range);
        self.publish_len();
    }

    /// Tokens that still fit.
    pub(super) fn free(&self) -> u32 {
        self.limit.saturating_sub(u32::try_from(self.tokens.len()).unwrap_or(u32::MAX))
    }

    /// Has a worker find out what its grammar, if it has one, allows next.
    pub(super) fn ask_guide(&mut self, workers: &mut Workers) {
        let Some(guide) = &mut self.guide else { return };
        let jump = match &self.work {
            // Log-probabilities are wanted of every token.
            Work::Run(run) if run.sampler.reports_logprobs() => Jump::Never,
            Work::Run(_) => Jump::Ahead,
            Work::Prefill(_) | Work::Idle => Jump::Never,
        };
        guide.ask(&self.tokens, jump, &self.owner.tenant.name, workers);
    }

    /// Guesses that follow its tokens in the batch.
    pub(super) fn draft(&self) -> &[Token] {
        match &self.work {
            Work::Run(run) => &run.draft.tokens,
            Work::Idle | Work::Prefill(_) => &[],
        }
    }

    /// Whether it goes on with a run by few tokens, and is not a prompt, nor waits for a
    /// place, nor was given many tokens: what others in a batch can put up with.
    pub(super) fn decodes(&self) -> bool {
        matches!(self.work, Work::Run(_)) && self.seq.is_some() && self.todo() <= DECODE_TOKENS
    }

    /// Whether a prompt of it is being computed.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self.work, Work::Prefill(_))
    }

    pub(super) fn wait(&self) -> Option<&Wait> {
        match &self.work {
            Work::Idle => None,
            Work::Prefill(prefill) => Some(&prefill.wait),
            Work::Run(run) => Some(&run.wait),
        }
    }

    pub(super) fn wait_mut(&mut self) -> Option<&mut Wait> {
        match &mut self.work {
            Work::Idle => None,
            Work::Prefill(prefill) => Some(&mut prefill.wait),
            Work::Run(run) => Some(&mut run.wait),
        }
    }
}

impl Run {
    /// Takes a sampled token in: its text leaves, the session grows. Says why
    /// the run is over, if it is.
    ///
    /// `end_tokens` are the model's own; `piece` the token's bytes.
    pub(super) fn accept(
        &mut self,
        sampled: Sampled,
        piece: &[u8],
        end_tokens: &[Token],
        tokens: &mut Vec<Token>,
        limit: u32,
        now: Duration,
    ) -> Option<Finish> {
        let token = sampled.token;
        let stops = self.stop_tokens.contains(&token) || self.ends_at_model_end && end_tokens.contains(&token);
        if stops {
            self.outbox.push(sampled, "", now);
            return Some(Finish::StopToken);
        }
        tokens.push(token);
        self.sampler.accept(token);
        self.left -= 1;
        let mut text = String::new();
        let pushed = self.text.push(piece, &mut text);
        self.outbox.push(sampled, &text, now);
        if let Pushed::Stopped(number) = pushed {
            Some(Finish::StopText(number))
        } else if self.left == 0 {
            Some(Finish::Length)
        } else if tokens.len() >= limit as usize {
            Some(Finish::ContextFull)
        } else {
            None
        }
    }

    /// Ends the run; text that was held back leaves with it.
    pub(super) fn finish(mut self, finish: Finish) {
        let mut text = String::new();
        if !matches!(finish, Finish::StopText(_)) {
            self.text.finish(&mut text);
        }
        self.outbox.close(Ok((finish, &text)));
    }

    /// Ends the run with an error.
    pub(super) fn fail(self, error: Error) {
        self.outbox.close(Err(error));
    }
}
