//! `nala:llm`: models, sessions and generations for guests.
//!
//! Each resource of the interface is an entry of the store's table and holds a
//! handle of `nala-engine`, so whatever ends the store ends them too; each holds a
//! lease of its model beside it, so that the model stays loaded meanwhile. While a
//! guest waits in one of these calls its own store is held, and nothing else:
//! the work is done by the engine's thread.

mod completion;
mod constraint;
mod convert;
mod embedding;
mod generation;
mod handle;
mod meter;
mod model;
mod session;
mod share;
mod state;
mod step;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker, ResourceTable};

use crate::cpu::CpuClock;
use crate::limits::Limits;
use crate::memory::MemoryLimiter;
use crate::nn::NnState;
use crate::store::StoreData;

pub(crate) use bindings::nala::llm::types::Error;
pub(crate) use completion::{Ask, Completion};
pub(crate) use convert::words;
pub(crate) use model::ModelHandle;
pub(crate) use state::{LlmState, Models};

pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../wit/wasi-io", "../../wit/nala-llm"],
        world: "nala:llm/agent",
        imports: {
            "nala:llm/model.[static]model.open": async | trappable,
            "nala:llm/model.[method]model.encode": async | trappable,
            "nala:llm/model.[method]model.decode": async | trappable,
            "nala:llm/session.[method]session.prefill": async | trappable,
            "nala:llm/session.[method]session.fork": async | trappable,
            "nala:llm/session.[method]session.rewind": async | trappable,
            "nala:llm/session.[method]session.evict": async | trappable,
            "nala:llm/session.[method]session.park": async | trappable,
            "nala:llm/session.[method]session.save": async | trappable,
            "nala:llm/session.[static]session.restore": async | trappable,
            "nala:llm/session.[method]session.constrain": async | trappable,
            "nala:llm/session.[method]session.set-priority": async | trappable,
            "nala:llm/session.[method]generation.next": async | trappable,
            "nala:llm/session.[method]generation.inject": async | trappable,
            "nala:llm/session.[method]pending.take": async | trappable,
            "nala:llm/session.submit": async | trappable,
            "nala:llm/embedding.embed": async | trappable,
            "nala:llm/embedding.rank": async | trappable,
            "nala:llm/constraint.[static]grammar.compile": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "nala:llm/model.model": super::model::ModelHandle,
            "nala:llm/constraint.grammar": super::constraint::GrammarHandle,
            "nala:llm/session.session": super::handle::SessionHandle,
            "nala:llm/session.generation": super::generation::GenerationHandle,
            "nala:llm/session.pending": super::step::PendingHandle,
        },
    });
}

/// What the calls of this interface work on.
pub(crate) struct LlmView<'a> {
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) state: &'a mut LlmState,
    memory: &'a MemoryLimiter,
    cpu: &'a CpuClock,
    pub(crate) limits: &'a Limits,
}

struct HasLlm;

impl HasData for HasLlm {
    type Data<'a> = LlmView<'a>;
}

pub(crate) fn view(data: &mut StoreData) -> LlmView<'_> {
    view_with_nn(data).0
}

/// The same beside what `wasi:nn` has of its own.
pub(crate) fn view_with_nn(data: &mut StoreData) -> (LlmView<'_>, &NnState) {
    let StoreData { table, llm, memory, cpu, limits, nn, .. } = data;
    (LlmView { table, state: llm, memory, cpu, limits }, nn)
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    use bindings::nala::llm::{constraint, embedding, meter, model, session, types};
    types::add_to_linker::<_, HasLlm>(linker, view)?;
    model::add_to_linker::<_, HasLlm>(linker, view)?;
    constraint::add_to_linker::<_, HasLlm>(linker, view)?;
    session::add_to_linker::<_, HasLlm>(linker, view)?;
    embedding::add_to_linker::<_, HasLlm>(linker, view)?;
    meter::add_to_linker::<_, HasLlm>(linker, view)
}

impl bindings::nala::llm::types::Host for LlmView<'_> {}
