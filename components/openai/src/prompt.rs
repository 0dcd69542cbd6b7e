//! From a checked request to running generations.

use nala_sdk::chat::{self, Content, Message};
use nala_sdk::llm::{
    self, GenerateOptions, Generation, Grammar, Model, PrefillInfo, Priority, Sampler, Session, SessionOptions, Token,
};

use crate::error::ApiError;
use crate::parameters::output::{Output, Unknown};
use crate::parameters::{AtEnd, Delivery, Parameters};

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

/// Generations that have begun, and what their prompt cost.
pub(crate) struct Begun {
    pub(crate) model: Model,
    pub(crate) prompt: PrefillInfo,
    /// One for each choice.
    pub(crate) generations: Vec<Generation>,
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
    let grammar = grammar(&model, &parameters.output)?;
    let breakers = breakers(&model, parameters)?;

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
    let max_new = match parameters.choices {
        1 => max_new,
        n => share(parameters.max_tokens, max_new, tokens.len(), n, llm::limits().kv_cells)?,
    };

    let most = info.ctx_max - room + max_new;
    // Somebody waits for it.
    let options = SessionOptions { max_tokens: Some(most), priority: Priority::Interactive, adapter: None };
    let session = Session::open_with(&model, options)?;
    let prompt = session.prefill(&tokens).map_err(|error| match error {
        llm::Error::ContextFull(fit) => ApiError::context_length(tokens.len(), fit),
        other => other.into(),
    })?;
    if let Some(grammar) = grammar {
        session.constrain(&grammar)?;
    }
    let options = options_of(parameters, max_new, breakers);
    let mut sessions = (1..parameters.choices).map(|_| session.fork()).collect::<Result<Vec<_>, _>>()?;
    sessions.insert(0, session);
    let run = |(index, session): (u64, Session)| session.generate(&choice(&options, index));
    let generations = (0..).zip(sessions).map(run).collect::<Result<_, _>>()?;
    Ok(Begun { model, prompt, generations })
}

/// The grammar of what the answer has to be.
fn grammar(model: &Model, output: &Output) -> Result<Option<Grammar>, ApiError> {
    let refused = |param: &'static str| {
        move |error| match error {
            llm::Error::Constraint(reason) => {
                ApiError::invalid(param, format!("'{param}' cannot be used as a grammar: {reason}"))
            }
            other => other.into(),
        }
    };
    match output {
        Output::Free => Ok(None),
        Output::Gbnf(text) => Grammar::gbnf(model, text).map(Some).map_err(refused("grammar")),
        Output::Json { schema, unknown, param } => {
            let grammar = Grammar::json_schema(model, schema).map_err(refused(param))?;
            if *unknown == Unknown::Refused
                && let Some(warning) = grammar.warnings().first()
            {
                let message =
                    format!("'{param}' cannot be followed strictly: {warning}; change it, or leave out 'strict'");
                return Err(ApiError::invalid(*param, message));
            }
            Ok(Some(grammar))
        }
    }
}

/// The tokens over which no repetition reaches that the sampler looks for.
fn breakers(model: &Model, parameters: &Parameters) -> Result<Vec<Token>, ApiError> {
    if parameters.sampler.dry.is_none() {
        return Ok(Vec::new());
    }
    let one = |text: &String| match model.encode(text)?[..] {
        [token] => Ok(token),
        ref tokens => {
            let param = "dry_sequence_breakers";
            let message = format!("'{param}' has {text:?}, which is {} tokens of the model and not one", tokens.len());
            Err(ApiError::invalid(param, message))
        }
    };
    parameters.dry_breakers.iter().map(one).collect()
}

/// How many tokens each of `n` choices may have. All of them hold the prompt, and
/// the KV cells of a request, `cells`, must do for all.
fn share(asked: Option<u32>, max_new: u32, prompt: usize, n: u32, cells: u64) -> Result<u32, ApiError> {
    let each = cells / u64::from(n.max(1));
    let room = u32::try_from(each.saturating_sub(prompt as u64)).unwrap_or(u32::MAX);
    // Without a wish for a length the answers end where there is no more room, as a
    // single one does.
    if room == 0 || asked.is_some() && room < max_new {
        return Err(ApiError::invalid(
            "n",
            format!(
                "'n' is {n}: {n} answers of {max_new} tokens to a prompt of {prompt} do not fit into the {cells} KV cells \
                 of a request; lower 'n' or 'max_tokens'"
            ),
        ));
    }
    Ok(max_new.min(room))
}

/// Each choice draws with a seed of its own, so that they differ.
fn choice(options: &GenerateOptions, index: u64) -> GenerateOptions {
    let seed = options.sampler.seed.map(|seed| seed.wrapping_add(index));
    GenerateOptions { sampler: Sampler { seed, ..options.sampler }, ..options.clone() }
}

/// Everything that somebody wrote, in bytes. A template may leave some of it out,
/// but none does so with what makes a conversation long.
fn text_bytes(messages: &[Message]) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of = |message: &Message| {
        let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let content = match &message.content {
            Content::None => 0,
            Content::Text(text) => text.len(),
            Content::Parts(parts) => parts.iter().map(String::len).sum(),
        };
        content + text(&message.reasoning) + text(&message.name) + calls.sum::<usize>()
    };
    messages.iter().map(of).sum()
}

/// Refuses a conversation that cannot fit into the context, before it is copied
/// into the renderer, whose memory might not suffice for it.
fn refuse_what_never_fits(bytes: usize, context: u32) -> Result<(), ApiError> {
    let most = usize::try_from(context).unwrap_or(usize::MAX).saturating_mul(TOKEN_BYTES);
    if bytes > most { Err(ApiError::too_long(bytes, most, context)) } else { Ok(()) }
}

fn options_of(parameters: &Parameters, max_new: u32, dry_breakers: Vec<Token>) -> GenerateOptions {
    let mut sampler = parameters.sampler;
    // The penalties never look at the prompt.
    sampler.penalty_window = sampler.penalty_window.min(max_new);
    let (flush_tokens, flush_ms) = match parameters.delivery {
        Delivery::Whole => (BATCH_TOKENS, BATCH_MS),
        Delivery::Events(_) => (1, 0),
    };
    GenerateOptions {
        stop_text: parameters.stop.clone(),
        ignore_end: parameters.at_end == AtEnd::GoOn,
        dry_breakers,
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
    fn choices_share_the_cells_of_a_request() {
        // Each has 1,000 cells, 100 of which hold the prompt.
        assert_eq!(share(None, 7_900, 100, 8, 8_000), Ok(900));
        assert_eq!(share(Some(900), 900, 100, 8, 8_000), Ok(900));
        let error = share(Some(901), 901, 100, 8, 8_000).unwrap_err();
        assert_eq!((error.status, error.param.as_deref()), (400, Some("n")));
        assert!(error.message.contains("8000 KV cells"), "{}", error.message);
        assert!(share(None, 7_000, 1_000, 8, 8_000).is_err(), "no room for a single token");
    }

    #[test]
    fn choices_draw_differently_and_the_first_as_if_alone() {
        let seeded = |seed| GenerateOptions::new(1, Sampler { seed, ..Sampler::default() });
        assert_eq!(choice(&seeded(Some(7)), 0), seeded(Some(7)));
        assert_eq!(choice(&seeded(Some(u64::MAX)), 2).sampler.seed, Some(1));
        assert_eq!(choice(&seeded(None), 2).sampler.seed, None);
    }

    #[test]
    fn the_text_of_tool_calls_counts() {
        let mut message = Message::assistant("ab");
        message.tool_calls = vec![ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into() }];
        assert_eq!(text_bytes(&[message]), 5);
    }
}
