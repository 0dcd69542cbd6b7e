//! Embeddings, computed between the batches of sessions.
//!
//! They take part in the service by tokens like everything else: beside sessions
//! that have something to decode, embeddings are computed only while somebody who
//! waits for one is not ahead of any of their owners, see [`super::fair`]. The backend
//! holds one input at a time and computes long ones in parts, so an input that was
//! begun is finished before another one is; whoever waits for embeddings waits for one
//! input of somebody else's and not for all of them.

use std::collections::VecDeque;

use super::Scheduler;
use super::fair::Owner;
use super::fill::Placed;
use super::pace::Pace;
use crate::Token;
use crate::backend::{DecodeError, Embedding, Pooling};
use crate::clock::Clock;
use crate::command::{EmbedCommand, Reply};
use crate::error::Error;

/// The most inputs that wait for one tenant; who asks for more is told to come later.
/// Others can ask all the same.
const MAX_WAITING_INPUTS: usize = 4096;
/// The most tokens that wait for one tenant.
const MAX_WAITING_TOKENS: usize = 1 << 20;

/// A request in progress.
struct Request {
    id: u64,
    owner: Owner,
    /// Those that are left, at least one.
    inputs: VecDeque<Vec<Token>>,
    pooling: Pooling,
    vectors: Vec<Vec<f32>>,
    reply: Reply<Vec<Vec<f32>>>,
}

/// The input that the backend holds: the first one of a request.
#[derive(Clone, Copy)]
struct Begun {
    request: u64,
    /// Tokens of it that are computed.
    computed: u32,
}

/// Requests, each with its next turn behind those of its owner that stand before it.
#[derive(Default)]
pub(super) struct Embeddings {
    requests: VecDeque<Request>,
    begun: Option<Begun>,
    /// Requests so far, which numbers them.
    count: u64,
    /// What computing them costs. Their context is another one than that of the
    /// sequences.
    pace: Pace,
}

impl Embeddings {
    /// Whose they are.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Owner> + Clone {
        self.requests.iter().map(|request| &request.owner)
    }

    /// Whether a tenant can have so many inputs more with so many tokens.
    fn has_room(&self, owner: &Owner, inputs: &[Vec<Token>]) -> bool {
        let own = self.requests.iter().filter(|request| request.owner.tenant.name == owner.tenant.name);
        let waiting: Vec<&Vec<Token>> = own.flat_map(|request| &request.inputs).collect();
        let tokens: usize = waiting.iter().copied().chain(inputs).map(Vec::len).sum();
        let count = waiting.len() + inputs.len();
        waiting.is_empty() || count <= MAX_WAITING_INPUTS && tokens <= MAX_WAITING_TOKENS
    }

    /// Drops what nobody waits for any more, and says how many those were.
    fn drop_abandoned(&mut self) -> u64 {
        let before = self.requests.len();
        self.requests.retain(|request| !request.reply.is_closed());
        (before - self.requests.len()) as u64
    }

    /// Takes out the request that is next: the one that was begun, or the one whose
    /// owner is the next of those who are due.
    fn take_next(&mut self, fair: &super::Fair, due: &[Owner]) -> Option<(Request, u32)> {
        if let Some(begun) = self.begun.take()
            && let Some(at) = self.requests.iter().position(|request| request.id == begun.request)
        {
            return Some((self.requests.remove(at)?, begun.computed));
        }
        let first = due.get(fair.first(due.iter())?)?;
        let at = self.requests.iter().position(|request| request.owner == *first)?;
        Some((self.requests.remove(at)?, 0))
    }

    /// Puts a request back to be the next one, with its first input as it is.
    fn put_back(&mut self, request: Request, computed: u32) {
        if computed > 0 {
            self.begun = Some(Begun { request: request.id, computed });
        }
        self.requests.push_front(request);
    }
}

impl<C: Clock> Scheduler<C> {
    pub(super) fn begin_embedding(&mut self, command: EmbedCommand) {
        let EmbedCommand { inputs, pooling, tenant, priority, reply } = command;
        let owner = Owner { tenant, priority };
        // Who gave up and asks again is not to wait for itself.
        self.metrics.cancelled.inc_by(self.embeddings.drop_abandoned());
        // A handle that no longer listens wants nothing.
        if inputs.is_empty() {
            let _ = reply.send(Ok(Vec::new()));
        } else if !self.embeddings.has_room(&owner, &inputs) {
            let _ = reply.send(Err(Error::Busy));
        } else {
            self.begins(&owner);
            self.embeddings.count += 1;
            let (id, inputs) = (self.embeddings.count, inputs.into());
            let request = Request { id, owner, inputs, pooling, vectors: Vec::new(), reply };
            self.embeddings.requests.push_back(request);
        }
    }

    /// Where nothing is to be decoded: computes as many tokens as a step may take.
    /// False: there are none.
    pub(super) fn embed_alone(&mut self) -> bool {
        let most = self.embeddings.pace.tokens_in(self.config.step_time);
        self.embed(&[], most)
    }

    /// Beside a batch: computes what is due to who waits for embeddings, and no more
    /// than a prompt would be given beside generations.
    pub(super) fn embed_beside(&mut self, placed: &[Placed]) {
        if self.embeddings.requests.is_empty() {
            return;
        }
        let ids = placed.iter().filter_map(|share| self.sequences.get(&share.id));
        let others: Vec<Owner> = ids.map(|sequence| sequence.owner.clone()).collect();
        let step_time = self.company.step_time(self.config.step_time, self.clock.now());
        let most = self.embeddings.pace.tokens_in(step_time).min(self.config.prefill_chunk.max(1));
        self.embed(&others, most);
    }

    /// Computes inputs in the order of service, up to about `most` tokens, and at
    /// least a part of one, while somebody who waits for them has been served no more
    /// than any of `others`, and need not wait for having held others up. Whether anything
    /// was done.
    fn embed(&mut self, others: &[Owner], most: u32) -> bool {
        self.metrics.cancelled.inc_by(self.embeddings.drop_abandoned());
        let begin = self.clock.now();
        let mut done = 0;
        // Also where it is due to one who waits for what another one has begun: that
        // is at most an input, which is charged to who began it.
        while done < most {
            let now = self.clock.now();
            let may = |owner: &&Owner| self.fair.is_due(owner, others) && !self.must_wait(owner, now);
            let due: Vec<Owner> = self.embeddings.owners().filter(may).cloned().collect();
            if due.is_empty() {
                break;
            }
            let Some((request, computed)) = self.embeddings.take_next(&self.fair, &due) else { break };
            let owner = request.owner.clone();
            done += self.embed_part(request, computed, most - done);
            self.held_up_since(now, &owner);
        }
        self.embeddings.pace.measured(done as usize, self.clock.now().saturating_sub(begin));
        done > 0
    }

    /// Goes on with a request's first input. How many tokens were computed, or, so
    /// that a request that failed counts as done, 1.
    fn embed_part(&mut self, mut request: Request, computed: u32, most: u32) -> u32 {
        let Some(input) = request.inputs.front() else { return 1 };
        let len = u32::try_from(input.len()).unwrap_or(u32::MAX);
        let result = self.backend.embed_part(input, request.pooling, computed, most);
        let reached = match &result {
            Ok(Embedding::Part(reached)) => *reached,
            Ok(Embedding::Whole(_)) => len,
            Err(_) => computed,
        };
        let tokens = reached.saturating_sub(computed);
        self.fair.served(&request.owner, tokens);
        self.metrics.embedded_tokens.inc_by(tokens.into());
        let failed = match result {
            Ok(Embedding::Part(_)) if tokens > 0 => {
                self.embeddings.put_back(request, reached);
                return tokens;
            }
            Ok(Embedding::Part(_)) => Error::Backend("an embedding makes no progress".into()),
            Ok(Embedding::Whole(vector)) => {
                request.vectors.push(vector);
                request.inputs.pop_front();
                if request.inputs.is_empty() {
                    // Nobody listens any more: there is nothing to be undone.
                    let _ = request.reply.send(Ok(request.vectors));
                } else {
                    // Requests of one owner take turns.
                    self.embeddings.requests.push_back(request);
                }
                return tokens.max(1);
            }
            Err(DecodeError::InvalidBatch(text)) => Error::InvalidArgument(text),
            Err(DecodeError::Unsupported(text)) => Error::Unsupported(text),
            Err(other) => Error::Backend(other.to_string()),
        };
        let _ = request.reply.send(Err(failed));
        tokens.max(1)
    }

    /// Ends all requests.
    pub(super) fn end_embeddings(&mut self) {
        for request in self.embeddings.requests.drain(..) {
            let _ = request.reply.send(Err(Error::Cancelled));
        }
    }
}
