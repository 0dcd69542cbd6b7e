//! Sessions of the interface `session`, and what they may hold.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{self as engine, Priority, Session, SessionOptions, Tenant};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::session::{
    GenerateOptions, Host, HostSession, PrefillInfo, SessionOptions as WitSessionOptions,
};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::generation::{GenerationHandle, Run};
use super::model::ModelHandle;
use super::state::Usage;
use super::{LlmView, convert};

/// A session that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct SessionHandle {
    session: Session,
    cells: Cells,
    /// The number of the run that cells are set aside for. Only that run's end
    /// gives them back.
    run: Option<u64>,
    /// Whether a run was dropped before its end: it may still add the token of
    /// the batch under way.
    trailing: bool,
}

impl SessionHandle {
    fn new(session: Session, cells: Cells) -> Self {
        Self { session, cells, run: None, trailing: false }
    }

    /// How many tokens it holds at the most.
    fn length(&self) -> u64 {
        u64::from(self.session.len()) + u64::from(self.trailing)
    }

    /// Run `number` has come to its end.
    pub(super) fn end(&mut self, number: u64) {
        if self.run == Some(number) {
            self.trailing = false;
            self.give_back();
        }
    }

    /// Run `number` was dropped, perhaps before its end.
    pub(super) fn abandon(&mut self, number: u64) {
        if self.run == Some(number) {
            self.trailing = true;
            self.give_back();
        }
    }

    /// No run goes on: cells are set aside for what the session holds.
    fn give_back(&mut self) {
        self.run = None;
        self.cells.keep(self.length());
    }

    /// After a call that a run would have refused, and that may have shortened
    /// the session.
    fn settled<T>(&mut self, done: Result<T, engine::Error>) -> Result<T, Error> {
        if self.run.is_none() {
            self.trailing &= done.is_err();
            self.cells.keep(self.length());
        }
        done.map_err(convert::error)
    }

    async fn prefill(&mut self, tokens: Vec<u32>, max: u64) -> Result<engine::PrefillInfo, Error> {
        if self.run.is_some() {
            // Refused by the engine, and the cells stay the run's.
            return self.session.prefill(tokens).await.map_err(convert::error);
        }
        self.cells.set(self.length().saturating_add(tokens.len() as u64), max)?;
        let done = self.session.prefill(tokens).await;
        // What the engine has prefilled stands behind all that runs have added.
        self.trailing &= done.is_err();
        self.cells.keep(self.length());
        done.map_err(convert::error)
    }
}

/// KV cells that a session has set aside of its store's allowance: those it
/// holds, and those that its run may still take.
struct Cells {
    usage: Arc<Usage>,
    held: u64,
}

impl Cells {
    /// What the store's other sessions have set aside.
    fn others(&self) -> u64 {
        self.usage.kv_cells.load(Ordering::Relaxed).saturating_sub(self.held)
    }

    /// Sets aside `wanted` in all, if the store may have so many.
    fn set(&mut self, wanted: u64, max: u64) -> Result<(), Error> {
        if self.others().saturating_add(wanted) > max {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        self.replace(wanted);
        Ok(())
    }

    /// Gives back all but `wanted`.
    fn keep(&mut self, wanted: u64) {
        self.replace(wanted.min(self.held));
    }

    fn replace(&mut self, wanted: u64) {
        self.usage.kv_cells.store(self.others().saturating_add(wanted), Ordering::Relaxed);
        self.held = wanted;
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.replace(0);
    }
}

impl Host for LlmView<'_> {}

impl LlmView<'_> {
    fn room_for_session(&self) -> Result<(), Error> {
        match self.state.sessions < self.limits.sessions {
            true => Ok(()),
            false => Err(Error::Quota(QuotaKind::Sessions)),
        }
    }

    fn options(&self, options: WitSessionOptions) -> SessionOptions {
        SessionOptions {
            max_tokens: options.max_tokens,
            scope: Arc::clone(&self.state.scope),
            tenant: Tenant { name: Arc::clone(&self.state.scope), weight: 1 },
            priority: Priority::Normal,
            adapter: None,
        }
    }

    /// Sets cells aside for a session that begins with so many tokens.
    fn cells(&self, length: u64) -> Result<Cells, Error> {
        let mut cells = Cells { usage: Arc::clone(&self.state.usage), held: 0 };
        cells.set(length, self.state.max_kv_cells)?;
        Ok(cells)
    }

    fn add(&mut self, session: Session, cells: Cells) -> wasmtime::Result<Resource<SessionHandle>> {
        let session = self.table.push(SessionHandle::new(session, cells))?;
        self.state.sessions += 1;
        Ok(session)
    }
}

impl HostSession for LlmView<'_> {
    fn open(
        &mut self,
        model: Resource<ModelHandle>,
        options: WitSessionOptions,
    ) -> Result<Result<Resource<SessionHandle>, Error>> {
        if let Err(error) = self.room_for_session() {
            return Ok(Err(error));
        }
        let options = self.options(options);
        match self.table.get(&model)?.engine().open_session(options) {
            Ok(session) => {
                let cells = Cells { usage: Arc::clone(&self.state.usage), held: 0 };
                Ok(Ok(self.add(session, cells)?))
            }
            Err(error) => Ok(Err(convert::error(error))),
        }
    }

    fn length(&mut self, session: Resource<SessionHandle>) -> Result<u32> {
        Ok(self.table.get(&session)?.session.len())
    }

    async fn prefill(
        &mut self,
        session: Resource<SessionHandle>,
        tokens: Vec<u32>,
    ) -> Result<Result<PrefillInfo, Error>> {
        let n = tokens.len() as u64;
        let done = self.table.get_mut(&session)?.prefill(tokens, self.state.max_kv_cells).await;
        Ok(done.map(|info| {
            let usage = &self.state.usage;
            usage.prompt_tokens.fetch_add(n, Ordering::Relaxed);
            usage.cached_tokens.fetch_add(info.cached.into(), Ordering::Relaxed);
            usage.queued(info.queued);
            PrefillInfo { cached: info.cached, computed: info.computed }
        }))
    }

    async fn fork(&mut self, session: Resource<SessionHandle>) -> Result<Result<Resource<SessionHandle>, Error>> {
        if let Err(error) = self.room_for_session() {
            return Ok(Err(error));
        }
        // Shared cells count for each holder: any of them may come to be the last.
        let cells = match self.cells(self.table.get(&session)?.length()) {
            Ok(cells) => cells,
            Err(error) => return Ok(Err(error)),
        };
        match self.table.get_mut(&session)?.session.fork().await {
            Ok(child) => Ok(Ok(self.add(child, cells)?)),
            Err(error) => Ok(Err(convert::error(error))),
        }
    }

    async fn rewind(&mut self, session: Resource<SessionHandle>, to: u32) -> Result<Result<u32, Error>> {
        let handle = self.table.get_mut(&session)?;
        let done = handle.session.rewind(to).await;
        Ok(handle.settled(done))
    }

    async fn evict(&mut self, session: Resource<SessionHandle>, at: u32, count: u32) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        let done = handle.session.evict(at, count).await;
        Ok(handle.settled(done))
    }

    async fn park(&mut self, session: Resource<SessionHandle>) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        let done = handle.session.park().await;
        Ok(handle.settled(done))
    }

    async fn save(&mut self, session: Resource<SessionHandle>, name: String) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        let done = handle.session.save(&name).await;
        Ok(handle.settled(done))
    }

    async fn restore(
        &mut self,
        model: Resource<ModelHandle>,
        options: WitSessionOptions,
        name: String,
    ) -> Result<Result<Option<Resource<SessionHandle>>, Error>> {
        if let Err(error) = self.room_for_session() {
            return Ok(Err(error));
        }
        let options = self.options(options);
        let engine = self.table.get(&model)?.engine().clone();
        let session = match engine.restore_session(options, &name).await {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(convert::error(error))),
        };
        match self.cells(session.len().into()) {
            Ok(cells) => Ok(Ok(Some(self.add(session, cells)?))),
            Err(error) => Ok(Err(error)),
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
        let length = handle.length();
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
                self.state.runs += 1;
                let run = Run { session: session.rep(), number: self.state.runs };
                // Checked above to be within the allowance.
                handle.cells.replace(wanted);
                handle.run = Some(run.number);
                let usage = Arc::clone(&self.state.usage);
                Ok(Ok(self.table.push(GenerationHandle::new(generation, usage, run, cut_short))?))
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
