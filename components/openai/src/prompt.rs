//! From a checked request to a running generation.

use nala_sdk::chat;
use nala_sdk::llm::{self, GenerateOptions, Generation, Model, PrefillInfo, Session, SessionOptions};

use crate::error::ApiError;
use crate::parameters::{Delivery, Parameters};

/// A whole answer is fetched in batches: it costs fewer calls of the host.
const BATCH_TOKENS: u32 = 64;

/// How long the first token of a batch may wait for the others, in milliseconds.
const BATCH_MS: u32 = 1000;

/// A generation that has begun, and what its prompt cost.
pub(crate) struct Begun {
    pub(crate) model: Model,
    pub(crate) prompt: PrefillInfo,
    pub(crate) generation: Generation,
}

/// Opens the model, renders and prefills the prompt and starts generating.
pub(crate) fn begin(parameters: &Parameters) -> Result<Begun, ApiError> {
    let model = Model::open(&parameters.model).map_err(|error| match error {
        // Which models exist beside the granted ones is not the client's business.
        llm::Error::NotFound(_) | llm::Error::Denied(_) => {
            ApiError::model_not_found(&parameters.model, &Model::available())
        }
        other => other.into(),
    })?;
    let info = model.info();
    if let Some(bias) = parameters.bias.iter().find(|bias| bias.id >= info.n_vocab) {
        let message =
            format!("'logit_bias' names token {}, but the model's last is {}", bias.id, info.n_vocab.saturating_sub(1));
        return Err(ApiError::invalid("logit_bias", message));
    }

    let tokens = chat::prompt(&model, &parameters.messages)?;
    let room = u32::try_from(tokens.len()).ok().and_then(|length| info.ctx_max.checked_sub(length));
    // Without room for a single new token the prompt does not fit either.
    let Some(room) = room.filter(|room| *room > 0) else {
        return Err(ApiError::context_length(tokens.len(), info.ctx_max.saturating_sub(1)));
    };
    let max_new = parameters.max_tokens.map_or(room, |wanted| wanted.min(room));

    let session = Session::open_with(&model, SessionOptions { max_tokens: Some(info.ctx_max - room + max_new) })?;
    let prompt = session.prefill(&tokens).map_err(|error| match error {
        llm::Error::ContextFull(fit) => ApiError::context_length(tokens.len(), fit),
        other => other.into(),
    })?;
    let generation = session.generate(&options(parameters, max_new))?;
    Ok(Begun { model, prompt, generation })
}

fn options(parameters: &Parameters, max_new: u32) -> GenerateOptions {
    let mut sampler = parameters.sampler;
    // The penalties look at the whole answer, as OpenAI's do, and the prompt is
    // never among what they look at.
    sampler.penalty_window = max_new;
    let (flush_tokens, flush_ms) = match parameters.delivery {
        Delivery::Whole => (BATCH_TOKENS, BATCH_MS),
        Delivery::Events(_) => (1, 0),
    };
    GenerateOptions {
        stop_text: parameters.stop.clone(),
        bias: parameters.bias.clone(),
        top_logprobs: parameters.top_logprobs,
        flush_tokens,
        flush_ms,
        ..GenerateOptions::new(max_new, sampler)
    }
}
