//! The interface `graph`.

use nala_nn::{Code, Error};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::NnView;
use super::bindings::wasi::nn::graph::{ExecutionTarget, GraphEncoding, Host, HostGraph};
use super::errors::{ErrorHandle, of_model};
use super::inference::ContextHandle;
use crate::llm::ModelHandle;

/// The name by which LlamaEdge's guests ask for the model that they were started
/// with.
const DEFAULT: &str = "default";

/// A model that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GraphHandle(ModelHandle);

impl Host for NnView<'_> {
    fn load(
        &mut self,
        _builder: Vec<Vec<u8>>,
        _encoding: GraphEncoding,
        _target: ExecutionTarget,
    ) -> Result<Result<Resource<GraphHandle>, Resource<ErrorHandle>>> {
        let text = "models are not taken from guests; ask for one that is granted, with load-by-name";
        Ok(Err(self.fail(Error::new(Code::Security, text))?))
    }

    async fn load_by_name(&mut self, name: String) -> Result<Result<Resource<GraphHandle>, Resource<ErrorHandle>>> {
        let models = &self.llm.state.models;
        let name = match models.names().next() {
            Some(first) if name == DEFAULT && models.get(DEFAULT).is_none() => first.to_owned(),
            _ => name,
        };
        match self.llm.open_model(&name).await {
            Ok(model) => Ok(Ok(self.llm.table.push(GraphHandle(model))?)),
            Err(error) => Ok(Err(self.fail(of_model(&error))?)),
        }
    }
}

impl HostGraph for NnView<'_> {
    fn init_execution_context(
        &mut self,
        graph: Resource<GraphHandle>,
    ) -> Result<Result<Resource<ContextHandle>, Resource<ErrorHandle>>> {
        // The model is the context's own from here on: its graph may be dropped.
        let model = self.llm.table.get(&graph)?.0.clone();
        if let Err(error) = self.llm.room_for_session() {
            return Ok(Err(self.fail(of_model(&error))?));
        }
        let context = self.llm.table.push(ContextHandle(model))?;
        self.llm.state.sessions += 1;
        Ok(Ok(context))
    }

    fn drop(&mut self, graph: Resource<GraphHandle>) -> Result<()> {
        self.llm.table.delete(graph)?;
        Ok(())
    }
}
