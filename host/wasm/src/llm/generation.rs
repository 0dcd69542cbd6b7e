//! Generations of the interface `session`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{Finish, Generation, Readiness};
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::bindings::nala::llm::session::{Chunk, HostGeneration};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::session::Cells;
use super::state::Usage;
use super::{LlmView, convert};

/// A run that a guest has started.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GenerationHandle {
    generation: Generation,
    usage: Arc<Usage>,
    share: Share,
    /// The quota error that follows a run that was cut short.
    owed: bool,
    /// Whether the time in the queue was counted.
    queue_counted: bool,
}

/// A run's share of its store's KV cells.
pub(super) struct Share {
    /// What is set aside for the run, until it has ended.
    pub(super) cells: Option<Arc<Cells>>,
    /// Tokens that the session holds, those of the run included as they come.
    pub(super) length: u64,
    /// Whether the run may produce fewer tokens than the guest asked for, since
    /// the guest's KV cells do not suffice.
    pub(super) cut_short: bool,
}

impl Share {
    /// The run has ended: gives back what it did not need.
    fn settle(&mut self) {
        if let Some(cells) = self.cells.take() {
            cells.keep(self.length);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle();
    }
}

impl GenerationHandle {
    pub(super) fn new(generation: Generation, usage: Arc<Usage>, share: Share) -> Self {
        Self { generation, usage, share, owed: false, queue_counted: false }
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
        let Some(mut chunk) = next.map_err(convert::error)? else { return Ok(None) };
        let new = chunk.tokens.len() as u64;
        self.usage.new_tokens.fetch_add(new, Ordering::Relaxed);
        self.share.length = self.share.length.saturating_add(new);
        if chunk.finish.is_some() {
            self.share.settle();
        }
        if self.share.cut_short && chunk.finish == Some(Finish::Length) {
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
        Ok(self.table.get_mut(&generation)?.next().await)
    }

    fn cancel(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        self.table.get(&generation)?.generation.cancel();
        Ok(())
    }

    fn drop(&mut self, generation: Resource<GenerationHandle>) -> Result<()> {
        self.table.delete(generation)?;
        Ok(())
    }
}
