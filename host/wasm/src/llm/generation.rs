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
use super::session::SessionHandle;
use super::state::Usage;
use super::{LlmView, convert};

/// A run that a guest has started.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GenerationHandle {
    // Before the lease, under which it lives.
    generation: Generation,
    _lease: Lease,
    usage: Arc<Usage>,
    run: Run,
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

/// Names a run and its session. The session may be gone, and its place in the
/// table another's; the number is no other run's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) session: u32,
    pub(super) number: u64,
}

impl GenerationHandle {
    pub(super) fn new(generation: Generation, lease: Lease, usage: Arc<Usage>, run: Run, cut_short: bool) -> Self {
        Self { generation, _lease: lease, usage, run, cut_short, ended: false, owed: false, queue_counted: false }
    }

    async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if std::mem::take(&mut self.owed) {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        let next = self.generation.next().await;
        if let (false, Some(queued)) = (self.queue_counted, self.generation.queued()) {
            self.queue_counted = true;
            self.usage.queued(queued);
        }
        // A run also ends with its error, and where there is nothing more.
        self.ended |= !matches!(&next, Ok(Some(chunk)) if chunk.finish.is_none());
        let Some(mut chunk) = next.map_err(convert::error)? else { return Ok(None) };
        self.usage.new_tokens.fetch_add(chunk.tokens.len() as u64, Ordering::Relaxed);
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

impl LlmView<'_> {
    /// The session that stands where the run's did, if one does.
    fn session_of(&mut self, run: Run) -> Option<&mut SessionHandle> {
        self.table.get_mut(&Resource::new_borrow(run.session)).ok()
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
        let run = handle.run;
        if handle.ended
            && let Some(session) = self.session_of(run)
        {
            session.end(run.number);
        }
        Ok(next)
    }

    fn cancel(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        self.table.get(&generation)?.generation.cancel();
        Ok(())
    }

    fn drop(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        let handle = self.table.delete(generation)?;
        let run = handle.run;
        // Cancels the run, if it goes on, before its session is looked at.
        drop(handle);
        if let Some(session) = self.session_of(run) {
            session.abandon(run.number);
        }
        Ok(())
    }
}
