//! From a checked request to a running generation.

use nala_sdk::chat::{self, Message};
use nala_sdk::llm::{self, GenerateOptions, Generation, Model, PrefillInfo, Session, SessionOptions};

use crate::error::ApiError;
use crate::parameters::{Delivery, Parameters};

/// A whole answer is fetched in batches: it costs fewer calls of the host.
const BATCH_TOKENS: u32 = 64;

/// How long the first token of a batch may wait for the others, in milliseconds.
const BATCH_MS: u32 = 1000;

/// Bytes of text that a token stands for at the most, on the average of a whole
/// conversation. Vocabularies have longer tokens for blanks and dashes at most,
/// and the host refuses more than this for each token of the context, too.
const TOKEN_BYTES: usize = 128;

/// From here on a renderer that fails is taken to have failed for the length of
/// the conversation: it has memory for a few copies of some megabytes.
const MUCH_TEXT: usize = 1 << 20;

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

    let bytes = text_bytes(&parameters.messages);
    refuse_what_never_fits(bytes, info.ctx_max)?;
    let tokens = chat::prompt(&model, &parameters.messages).map_err(|error| match error {
        nala_sdk::Error::Chat(chat::Error::Failed(reason)) if bytes >= MUCH_TEXT => {
            ApiError::too_long_to_render(bytes, &reason)
        }
        other => other.into(),
    })?;
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

/// Everything that somebody wrote, in bytes. A template may leave some of it out,
/// but none does so with what makes a conversation long.
fn text_bytes(messages: &[Message]) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of = |message: &Message| {
        let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        text(&message.content) + text(&message.name) + calls.sum::<usize>()
    };
    messages.iter().map(of).sum()
}

/// Refuses a conversation that cannot fit into the context, before it is copied
/// into the renderer, whose memory might not suffice for it.
fn refuse_what_never_fits(bytes: usize, context: u32) -> Result<(), ApiError> {
    let most = usize::try_from(context).unwrap_or(usize::MAX).saturating_mul(TOKEN_BYTES);
    if bytes > most { Err(ApiError::too_long(bytes, most, context)) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use nala_sdk::chat::ToolCall;

    use super::*;

    #[test]
    fn a_conversation_that_never_fits_is_refused_before_it_is_rendered() {
        let messages = [Message::system("Be brief."), Message::user("x".repeat(9_500_000))];
        let bytes = text_bytes(&messages);
        assert_eq!(bytes, 9_500_009);
        let error = refuse_what_never_fits(bytes, 8192).unwrap_err();
        assert_eq!((error.status, error.code), (400, Some("context_length_exceeded")));
        assert_eq!(error.param.as_deref(), Some("messages"));
        assert!(
            error.message.contains("9500009 bytes") && error.message.contains("1048576 bytes"),
            "{}",
            error.message
        );
        assert_eq!(refuse_what_never_fits(8192 * TOKEN_BYTES, 8192), Ok(()));
        assert_eq!(refuse_what_never_fits(bytes, 131_072), Ok(()));
    }

    #[test]
    fn the_text_of_tool_calls_counts() {
        let mut message = Message::assistant("ab");
        message.tool_calls = vec![ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into() }];
        assert_eq!(text_bytes(&[message]), 5);
    }
}
