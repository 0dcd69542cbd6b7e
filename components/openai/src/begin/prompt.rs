//! What the model is given to read.

use chat_format::{Choice, Forced, Format, Impossible, force};
use nala_sdk::chat::{self, Origin, Piece, Template};
use nala_sdk::llm::{Info, Model, Token};

use super::length;
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
#[derive(Debug)]
pub(crate) struct Written {
    /// The tokens.
    pub(crate) tokens: Vec<Token>,
    /// Their text.
    pub(crate) text: String,
    /// The notation of the answer. None: it is text.
    pub(crate) format: Option<Format>,
    /// The tools that may be called.
    pub(crate) tools: Vec<chat_format::Tool>,
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

fn end_of(pieces: &[Piece]) -> String {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    tail(&text).to_owned()
}

impl Written {
    /// The end of the text, in which the answer may have begun.
    pub(super) fn tail(&self) -> &str {
        tail(&self.text)
    }

    /// The control tokens that have to be seen to read the answer.
    pub(super) fn shown(&self, model: &Model) -> Vec<Token> {
        let markers = self.format.map_or(&[][..], Format::markers);
        let token = |marker: &&str| match model.encode_template(marker).ok()?[..] {
            [token] => Some(token),
            _ => None,
        };
        markers.iter().filter_map(token).take(MAX_SHOWN).collect()
    }
}

/// Writes the prompt of a request.
///
/// # Errors
/// 400 for what the template refuses or what never fits.
pub(crate) fn write(model: &Model, info: &Info, ask: &Ask) -> Result<Written, ApiError> {
    let plain =
        |tokens, text: &str| Written { tokens, text: text.to_owned(), format: None, tools: vec![], forced: None };
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
    let mut pieces = render(conversation, template).map_err(|error| match error {
        chat::Error::Failed(reason) if bytes >= MUCH_TEXT => ApiError::too_long_to_render(param, bytes, &reason),
        other => ApiError::from(nala_sdk::Error::from(other)).about(param),
    })?;
    let forced = forced(format, conversation)?;
    // What follows a grammar from its first token on has no room for a thought.
    if (forced.is_some() || output != &Output::Free)
        && let Some(end) = format.end_of_thought(&end_of(&pieces))
    {
        pieces.push(piece(Origin::Template, end));
    }
    if let Some(forced) = &forced {
        pieces.push(piece(Origin::Template, &forced.prefix));
    }
    let tools = match conversation.choice {
        Choice::None => Vec::new(),
        _ => conversation.tools.clone(),
    };
    let text = pieces.iter().map(|piece| piece.text.as_str()).collect();
    Ok(Written { tokens: chat::encode(model, &pieces)?, text, format: Some(format), tools, forced })
}

/// The pieces of the prompt, up to the beginning of the answer.
fn render(conversation: &Conversation, template: Template) -> Result<Vec<Piece>, chat::Error> {
    let mut messages = conversation.messages.clone();
    let begun = match conversation.last {
        Last::Answered => None,
        Last::Continued => messages.pop(),
    };
    let tool = |tool: &chat_format::Tool| chat::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.as_ref().map(|schema| serde_json::Value::Object(schema.clone()).to_string()),
    };
    let variables = &conversation.variables;
    let mut pieces = chat::render(&chat::Request {
        template,
        messages,
        tools: conversation.tools.iter().map(tool).collect(),
        add_generation_prompt: true,
        extra: (!variables.is_empty()).then(|| serde_json::Value::Object(variables.clone()).to_string()),
    })?;
    if let Some(begun) = begun {
        pieces.push(piece(Origin::User, &begun.content.joined()));
    }
    Ok(pieces)
}

fn forced(format: Format, conversation: &Conversation) -> Result<Option<Forced>, ApiError> {
    let forced = force(format, &conversation.tools, &conversation.choice, conversation.parallel);
    forced.map_err(|error| match error {
        Impossible::NoTools => {
            ApiError::missing("tools", "'tool_choice' asks for a call, and there is nothing to call")
        }
        other => ApiError::invalid("tool_choice", format!("'tool_choice' cannot be followed: {other}")),
    })
}
