//! The interface `model`.

use std::sync::Arc;

use nala_engine::pool::AcquireError;
use nala_engine::{CACHE_BLOCK, Engine, Lease, Rewind, StateKind};
use nala_tenant::Stock;
use tokio::sync::oneshot;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::model::{Caps, Host, HostModel, Info, StateKind as WitStateKind};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::{LlmView, convert};
use crate::account::Account;
use crate::cpu::{CpuClock, measure};
use crate::limits;
use crate::turns::Turns;

/// Text up to so many bytes is tokenised at once. Longer text waits for its turn
/// and is tokenised on a thread for blocking work, so that no worker of the
/// runtime is held up; besides, `nala-llama` gives it a thread of its own, whose
/// time the guest's clock does not see.
const TEXT_AT_ONCE: usize = 1 << 10;
/// So many tokens are turned into text at once, which is a copy.
const TOKENS_AT_ONCE: usize = 16 << 10;

/// A model that a guest has opened.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct ModelHandle {
    lease: Lease,
    /// The longest text that may fit into its context, in bytes.
    longest_text: usize,
}

impl ModelHandle {
    /// The right to use it, for what outlives this handle.
    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The longest text that may fit into its context, in bytes.
    pub(crate) fn longest_text(&self) -> usize {
        self.longest_text
    }

    /// Refuses text that cannot fit into the model's context, before any work.
    pub(super) fn refuse_longer(&self, bytes: usize) -> Result<(), Error> {
        let most = self.longest_text;
        if bytes <= most {
            return Ok(());
        }
        let context = self.lease.limits().sequence_tokens;
        Err(Error::InvalidArgument(format!(
            "the text has {bytes} bytes, but at most {most} can fit into the model's context of {context} tokens; \
             shorten it"
        )))
    }
}

/// What a guest is told, and the operator where the guest's error has no words.
fn unavailable(error: &AcquireError) -> Error {
    match error {
        AcquireError::Busy { .. } => {
            tracing::warn!(%error, "a guest was told that a model is busy");
            Error::Busy
        }
        AcquireError::Unknown { .. } => Error::NotFound(error.to_string()),
        AcquireError::ShutDown => Error::Cancelled,
        // The failure itself, which may name files, stands in the log.
        AcquireError::Failed { name, .. } => {
            Error::Backend(format!("the model {name} cannot be loaded; the host's log tells why"))
        }
        other => Error::Backend(other.to_string()),
    }
}

/// Works on a long text when there is a turn, and charges the guest for it, or its tenant
/// where the guest has ended meanwhile.
async fn apart<T: Send + 'static>(
    turns: &Turns,
    account: &Arc<Account>,
    cpu: &CpuClock,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let turn = turns.texts.take(&account.tenant, cpu.used()).await;
    let (sender, measured) = oneshot::channel();
    let account = Arc::clone(account);
    turns.block(move || {
        // Kept to the end of the work, also when nobody waits for it any more.
        let _turn = turn;
        if let Err((_done, time)) = sender.send(measure(work)) {
            account.used_cpu(time);
        }
    });
    let (done, time) = measured.await?;
    cpu.charge(time);
    cpu.check()?;
    Ok(done)
}

fn caps(engine: &Engine) -> Caps {
    let (info, abilities) = (engine.info(), engine.abilities());
    let all = [
        (Caps::REWIND, info.rewind() == Rewind::Anywhere),
        (Caps::FORK, abilities.copy),
        (Caps::SHIFT, abilities.shift),
        (Caps::SNAPSHOT, abilities.snapshot),
        (Caps::ADAPTERS, !info.adapters.is_empty()),
        (Caps::EMBEDDINGS, info.embeddings.is_some()),
        (Caps::RANKING, info.embeddings.is_some_and(|offer| offer.ranking.is_some())),
    ];
    all.into_iter().filter(|(_, has)| *has).fold(Caps::empty(), |caps, (cap, _)| caps | cap)
}

impl Host for LlmView<'_> {
    fn available(&mut self) -> Result<Vec<String>> {
        let tenant = &self.state.account.tenant;
        Ok(self.state.models.names().filter(|name| tenant.may_use_model(name)).map(str::to_owned).collect())
    }
}

impl LlmView<'_> {
    /// Opens a model by name, loaded or not. May wait for other guests, and for the
    /// disk.
    pub(crate) async fn open_model(&mut self, name: &str) -> Result<ModelHandle, Error> {
        let tenant = &self.state.account.tenant;
        let may_use = tenant.may_use_model(name);
        if !may_use && self.state.models.get(name).is_some() {
            let text = format!("the tenant {} is not granted the model `{name}`", tenant.name());
            return Err(Error::Denied(text));
        }
        if let Some(model) = self.state.models.get(name) {
            let (lease, longest_text) = model.open().await.map_err(|error| unavailable(&error))?;
            self.state.opened(self.limits, lease.limits());
            return Ok(ModelHandle { lease, longest_text });
        }
        if self.state.models.is_withheld(name) {
            let text = format!("this component is not granted the model `{name}`; add it to its `ai_models`");
            return Err(Error::Denied(text));
        }
        let names: Vec<&str> = self.state.models.names().filter(|name| tenant.may_use_model(name)).collect();
        Err(Error::NotFound(format!("there is no model `{name}`; available: {}", names.join(", "))))
    }

    /// Works on so many bytes of text, at once or apart.
    pub(super) async fn tokenise<T: Send + 'static>(
        &mut self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        match bytes {
            ..=TEXT_AT_ONCE => Ok(work()),
            _ => apart(&self.state.models.turns, &self.state.account, self.cpu, work).await,
        }
    }

    fn engine(&self, model: &Resource<ModelHandle>) -> Result<&Engine> {
        Ok(self.lease(model)?.engine())
    }

    fn lease(&self, model: &Resource<ModelHandle>) -> Result<&Lease> {
        Ok(self.table.get(model)?.lease())
    }
}

impl HostModel for LlmView<'_> {
    async fn open(&mut self, name: String) -> Result<Result<Resource<ModelHandle>, Error>> {
        match self.open_model(&name).await {
            Ok(model) => Ok(Ok(self.table.push(model)?)),
            Err(error) => Ok(Err(error)),
        }
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
            caps: caps(engine),
            cache_block: CACHE_BLOCK,
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
        // Kept to the end of the work, also when nobody waits for it any more.
        let lease = self.lease(&model)?.clone();
        let bytes = text.len();
        if let Err(error) = self.table.get(&model)?.refuse_longer(bytes) {
            return Ok(Err(error));
        }
        let Ok(held) = self.state.account.hold(Stock::HostBytes, bytes as u64) else {
            return Ok(Err(Error::Quota(QuotaKind::Memory)));
        };
        let encode = move || {
            let _held = held;
            lease.tokenizer().encode(&text, parse_special)
        };
        Ok(self.tokenise(bytes, encode).await?.map_err(convert::error))
    }

    async fn decode(&mut self, model: Resource<ModelHandle>, tokens: Vec<u32>) -> Result<Result<Vec<u8>, Error>> {
        let lease = self.lease(&model)?.clone();
        let count = tokens.len();
        // More would not fit into the guest's memory, and is not to fill the host's.
        let most = self.limits.memory_bytes;
        let decode = move || {
            let mut bytes = Vec::new();
            for &token in &tokens {
                lease.tokenizer().piece(token, true, &mut bytes).map_err(convert::error)?;
                if bytes.len() as u64 > most {
                    return Err(Error::InvalidArgument(format!(
                        "the text of the {count} tokens is larger than the component's memory of {}; decode fewer \
                         at once",
                        limits::bytes(most)
                    )));
                }
            }
            Ok(bytes)
        };
        match count {
            ..=TOKENS_AT_ONCE => Ok(decode()),
            _ => apart(&self.state.models.turns, &self.state.account, self.cpu, decode).await,
        }
    }

    fn bos_token(&mut self, model: Resource<ModelHandle>) -> Result<Option<u32>> {
        Ok(self.engine(&model)?.tokenizer().bos())
    }

    fn adds_bos(&mut self, model: Resource<ModelHandle>) -> Result<bool> {
        Ok(self.engine(&model)?.tokenizer().adds_bos())
    }

    fn adapters(&mut self, model: Resource<ModelHandle>) -> Result<Vec<String>> {
        Ok(self.engine(&model)?.info().adapters.clone())
    }

    fn end_tokens(&mut self, model: Resource<ModelHandle>) -> Result<Vec<u32>> {
        Ok(self.engine(&model)?.tokenizer().end_tokens().to_vec())
    }

    fn drop(&mut self, model: Resource<ModelHandle>) -> Result<()> {
        self.table.delete(model)?;
        Ok(())
    }
}
