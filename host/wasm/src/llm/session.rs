//! Sessions of the interface `session`, and what they may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nala_engine::{Session, SessionOptions};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::session::{
    GenerateOptions, Host, HostSession, PrefillInfo, SessionOptions as WitSessionOptions,
};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::generation::{GenerationHandle, Share};
use super::model::ModelHandle;
use super::state::Usage;
use super::{LlmView, convert};

/// A session that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct SessionHandle {
    session: Session,
    cells: Arc<Cells>,
}

/// KV cells that a session has set aside of its store's allowance: those it
/// holds, and those that its run may still take.
pub(super) struct Cells {
    usage: Arc<Usage>,
    held: AtomicU64,
}

impl Cells {
    fn new(usage: Arc<Usage>) -> Self {
        Self { usage, held: AtomicU64::new(0) }
    }

    /// What the store's other sessions have set aside.
    fn others(&self) -> u64 {
        self.usage.kv_cells.load(Ordering::Relaxed).saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Sets aside `wanted` in all, if the store may have so many.
    fn set(&self, wanted: u64, max: u64) -> Result<(), Error> {
        if self.others().saturating_add(wanted) > max {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        self.replace(wanted);
        Ok(())
    }

    /// Gives back all but `wanted`.
    pub(super) fn keep(&self, wanted: u64) {
        self.replace(wanted.min(self.held.load(Ordering::Relaxed)));
    }

    fn replace(&self, wanted: u64) {
        self.usage.kv_cells.store(self.others().saturating_add(wanted), Ordering::Relaxed);
        self.held.store(wanted, Ordering::Relaxed);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.replace(0);
    }
}

impl Host for LlmView<'_> {}

impl HostSession for LlmView<'_> {
    fn open(
        &mut self,
        model: Resource<ModelHandle>,
        options: WitSessionOptions,
    ) -> Result<Result<Resource<SessionHandle>, Error>> {
        if self.state.sessions >= self.limits.sessions {
            return Ok(Err(Error::Quota(QuotaKind::Sessions)));
        }
        let engine = &self.table.get(&model)?.0;
        let session = match engine.open_session(SessionOptions { max_tokens: options.max_tokens }) {
            Ok(session) => session,
            Err(error) => return Ok(Err(convert::error(error))),
        };
        self.state.sessions += 1;
        let cells = Arc::new(Cells::new(Arc::clone(&self.state.usage)));
        Ok(Ok(self.table.push(SessionHandle { session, cells })?))
    }

    fn length(&mut self, session: Resource<SessionHandle>) -> Result<u32> {
        Ok(self.table.get(&session)?.session.len())
    }

    async fn prefill(
        &mut self,
        session: Resource<SessionHandle>,
        tokens: Vec<u32>,
    ) -> Result<Result<PrefillInfo, Error>> {
        let max = self.state.max_kv_cells;
        let handle = self.table.get_mut(&session)?;
        let before = u64::from(handle.session.len());
        let n = tokens.len() as u64;
        if let Err(error) = handle.cells.set(before + n, max) {
            return Ok(Err(error));
        }
        match handle.session.prefill(tokens).await {
            Ok(info) => {
                let usage = &self.state.usage;
                usage.prompt_tokens.fetch_add(n, Ordering::Relaxed);
                usage.cached_tokens.fetch_add(info.cached.into(), Ordering::Relaxed);
                usage.queued(info.queued);
                Ok(Ok(PrefillInfo { cached: info.cached, computed: info.computed }))
            }
            Err(error) => {
                handle.cells.keep(handle.session.len().into());
                Ok(Err(convert::error(error)))
            }
        }
    }

    fn generate(
        &mut self,
        session: Resource<SessionHandle>,
        options: GenerateOptions,
    ) -> Result<Result<Resource<GenerationHandle>, Error>> {
        let max = self.state.max_kv_cells;
        let handle = self.table.get_mut(&session)?;
        let mut options = convert::options(options);
        // A run that asks for more than the allowance ends at the allowance.
        let length = u64::from(handle.session.len());
        let room = max.saturating_sub(handle.cells.others()).saturating_sub(length);
        if room == 0 {
            return Ok(Err(Error::Quota(QuotaKind::Kv)));
        }
        let allowed = u32::try_from(room).unwrap_or(u32::MAX);
        let cut_short = options.max_new > allowed;
        options.max_new = options.max_new.min(allowed);
        let wanted = length + u64::from(options.max_new);
        match handle.session.generate(options) {
            Ok(generation) => {
                // Checked above to be within the allowance.
                let _ = handle.cells.set(wanted, max);
                let share = Share { cells: Some(Arc::clone(&handle.cells)), length, cut_short };
                let generation = GenerationHandle::new(generation, Arc::clone(&self.state.usage), share);
                Ok(Ok(self.table.push(generation)?))
            }
            Err(error) => Ok(Err(convert::error(error))),
        }
    }

    fn drop(&mut self, session: Resource<SessionHandle>) -> Result<()> {
        self.table.delete(session)?;
        self.state.sessions -= 1;
        Ok(())
    }
}
