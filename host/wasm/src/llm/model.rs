//! The interface `model`.

use std::sync::Arc;

use nala_engine::{Engine, StateKind, Tokenizer};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::model::{Host, HostModel, Info, StateKind as WitStateKind};
use super::bindings::nala::llm::types::Error;
use super::{LlmView, convert};

/// Text or tokens up to this size are converted at once; more of them on a
/// thread for blocking work, so that no worker of the runtime is held up.
const AT_ONCE: usize = 16 << 10;

/// A model that a guest has opened.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct ModelHandle(pub(super) Engine);

impl Host for LlmView<'_> {
    fn available(&mut self) -> Result<Vec<String>> {
        Ok(self.state.models.names().map(str::to_owned).collect())
    }
}

impl LlmView<'_> {
    fn engine(&self, model: &Resource<ModelHandle>) -> Result<&Engine> {
        Ok(&self.table.get(model)?.0)
    }

    fn tokenizer(&self, model: &Resource<ModelHandle>) -> Result<Arc<dyn Tokenizer>> {
        Ok(Arc::clone(self.engine(model)?.tokenizer()))
    }
}

impl HostModel for LlmView<'_> {
    fn open(&mut self, name: String) -> Result<Result<Resource<ModelHandle>, Error>> {
        if let Some(engine) = self.state.models.get(&name) {
            let handle = ModelHandle(engine.clone());
            return Ok(Ok(self.table.push(handle)?));
        }
        if self.state.models.is_withheld(&name) {
            let text = format!("this component is not granted the model `{name}`; add it to its `ai_models`");
            return Ok(Err(Error::Denied(text)));
        }
        let names: Vec<&str> = self.state.models.names().collect();
        let text = format!("there is no model `{name}`; available: {}", names.join(", "));
        Ok(Err(Error::NotFound(text)))
    }

    fn info(&mut self, model: Resource<ModelHandle>) -> Result<Info> {
        let engine = self.engine(&model)?;
        let info = engine.info();
        Ok(Info {
            name: engine.name().to_owned(),
            arch: info.arch.clone(),
            n_vocab: info.n_vocab,
            n_embd: info.n_embd,
            ctx_max: engine.limits().sequence_tokens,
            state: match info.state {
                StateKind::Attention => WitStateKind::Attention,
                StateKind::Recurrent => WitStateKind::Recurrent,
                StateKind::Hybrid => WitStateKind::Hybrid,
            },
        })
    }

    fn chat_template(&mut self, model: Resource<ModelHandle>) -> Result<Option<String>> {
        Ok(self.engine(&model)?.info().chat_template.clone())
    }

    fn metadata(&mut self, model: Resource<ModelHandle>, key: String) -> Result<Option<String>> {
        Ok(self.engine(&model)?.info().metadata.get(&key).cloned())
    }

    async fn encode(
        &mut self,
        model: Resource<ModelHandle>,
        text: String,
        parse_special: bool,
    ) -> Result<Result<Vec<u32>, Error>> {
        let tokenizer = self.tokenizer(&model)?;
        let small = text.len() <= AT_ONCE;
        let encode = move || tokenizer.encode(&text, parse_special);
        let tokens = if small { encode() } else { tokio::task::spawn_blocking(encode).await? };
        Ok(tokens.map_err(convert::error))
    }

    async fn decode(&mut self, model: Resource<ModelHandle>, tokens: Vec<u32>) -> Result<Result<Vec<u8>, Error>> {
        let tokenizer = self.tokenizer(&model)?;
        let small = tokens.len() <= AT_ONCE;
        let decode = move || {
            let mut bytes = Vec::with_capacity(tokens.len() * 4);
            tokens.iter().try_for_each(|&token| tokenizer.piece(token, true, &mut bytes)).map(|()| bytes)
        };
        let bytes = if small { decode() } else { tokio::task::spawn_blocking(decode).await? };
        Ok(bytes.map_err(convert::error))
    }

    fn bos_token(&mut self, model: Resource<ModelHandle>) -> Result<Option<u32>> {
        Ok(self.engine(&model)?.tokenizer().bos())
    }

    fn adds_bos(&mut self, model: Resource<ModelHandle>) -> Result<bool> {
        Ok(self.engine(&model)?.tokenizer().adds_bos())
    }

    fn end_tokens(&mut self, model: Resource<ModelHandle>) -> Result<Vec<u32>> {
        Ok(self.engine(&model)?.tokenizer().end_tokens().to_vec())
    }

    fn drop(&mut self, model: Resource<ModelHandle>) -> Result<()> {
        self.table.delete(model)?;
        Ok(())
    }
}
