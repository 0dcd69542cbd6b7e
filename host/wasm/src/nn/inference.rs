//! The interface `inference`.

use nala_nn::{Answer, Code, Ending, Error, Request, Task, Tensor};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::NnView;
use super::bindings::wasi::nn::inference::{Host, HostGraphExecutionContext};
use super::errors::{ErrorHandle, of_model};
use super::tensor::{Held, TensorHandle};
use crate::llm::{Ask, Completion, ModelHandle};

/// The right to compute with a model, one call at a time. It counts as a session.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct ContextHandle(pub(super) ModelHandle);

type NamedTensor = (String, Resource<TensorHandle>);

impl Host for NnView<'_> {}

impl HostGraphExecutionContext for NnView<'_> {
    async fn compute(
        &mut self,
        context: Resource<ContextHandle>,
        inputs: Vec<NamedTensor>,
    ) -> Result<Result<Vec<NamedTensor>, Resource<ErrorHandle>>> {
        let model = self.llm.table.get(&context)?.0.clone();
        // All of them first, whatever comes of it: the guest has given them away.
        let mut given = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            given.push((name, self.llm.table.delete(tensor)?));
        }
        let outputs = match read(given) {
            // What the inputs hold counts until the answer is there.
            Ok((request, _held)) => self.outputs(&model, request).await?,
            Err(error) => Err(error),
        };
        let outputs = match outputs {
            Ok(outputs) => self.give_all(outputs)?,
            Err(error) => Err(error),
        };
        match outputs {
            Ok(outputs) => Ok(Ok(outputs)),
            Err(error) => Ok(Err(self.fail(error)?)),
        }
    }

    fn drop(&mut self, context: Resource<ContextHandle>) -> Result<()> {
        self.llm.table.delete(context)?;
        self.llm.state.sessions -= 1;
        Ok(())
    }
}

/// The inputs as a request, and what they hold.
fn read(inputs: Vec<(String, TensorHandle)>) -> Result<(Request, Vec<Held>), Error> {
    let mut tensors = Vec::with_capacity(inputs.len());
    let mut all_held = Vec::with_capacity(inputs.len());
    for (name, handle) in inputs {
        let (tensor, held) = handle.into_tensor()?;
        tensors.push((name, tensor));
        all_held.push(held);
    }
    Ok((Request::read(tensors)?, all_held))
}

impl NnView<'_> {
    async fn outputs(
        &mut self,
        model: &ModelHandle,
        request: Request,
    ) -> Result<Result<[(&'static str, Tensor); 2], Error>> {
        let Request { prompt, options } = request;
        let (bytes, most) = (prompt.bytes(), model.longest_text());
        if bytes > most {
            let text = format!("the prompt has {bytes} bytes, but at most {most} can fit into the context; shorten it");
            return Ok(Err(Error::new(Code::TooLarge, text)));
        }
        let computed = match options.task {
            Task::Embed => self.llm.vectors_of(model, vec![prompt.to_text()]).await?.map(|computed| {
                let vector = computed.vectors.first().map(Vec::as_slice).unwrap_or_default();
                nala_nn::embedding(vector, computed.prompt_tokens)
            }),
            Task::Generate => {
                let ask =
                    Ask { prompt, options: options.generate, max_tokens: options.max_tokens, grammar: options.grammar };
                self.llm.complete(model, ask).await?.map(|completion| answer(completion).tensors())
            }
        };
        Ok(computed.map_err(|error| of_model(&error)))
    }

    /// Gives the guest what came of it.
    fn give_all(
        &mut self,
        outputs: impl IntoIterator<Item = (&'static str, Tensor)>,
    ) -> Result<Result<Vec<NamedTensor>, Error>> {
        let mut given = Vec::new();
        for (name, tensor) in outputs {
            match self.give(tensor)? {
                Ok(tensor) => given.push((name.to_owned(), tensor)),
                Err(error) => {
                    for (_, tensor) in given {
                        self.llm.table.delete(tensor)?;
                    }
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(given))
    }
}

fn answer(completion: Completion) -> Answer {
    let ending = if completion.cut_short { Ending::Quota } else { Ending::from(completion.finish) };
    Answer {
        text: completion.text,
        input_tokens: completion.prompt_tokens,
        cached_tokens: completion.cached_tokens,
        output_tokens: completion.new_tokens,
        ending,
    }
}
