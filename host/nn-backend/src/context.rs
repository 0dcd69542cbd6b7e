//! Computing, while the caller waits.

use nala_engine::{EmbedOptions, Engine, Finish, Priority, SessionOptions};
use nala_nn::{Answer, Ending, Error, Request, Task};
use wasmtime_wasi_nn::Tensor;
use wasmtime_wasi_nn::backend::{BackendError, BackendExecutionContext, Id, NamedTensor};

use crate::Caller;
use crate::convert::{failed, into_nn, of_nn};

/// An execution context: a model, and what the calls of the older interface have
/// set.
pub(crate) struct Context {
    engine: Engine,
    caller: Caller,
    inputs: Vec<(String, nala_nn::Tensor)>,
    outputs: Vec<(&'static str, nala_nn::Tensor)>,
}

impl Context {
    pub(crate) fn new(engine: Engine, caller: Caller) -> Self {
        Self { engine, caller, inputs: Vec::new(), outputs: Vec::new() }
    }

    fn run(&self, request: Request) -> Result<[(&'static str, nala_nn::Tensor); 2], Error> {
        pollster::block_on(async {
            match request.options.task {
                Task::Generate => self.generate(request).await.map(Answer::tensors),
                Task::Embed => self.embed(request).await,
            }
        })
    }

    async fn generate(&self, request: Request) -> Result<Answer, Error> {
        let Request { prompt, options } = request;
        let tokens = prompt.tokens(&**self.engine.tokenizer())?;
        let input_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let most = [self.caller.max_tokens, options.max_tokens].into_iter().flatten().min();
        let mut session = self.engine.open_session(SessionOptions {
            max_tokens: most,
            scope: self.caller.scope.clone(),
            tenant: self.caller.tenant.clone(),
            ..SessionOptions::default()
        })?;
        // Compiled first, since one that is wrong costs no prompt, and followed from
        // behind the prompt on.
        let grammar = match options.grammar {
            Some(source) => Some(self.engine.compile_grammar(source).await?),
            None => None,
        };
        let prefilled = session.prefill(tokens).await?;
        session.constrain(grammar)?;
        let mut run = session.generate(options.generate)?;
        let (mut text, mut output_tokens, mut finish) = (String::new(), 0_u32, Finish::Cancelled);
        while let Some(chunk) = run.next().await? {
            output_tokens = output_tokens.saturating_add(u32::try_from(chunk.tokens.len()).unwrap_or(u32::MAX));
            text.push_str(&chunk.text);
            finish = chunk.finish.unwrap_or(finish);
        }
        let cached_tokens = prefilled.cached;
        Ok(Answer { text, input_tokens, cached_tokens, output_tokens, ending: Ending::from(finish) })
    }

    async fn embed(&self, request: Request) -> Result<[(&'static str, nala_nn::Tensor); 2], Error> {
        let tokens = nala_nn::embedding_tokens(&self.engine, &request.prompt.to_text())?;
        let input_tokens = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let options =
            EmbedOptions { pooling: None, tenant: self.caller.tenant.clone(), priority: Priority::Interactive };
        let vectors = self.engine.embed(vec![tokens], options).await?;
        Ok(nala_nn::embedding(vectors.first().map(Vec::as_slice).unwrap_or_default(), input_tokens))
    }
}

impl BackendExecutionContext for Context {
    fn set_input(&mut self, id: Id, tensor: &Tensor) -> Result<(), BackendError> {
        let tensor = into_nn(tensor.clone()).map_err(failed)?;
        // By their number, they come as `0` and `1`, which are names as well.
        let name = match id {
            Id::Index(index) => index.to_string(),
            Id::Name(name) => name,
        };
        // Other names would stay here until the guest computes, however many.
        if !nala_nn::is_input(&name) {
            return Err(failed(nala_nn::unknown(&name)));
        }
        match self.inputs.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) => *before = tensor,
            None => self.inputs.push((name, tensor)),
        }
        Ok(())
    }

    fn get_output(&mut self, id: Id) -> Result<Tensor, BackendError> {
        let found = match &id {
            Id::Index(index) => usize::try_from(*index).ok().and_then(|index| self.outputs.get(index)),
            Id::Name(name) => self.outputs.iter().find(|(other, _)| other == name),
        };
        let (_, tensor) = found.ok_or_else(|| {
            failed(Error::invalid("there is no such output; after `compute` there are `text` (0) and `usage` (1)"))
        })?;
        Ok(of_nn(tensor.clone()))
    }

    fn compute(&mut self, inputs: Option<Vec<NamedTensor>>) -> Result<Option<Vec<NamedTensor>>, BackendError> {
        let Some(inputs) = inputs else {
            let request = Request::read(std::mem::take(&mut self.inputs)).map_err(failed)?;
            self.outputs = self.run(request).map_err(failed)?.into();
            return Ok(None);
        };
        let tensors: Result<Vec<_>, Error> =
            inputs.into_iter().map(|NamedTensor { name, tensor }| Ok((name, into_nn(tensor)?))).collect();
        let request = tensors.and_then(Request::read).map_err(failed)?;
        let outputs = self.run(request).map_err(failed)?;
        let named = |(name, tensor): (&str, _)| NamedTensor { name: name.to_owned(), tensor: of_nn(tensor) };
        Ok(Some(outputs.into_iter().map(named).collect()))
    }
}
