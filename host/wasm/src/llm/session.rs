//! Sessions of the interface `session`, and what they may hold.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{Session, SessionOptions};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::session::{
    GenerateOptions, Host, HostSession, PrefillInfo, SessionOptions as WitSessionOptions,
};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::generation::GenerationHandle;
use super::model::ModelHandle;
use super::state::Usage;
use super::{LlmView, convert};

/// A session that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct SessionHandle {
    session: Session,
    cells: Cells,
}

/// KV cells that a session has set aside of its store's allowance: those it
/// holds, and those that its run may still take.
struct Cells {
    usage: Arc<Usage>,
    held: u64,
}

impl Cells {
    /// Sets aside `wanted` in all, if the store may have so many.
    fn set(&mut self, wanted: u64, max: u64) -> Result<(), Error> {
        let others = self.usage.kv_cells.load(Ordering::Relaxed).saturating_sub(self.held);
        if others.saturating_add(wanted) > max {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        self.usage.kv_cells.store(others + wanted, Ordering::Relaxed);
        self.held = wanted;
        Ok(())
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.usage.kv_cells.fetch_sub(self.held, Ordering::Relaxed);
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
        let cells = Cells { usage: Arc::clone(&self.state.usage), held: 0 };
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
                // Giving cells back cannot exceed the allowance.
                let _ = handle.cells.set(u64::from(handle.session.len()), max);
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
        let others = self.state.usage.kv_cells.load(Ordering::Relaxed).saturating_sub(handle.cells.held);
        let room = max.saturating_sub(others).saturating_sub(length);
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
                let generation = GenerationHandle::new(generation, Arc::clone(&self.state.usage), cut_short);
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
