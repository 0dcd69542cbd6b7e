//! The interface `embedding`.

use std::sync::atomic::Ordering;

use nala_engine::{self as engine, EmbedOptions, EmbeddingInfo, Lease, MAX_EMBEDDING_INPUTS, Priority};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::embedding::{Host, Offer, Pooling, Ranking};
use super::bindings::nala::llm::types::Error;
use super::model::ModelHandle;
use super::{LlmView, convert};
use crate::limits;

/// What a list of numbers takes in a guest's memory beside the numbers.
const LIST: u64 = 8;

impl Host for LlmView<'_> {
    fn max_inputs(&mut self) -> Result<u32> {
        Ok(u32::try_from(MAX_EMBEDDING_INPUTS).unwrap_or(u32::MAX))
    }

    fn offers(&mut self, model: Resource<ModelHandle>) -> Result<Option<Offer>> {
        Ok(self.table.get(&model)?.lease().info().embeddings.map(offer))
    }

    async fn embed(
        &mut self,
        model: Resource<ModelHandle>,
        inputs: Vec<Vec<u32>>,
        pooling: Option<Pooling>,
    ) -> Result<Result<Vec<Vec<f32>>, Error>> {
        let lease = self.table.get(&model)?.lease().clone();
        Ok(self.vectors(&lease, inputs, pooling.map(engine_pooling)).await)
    }

    async fn rank(
        &mut self,
        model: Resource<ModelHandle>,
        inputs: Vec<Vec<u32>>,
    ) -> Result<Result<Vec<Vec<f32>>, Error>> {
        let lease = self.table.get(&model)?.lease().clone();
        let scores = lease.info().embeddings.and_then(|offer| offer.ranking).map_or(0, |ranking| ranking.scores);
        Ok(self.compute(&lease, inputs, Some(engine::Pooling::Rank), scores).await)
    }
}

impl LlmView<'_> {
    /// One vector for each input. Without a pooling: the model's usual one.
    pub(super) async fn vectors(
        &mut self,
        lease: &Lease,
        inputs: Vec<Vec<u32>>,
        pooling: Option<engine::Pooling>,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let offer = lease.info().embeddings;
        let width = offer.map_or(0, |offer| offer.width);
        let pooling = pooling.or(offer.map(|offer| usual(&offer)));
        self.compute(lease, inputs, pooling, width).await
    }

    /// Has inputs computed that come to `width` numbers each. The lease is kept
    /// while it is waited for.
    async fn compute(
        &mut self,
        lease: &Lease,
        inputs: Vec<Vec<u32>>,
        pooling: Option<engine::Pooling>,
        width: u32,
    ) -> Result<Vec<Vec<f32>>, Error> {
        // More would not fit into the guest's memory, and is not to fill the host's.
        let (count, most) = (inputs.len() as u64, self.limits.memory_bytes);
        let bytes = count.saturating_mul(u64::from(width).saturating_mul(size_of::<f32>() as u64).saturating_add(LIST));
        if bytes > most {
            return Err(Error::InvalidArgument(format!(
                "what {count} inputs come to takes {}, but the component's memory is {}; give fewer at once",
                limits::bytes(bytes),
                limits::bytes(most)
            )));
        }
        self.state.may_read()?;
        let tokens: usize = inputs.iter().map(Vec::len).sum();
        let options = EmbedOptions { pooling, tenant: self.tenant(), priority: Priority::Interactive };
        let computed = lease.embed(inputs, options).await;
        if computed.is_ok() {
            self.state.account.read(tokens as u64, 0);
            self.state.usage.prompt_tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        }
        computed.map_err(convert::error)
    }
}

fn offer(info: EmbeddingInfo) -> Offer {
    Offer {
        width: info.width,
        max_tokens: info.max_tokens,
        pooling: match usual(&info) {
            engine::Pooling::First => Pooling::First,
            engine::Pooling::Last => Pooling::Last,
            engine::Pooling::Mean | engine::Pooling::Rank => Pooling::Mean,
        },
        ranking: info.ranking.map(|ranking| Ranking { scores: ranking.scores, max_tokens: ranking.max_tokens }),
    }
}

/// How the vectors of a model become one where nobody says how. A model that ranks
/// names no way for vectors.
fn usual(info: &EmbeddingInfo) -> engine::Pooling {
    match info.pooling {
        engine::Pooling::Rank => engine::Pooling::Mean,
        other => other,
    }
}

fn engine_pooling(pooling: Pooling) -> engine::Pooling {
    match pooling {
        Pooling::Mean => engine::Pooling::Mean,
        Pooling::First => engine::Pooling::First,
        Pooling::Last => engine::Pooling::Last,
    }
}
