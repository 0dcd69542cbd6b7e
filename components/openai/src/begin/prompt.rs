//! What the model is given to read.

use chat_format::{Choice, Forced, Format, Impossible, Parallel, force};
use nala_sdk::chat::{self, Message, Origin, Piece, Template};
use nala_sdk::llm::{Info, Model, Token};

use super::length;
use super::said::Answering;
use crate::ask::{Ask, Conversation, Last, Prompt};
use crate::error::ApiError;
use crate::parameters::output::Output;

/// From here on a renderer that fails is taken to have failed for the length of
/// the conversation: it has memory for a few copies of some megabytes.
const MUCH_TEXT: usize = 1 << 20;

/// Bytes of the prompt's end in which a template may have begun the answer.
const TAIL: usize = 512;

/// The most control tokens whose text the host shows.
const MAX_SHOWN: usize = 64;

/// A prompt in tokens, and how the answer to it is to be read.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// The tokens.
    pub(crate) tokens: Vec<Token>,
    /// Their text.
    pub(crate) text: String,
    /// The notation of the answer. None: it is text.
    pub(crate) format: Option<Format>,
    /// The tools that may be called.
    pub(crate) tools: Vec<chat_format::Tool>,
    /// Whether several of them may be called at once, where calls are held to a
    /// grammar.
    pub(super) parallel: Parallel,
    /// How a call is forced.
    pub(super) forced: Option<Forced>,
}

/// The end of a text, in which the answer may have begun.
fn tail(text: &str) -> &str {
    let mut at = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    text.get(at..).unwrap_or_default()
}

impl Written {
    /// How the answer is read.
    pub(super) fn answering(&self) -> Answering {
        Answering { format: self.format, tools: self.tools.clone(), tail: tail(&self.text).to_owned() }
    }

    /// The control tokens that have to be seen to read the answer.
    pub(super) fn shown(&self, model: &Model) -> Vec<Token> {
        let markers = self.format.map_or(&[][..], Format::markers);
        markers.iter().filter_map(|marker| model.token_of(marker)).take(MAX_SHOWN).collect()
    }
}

/// Writes the prompt of a request.
///
/// # Errors
/// 400 for what the template refuses or what never fits.
pub(crate) fn write(model: &Model, info: &Info, ask: &Ask) -> Result<Written, ApiError> {
    let plain = |tokens, text: &str| Written {
        tokens,
        text: text.to_owned(),
        format: None,
        tools: vec![],
        parallel: Parallel::Allowed,
        forced: None,
    };
    match &ask.prompt {
        Prompt::Conversation(conversation) => converse(model, info, ask.param, conversation, &ask.options.output),
        Prompt::Text(text) => {
            length::refuse_what_never_fits(ask.param, text.len(), info.ctx_max)?;
            Ok(plain(chat::encode(model, &[piece(Origin::User, text)])?, text))
        }
        Prompt::Template(text) => {
            length::refuse_what_never_fits(ask.param, text.len(), info.ctx_max)?;
            Ok(plain(chat::encode(model, &[piece(Origin::Template, text)])?, text))
        }
        Prompt::Tokens(tokens) => match tokens.iter().find(|token| **token >= info.n_vocab) {
            Some(token) => {
                let last = info.n_vocab.saturating_sub(1);
                let message = format!("'{}' has token {token}, but the model's last is {last}", ask.param);
                Err(ApiError::invalid(ask.param, message))
            }
            None => Ok(plain(tokens.clone(), "")),
        },
    }
}

fn piece(origin: Origin, text: &str) -> Piece {
    Piece { origin, text: text.to_owned() }
}

fn converse(
    model: &Model,
    info: &Info,
    param: &str,
    conversation: &Conversation,
    output: &Output,
) -> Result<Written, ApiError> {
    let bytes = length::text_bytes(&conversation.messages);
    length::refuse_what_never_fits(param, bytes, info.ctx_max)?;
    let template = Template::of(model);
    let format = Format::of_template(&template.source);
    let (mut messages, mut begun) = (conversation.messages.clone(), None);
    if conversation.last == Last::Continued {
        begun = messages.pop();
    }
    refuse_what_cannot_go_on(param, conversation, begun.as_ref())?;
    let mut pieces = render(conversation, messages, template).map_err(|error| match error {
        chat::Error::Failed(reason) if bytes >= MUCH_TEXT => ApiError::too_long_to_render(param, bytes, &reason),
        // The template does for plain conversations, or nobody would serve the model.
        chat::Error::Template(reason) if !(conversation.tools.is_empty() && conversation.variables.is_empty()) => {
            let param = if conversation.tools.is_empty() { "chat_template_kwargs" } else { "tools" };
            ApiError::invalid(param, format!("the model's chat template cannot show what '{param}' says: {reason}"))
        }
        other => ApiError::from(nala_sdk::Error::from(other)).about(param),
    })?;
    let parallel = match format {
        // Who was not trained on calls finds no end of them.
        Format::Generic => Parallel::Single,
        _ => conversation.parallel,
    };
    let forced = forced(format, conversation, parallel)?;
    let mut text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let end_of_thought = format.end_of_thought(tail(&text));
    let mut add = |origin, more: &str| {
        text.push_str(more);
        pieces.push(piece(origin, more));
    };
    // What follows a grammar from its first token on has no room for a thought, and what
    // has begun already is the answer.
    if (forced.is_some() || output != &Output::Free || begun.is_some())
        && let Some(end) = end_of_thought
    {
        add(Origin::Template, end);
    }
    if let Some(begun) = &begun {
        add(Origin::User, &begun.content.joined());
    }
    if let Some(forced) = &forced {
        add(Origin::Template, &forced.prefix);
    }
    let tools = match conversation.choice {
        Choice::None => Vec::new(),
        _ => conversation.tools.clone(),
    };
    Ok(Written { tokens: chat::encode(model, &pieces)?, text, format: Some(format), tools, parallel, forced })
}

/// Refuses to go on from a message that is more than a text: a template would have
/// ended it.
fn refuse_what_cannot_go_on(param: &str, conversation: &Conversation, begun: Option<&Message>) -> Result<(), ApiError> {
    let index = conversation.messages.len().saturating_sub(1);
    let what = match begun {
        Some(message) if !message.tool_calls.is_empty() => "calls",
        Some(message) if message.reasoning.is_some() => "thoughts",
        _ => return Ok(()),
    };
    let at = format!("{param}[{index}]");
    let message =
        format!("'{at}' is to be gone on from, but has {what}, behind which there is no going on; leave them out");
    Err(ApiError::invalid(at, message))
}

/// The pieces of the prompt, up to the beginning of the answer.
fn render(conversation: &Conversation, messages: Vec<Message>, template: Template) -> Result<Vec<Piece>, chat::Error> {
    chat::render(&chat::Request {
        template,
        messages,
        tools: shown(conversation),
        add_generation_prompt: true,
        extra: variables(conversation),
    })
}

/// The tools as templates show them.
pub(super) fn shown(conversation: &Conversation) -> Vec<chat::Tool> {
    let tool = |tool: &chat_format::Tool| chat::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.as_ref().map(|schema| serde_json::Value::Object(schema.clone()).to_string()),
    };
    conversation.tools.iter().map(tool).collect()
}

/// The variables of a template, a JSON object as text.
pub(super) fn variables(conversation: &Conversation) -> Option<String> {
    let variables = &conversation.variables;
    (!variables.is_empty()).then(|| serde_json::Value::Object(variables.clone()).to_string())
}

fn forced(format: Format, conversation: &Conversation, parallel: Parallel) -> Result<Option<Forced>, ApiError> {
    let forced = force(format, &conversation.tools, &conversation.choice, parallel);
    forced.map_err(|error| match error {
        Impossible::NoTools => {
            ApiError::missing("tools", "'tool_choice' asks for a call, and there is nothing to call")
        }
        other => ApiError::invalid("tool_choice", format!("'tool_choice' cannot be followed: {other}")),
    })
}
