//! Vectors and scores for whole texts.

use super::Engine;
use crate::Token;
use crate::backend::Pooling;
use crate::command::{Command, EmbedCommand};
use crate::error::Error;
use crate::options::{Priority, Tenant};
use crate::validate;

/// The most inputs of one call of [`Engine::embed`].
pub const MAX_EMBEDDING_INPUTS: usize = 2048;

/// What is wanted of inputs, and for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    /// How the vectors of an input's tokens become one. None: as the model file says.
    pub pooling: Option<Pooling>,
    /// Whom it is computed for. To be chosen by the host.
    pub tenant: Tenant,
    /// Which of the tenant's work goes first.
    pub priority: Priority,
}

impl Engine {
    /// One vector for each input, of the width that `ModelInfo::embeddings` says and
    /// of the length 1, or with [`Pooling::Rank`] what the model's head says of it.
    /// Computed between the batches of sessions, in parts where an input is long, and
    /// by the same fair shares. Dropping the future ends it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a model or a pooling that gives none,
    /// [`Error::ContextFull`] with the most that an input may have where one is too
    /// long, [`Error::InvalidArgument`] for inputs that are empty, too many or out of
    /// range, [`Error::Busy`] when too much waits for the tenant already,
    /// [`Error::Backend`].
    pub async fn embed(&self, inputs: Vec<Vec<Token>>, options: EmbedOptions) -> Result<Vec<Vec<f32>>, Error> {
        let info = self.shared.info.embeddings.as_ref();
        let info = info.ok_or_else(|| Error::Unsupported("this model gives no embeddings; use another one".into()))?;
        let EmbedOptions { pooling, tenant, priority } = options;
        let pooling = pooling.unwrap_or(info.pooling);
        let Some(most) = info.most(pooling) else {
            return Err(Error::Unsupported("this model has no head that ranks; use a reranker model".into()));
        };
        validate::embeddings(&inputs, most, self.shared.limits.vocab)?;
        self.shared.ask(|reply| Command::Embed(EmbedCommand { inputs, pooling, tenant, priority, reply })).await
    }
}
