//! Conversations and the prompts made of them: `nala:chat`.
//!
//! [`prompt`] does it all: it takes the model's own template, has it rendered
//! in its own sandbox and turns the pieces into tokens, so that text from
//! outside can never become a control token.

mod join;

use crate::bindings::nala::chat::render as host;
use crate::llm::{Model, Token};

pub use crate::bindings::nala::chat::types::{
    Content, Error, Message, Origin, Piece, Request, Template, Tool, ToolCall,
};

/// The template used for a model whose file brings none: ChatML, which most
/// models without a template were tuned on or cope with.
pub const CHATML: &str = "{% for message in messages %}\
    {{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
    {% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

impl Message {
    /// A message of any role, with text alone.
    ///
    /// ```
    /// use nala_sdk::chat::{Content, Message};
    /// let message = Message::new("user", "Hello");
    /// assert_eq!(message.content, Content::Text("Hello".to_owned()));
    /// ```
    #[must_use]
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: Content::Text(content.into()),
            reasoning: None,
            name: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// What the operator tells the model.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// What the user says.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// What the model answered earlier.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

impl Content {
    /// The whole text, parts joined by line breaks; empty where there is none.
    #[must_use]
    pub fn joined(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.join("\n"),
        }
    }
}

impl Template {
    /// The template of the model's file, or [`CHATML`] where it has none, with
    /// the texts of its special tokens.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let text = |token: Option<Token>| {
            let bytes = model.decode(&[token?]).ok()?;
            String::from_utf8(bytes).ok()
        };
        Self {
            source: model.chat_template().unwrap_or_else(|| CHATML.to_owned()),
            bos_token: text(model.bos_token()),
            eos_token: text(model.end_tokens().first().copied()),
        }
    }
}

/// Renders a conversation. The pieces, joined, are the prompt.
///
/// # Errors
/// [`Error`], whose cases say whose fault it is.
pub fn render(request: &Request) -> Result<Vec<Piece>, Error> {
    host::render(request)
}

/// The tokens of a conversation up to the start of the assistant's turn, by the
/// model's own template.
///
/// # Errors
/// [`crate::Error::Chat`] when the template fails or refuses the conversation,
/// [`crate::Error::Llm`] when its text cannot be tokenised.
pub fn prompt(model: &Model, messages: &[Message]) -> Result<Vec<Token>, crate::Error> {
    let pieces = render(&Request {
        template: Template::of(model),
        messages: messages.to_vec(),
        tools: Vec::new(),
        add_generation_prompt: true,
        extra: None,
    })?;
    Ok(encode(model, &pieces)?)
}

/// The tokens of rendered pieces: the template's may be control tokens, text
/// from outside never is. Starts with the model's BOS token if it wants one and
/// the template printed none.
///
/// Many SentencePiece vocabularies expect a space before a text that starts a
/// prompt or follows a control token. It is put there, as llama.cpp does for a
/// prompt as a whole, and not before pieces that go on from others.
///
/// # Errors
/// As [`Model::encode`].
pub fn encode(model: &Model, pieces: &[Piece]) -> Result<Vec<Token>, crate::llm::Error> {
    let mut tokens = join::pieces(model, pieces)?;
    match model.bos_token() {
        Some(bos) if model.adds_bos() && tokens.first() != Some(&bos) => tokens.insert(0, bos),
        _ => {}
    }
    Ok(tokens)
}

/// The tokens behind an assistant's turn that a session holds already: its end, the
/// messages that answer it, and the beginning of the next turn. What the messages say is
/// text, whatever it looks like: it never becomes a control token.
///
/// # Errors
/// As [`prompt`], and [`crate::Error::Status`] where the template prints a turn other than
/// it is given.
pub fn behind_turn(model: &Model, tools: &[Tool], answers: Vec<Message>) -> Result<Vec<Token>, crate::Error> {
    behind_turn_with(model, tools, answers, None)
}

/// The same where the template is given further variables, a JSON object as text: those
/// that the beginning was rendered with.
///
/// # Errors
/// As [`behind_turn`].
pub fn behind_turn_with(
    model: &Model,
    tools: &[Tool],
    answers: Vec<Message>,
    variables: Option<&str>,
) -> Result<Vec<Token>, crate::Error> {
    /// Stands for the turn.
    const TURN: &str = "(turn)";
    let pieces = render(&Request {
        template: Template::of(model),
        messages: [vec![Message::user("(task)"), Message::assistant(TURN)], answers].concat(),
        tools: tools.to_vec(),
        add_generation_prompt: true,
        extra: variables.map(str::to_owned),
    })?;
    let behind = pieces.iter().skip_while(|piece| piece.origin != Origin::User || piece.text != TURN).skip(1);
    let mut tokens = Vec::new();
    for piece in behind {
        tokens.extend(match piece.origin {
            Origin::Template => model.encode_template(&piece.text)?,
            Origin::User => model.encode(&piece.text)?,
        });
    }
    if tokens.is_empty() {
        let why = "the model's template does not print an answer as it is given";
        return Err(crate::Error::Status(500, why.to_owned()));
    }
    Ok(tokens)
}

/// The error in words for people.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::Template(text) => format!("the model's chat template failed: {text}"),
        Error::Refused(text) => {
            format!("the model's chat template refuses this conversation: {text}")
        }
        Error::Invalid(text) => format!("the conversation is malformed: {text}"),
        Error::Failed(text) => format!("the component that renders chat templates failed: {text}"),
    }
}
