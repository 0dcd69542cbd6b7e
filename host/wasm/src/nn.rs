//! `wasi:nn`: models as graphs, for guests that were written for it.
//!
//! Bound by us and not by wasmtime-wasi-nn, whose calls are synchronous: here a
//! guest that computes holds its own store and no worker of the runtime, and its
//! prompt is computed in one batch with everybody else's. The names of tensors and
//! the options are those of `nala-nn`.
//!
//! An execution context is the right to one session at a time and counts as one;
//! each `compute` is a session that begins with nothing.

mod errors;
mod graph;
mod inference;
mod tensor;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource};

use crate::llm::{self, LlmView};
use crate::store::StoreData;
use errors::ErrorHandle;
pub(crate) use tensor::NnState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/wasi-nn",
        world: "wasi:nn/ml",
        imports: {
            "wasi:nn/graph.load-by-name": async | trappable,
            "wasi:nn/inference.[method]graph-execution-context.compute": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:nn/tensor.tensor": super::tensor::TensorHandle,
            "wasi:nn/graph.graph": super::graph::GraphHandle,
            "wasi:nn/inference.graph-execution-context": super::inference::ContextHandle,
            "wasi:nn/errors.error": super::errors::ErrorHandle,
        },
    });
}

/// What the calls of this package work on.
struct NnView<'a> {
    llm: LlmView<'a>,
    state: &'a NnState,
}

impl NnView<'_> {
    /// Puts an error where the guest finds it.
    fn fail(&mut self, error: nala_nn::Error) -> Result<Resource<ErrorHandle>> {
        Ok(self.llm.table.push(ErrorHandle(error))?)
    }
}

struct HasNn;

impl HasData for HasNn {
    type Data<'a> = NnView<'a>;
}

fn view(data: &mut StoreData) -> NnView<'_> {
    let (llm, state) = llm::view_with_nn(data);
    NnView { llm, state }
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    use bindings::wasi::nn::{errors, graph, inference, tensor};
    tensor::add_to_linker::<_, HasNn>(linker, view)?;
    graph::add_to_linker::<_, HasNn>(linker, view)?;
    inference::add_to_linker::<_, HasNn>(linker, view)?;
    errors::add_to_linker::<_, HasNn>(linker, view)
}
