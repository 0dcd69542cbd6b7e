//! Sessions of the interface `session`, and what they may hold.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{Lease, Session, SessionOptions, Tenant};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::session::{
    GenerateOptions, Host, HostSession, PrefillInfo, Priority, SessionOptions as WitSessionOptions, Step,
};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::constraint::GrammarHandle;
use super::generation::{Counted, GenerationHandle};
use super::handle::SessionHandle;
use super::model::ModelHandle;
use super::share::{Cells, GrammarBytes};
use super::step::PendingHandle;
use super::{LlmView, convert};

impl Host for LlmView<'_> {
    async fn submit(&mut self, steps: Vec<Step>) -> Result<Result<Resource<PendingHandle>, Error>> {
        self.submit_steps(steps).await
    }
}

impl LlmView<'_> {
    pub(crate) fn room_for_session(&self) -> Result<(), Error> {
        match self.state.sessions < self.limits.sessions {
            true => Ok(()),
            false => Err(Error::Quota(QuotaKind::Sessions)),
        }
    }

    /// Whom the instance's work is for.
    pub(super) fn tenant(&self) -> Tenant {
        self.state.account.worker()
    }

    pub(super) fn options(&self, options: WitSessionOptions) -> SessionOptions {
        SessionOptions {
            max_tokens: options.max_tokens,
            scope: Arc::clone(&self.state.account.scope),
            tenant: self.tenant(),
            priority: convert::priority(options.priority),
            adapter: options.adapter.map(Arc::from),
        }
    }

    /// Sets cells aside for a session that begins with so many tokens.
    pub(super) fn cells(&self, length: u64) -> Result<Cells, Error> {
        let mut cells = Cells::none(&self.state.usage, &self.state.account);
        cells.set(length, self.state.max_kv_cells)?;
        Ok(cells)
    }

    fn add(
        &mut self,
        session: Session,
        lease: Lease,
        cells: Cells,
        grammar: Option<GrammarBytes>,
    ) -> wasmtime::Result<Resource<SessionHandle>> {
        let session = self.table.push(SessionHandle::new(session, lease, cells, grammar))?;
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
        let lease = self.table.get(&model)?.lease().clone();
        match lease.open_session(options) {
            Ok(session) => {
                let cells = Cells::none(&self.state.usage, &self.state.account);
                Ok(Ok(self.add(session, lease, cells, None)?))
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
        if let Err(error) = self.state.may_read() {
            return Ok(Err(error));
        }
        let n = tokens.len() as u64;
        let done = self.table.get_mut(&session)?.prefill(tokens, self.state.max_kv_cells).await;
        Ok(done.map(|info| {
            let usage = &self.state.usage;
            usage.prompt_tokens.fetch_add(n, Ordering::Relaxed);
            usage.cached_tokens.fetch_add(info.cached.into(), Ordering::Relaxed);
            usage.queued(info.queued);
            self.state.account.read(info.computed.into(), info.cached.into());
            PrefillInfo { cached: info.cached, computed: info.computed }
        }))
    }

    async fn fork(&mut self, session: Resource<SessionHandle>) -> Result<Result<Resource<SessionHandle>, Error>> {
        if let Err(error) = self.room_for_session() {
            return Ok(Err(error));
        }
        // Shared cells and grammars count for each holder: any of them may come to
        // be the last.
        let cells = match self.cells(self.table.get(&session)?.length()) {
            Ok(cells) => cells,
            Err(error) => return Ok(Err(error)),
        };
        let handle = self.table.get_mut(&session)?;
        let lease = handle.lease.clone();
        let child = match handle.fork(self.limits.grammar_bytes).await {
            Ok(child) => child,
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(self.add(child.session, lease, cells, child.grammar)?))
    }

    async fn rewind(&mut self, session: Resource<SessionHandle>, to: u32) -> Result<Result<u32, Error>> {
        let handle = self.table.get_mut(&session)?;
        if let Err(error) = handle.refuse_in_step() {
            return Ok(Err(error));
        }
        let done = handle.session.rewind(to).await;
        Ok(handle.settled(done))
    }

    async fn evict(&mut self, session: Resource<SessionHandle>, at: u32, count: u32) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        if let Err(error) = handle.refuse_in_step() {
            return Ok(Err(error));
        }
        let done = handle.session.evict(at, count).await;
        Ok(handle.settled(done))
    }

    async fn park(&mut self, session: Resource<SessionHandle>) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        if let Err(error) = handle.refuse_in_step() {
            return Ok(Err(error));
        }
        let done = handle.session.park().await;
        Ok(handle.settled(done))
    }

    async fn save(&mut self, session: Resource<SessionHandle>, name: String) -> Result<Result<(), Error>> {
        let handle = self.table.get_mut(&session)?;
        if let Err(error) = handle.refuse_in_step() {
            return Ok(Err(error));
        }
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
        let lease = self.table.get(&model)?.lease().clone();
        let session = match lease.restore_session(options, &name).await {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(convert::error(error))),
        };
        // It may follow a grammar that this instance has not compiled.
        let grammar = match session.restored_grammar_bytes() {
            0 => Ok(None),
            bytes => {
                GrammarBytes::take(&self.state.usage, &self.state.account, bytes, self.limits.grammar_bytes).map(Some)
            }
        };
        match (self.cells(session.len().into()), grammar) {
            (Ok(cells), Ok(grammar)) => Ok(Ok(Some(self.add(session, lease, cells, grammar)?))),
            (Err(error), _) | (_, Err(error)) => Ok(Err(error)),
        }
    }

    async fn constrain(
        &mut self,
        session: Resource<SessionHandle>,
        to: Option<Resource<GrammarHandle>>,
    ) -> Result<Result<(), Error>> {
        let to = match to {
            Some(grammar) => {
                let GrammarHandle { grammar, bytes, .. } = self.table.get(&grammar)?;
                match bytes.again(self.limits.grammar_bytes) {
                    Ok(bytes) => Some((grammar.clone(), bytes)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            None => None,
        };
        Ok(self.table.get_mut(&session)?.constrain(to).await)
    }

    async fn set_priority(&mut self, session: Resource<SessionHandle>, to: Priority) -> Result<Result<(), Error>> {
        Ok(self.table.get_mut(&session)?.set_priority(convert::priority(to)).await)
    }

    fn generate(
        &mut self,
        session: Resource<SessionHandle>,
        options: GenerateOptions,
    ) -> Result<Result<Resource<GenerationHandle>, Error>> {
        let turn = match self.state.may_write() {
            Ok(turn) => turn,
            Err(error) => return Ok(Err(error)),
        };
        let max = self.state.max_kv_cells;
        let place = self.place(session.rep());
        let handle = self.table.get_mut(&session)?;
        match handle.generate(convert::options(options), place.number, max) {
            Ok((generation, cut_short)) => {
                let lease = handle.lease.clone();
                let counted = Counted::new(Arc::clone(&self.state.usage), Arc::clone(&self.state.account), turn);
                Ok(Ok(self.table.push(GenerationHandle::new(generation, lease, counted, place, cut_short))?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    fn drop(&mut self, session: Resource<SessionHandle>) -> Result<()> {
        self.table.delete(session)?;
        self.state.sessions -= 1;
        Ok(())
    }
}
