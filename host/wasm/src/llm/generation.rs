//! Generations of the interface `session`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{Finish, Generation, Lease, Readiness};
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::bindings::nala::llm::session::{Chunk, HostGeneration};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::handle::Place;
use super::state::Usage;
use super::{LlmView, convert};
use crate::account::{Account, Holding};

/// A run that a guest has started.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GenerationHandle {
    // Before the lease, under which it lives.
    generation: Generation,
    _lease: Lease,
    counted: Counted,
    place: Place,
    /// Whether the run may produce fewer tokens than the guest asked for, since
    /// the guest's KV cells do not suffice.
    cut_short: bool,
    /// Whether the run has come to its end and the guest has seen it.
    ended: bool,
    /// The quota error that follows a run that was cut short.
    owed: bool,
    /// Whether the time in the queue was counted.
    queue_counted: bool,
}

/// Where the tokens of a run are counted, and its place among the tenant's runs.
pub(super) struct Counted {
    usage: Arc<Usage>,
    account: Arc<Account>,
    _turn: Holding,
}

impl Counted {
    pub(super) fn new(usage: Arc<Usage>, account: Arc<Account>, turn: Holding) -> Self {
        Self { usage, account, _turn: turn }
    }

    fn wrote(&self, tokens: usize) {
        self.usage.new_tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        self.account.wrote(tokens as u64);
    }
}

impl Drop for GenerationHandle {
    /// What was generated was generated, though the guest never asked for it.
    fn drop(&mut self) {
        self.counted.account.wrote(self.generation.unread() as u64);
    }
}

impl GenerationHandle {
    pub(super) fn new(generation: Generation, lease: Lease, counted: Counted, place: Place, cut_short: bool) -> Self {
        Self { generation, _lease: lease, counted, place, cut_short, ended: false, owed: false, queue_counted: false }
    }

    async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if std::mem::take(&mut self.owed) {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        let next = self.generation.next().await;
        if let (false, Some(queued)) = (self.queue_counted, self.generation.queued()) {
            self.queue_counted = true;
            self.counted.usage.queued(queued);
        }
        // A run also ends with its error, and where there is nothing more.
        self.ended |= !matches!(&next, Ok(Some(chunk)) if chunk.finish.is_none());
        let Some(mut chunk) = next.map_err(convert::error)? else { return Ok(None) };
        self.counted.wrote(chunk.tokens.len());
        if self.cut_short && chunk.finish == Some(Finish::Length) {
            // The guest asked for more: it is told so, after what there is.
            chunk.finish = None;
            self.owed = true;
        }
        Ok(Some(convert::chunk(chunk)))
    }
}

/// Lets a guest wait for a generation along with other things.
struct Ready(Readiness);

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl HostGeneration for LlmView<'_> {
    fn subscribe(&mut self, generation: Resource<GenerationHandle>) -> Result<Resource<DynPollable>> {
        let ready = Ready(self.table.get(&generation)?.generation.readiness());
        let ready = self.table.push(ready)?;
        subscribe(self.table, ready)
    }

    async fn next(&mut self, generation: Resource<GenerationHandle>) -> Result<Result<Option<Chunk>, Error>> {
        let handle = self.table.get_mut(&generation)?;
        let next = handle.next().await;
        let place = handle.place;
        if handle.ended
            && let Some(session) = self.session_of(place)
        {
            session.end(place.number);
        }
        Ok(next)
    }

    async fn inject(&mut self, generation: Resource<GenerationHandle>, tokens: Vec<u32>) -> Result<Result<(), Error>> {
        let place = self.table.get(&generation)?.place;
        let (count, max) = (tokens.len() as u64, self.state.max_kv_cells);
        let running = self.session_of(place).filter(|session| session.has_run(place.number));
        let before = match running.map(|session| session.widen(count, max)).transpose() {
            Ok(before) => before,
            Err(error) => return Ok(Err(error)),
        };
        let done = self.table.get_mut(&generation)?.generation.inject(tokens).await;
        if let (Some(before), Some(session)) = (before, self.session_of(place)) {
            session.widened(&done, before);
        }
        if done.is_ok() {
            self.state.account.read(count, 0);
            self.state.usage.prompt_tokens.fetch_add(count, Ordering::Relaxed);
        }
        Ok(done.map_err(convert::error))
    }

    fn cancel(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        self.table.get(&generation)?.generation.cancel();
        Ok(())
    }

    fn drop(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        let handle = self.table.delete(generation)?;
        let place = handle.place;
        // Cancels the run, if it goes on, before its session is looked at. The batch
        // under way may still add a token.
        drop(handle);
        if let Some(session) = self.session_of(place) {
            session.abandon(place.number, 1);
        }
        Ok(())
    }
}
