//! What a template prints behind a turn: its end, what the tools said, and the beginning
//! of the next turn.

use nala_sdk::Error;
use nala_sdk::chat::{self, Content, Message, Origin, Piece, Template, Tool};
use nala_sdk::llm::{Model, Token};

/// Stands for the turn, which the session holds already.
const TURN: &str = "(turn)";

/// The tokens behind a turn to which the tools have said these. What they said is text,
/// whatever it looks like: it never becomes a control token.
pub(crate) fn tokens(model: &Model, tools: &[Tool], said: &[String]) -> Result<Vec<Token>, Error> {
    let results = |role: &str| said.iter().map(|text| Message::new(role, text.as_str())).collect::<Vec<_>>();
    let rendered = render(model, tools, results("tool")).or_else(|error| match error {
        // Not every template has a place for tools; all have one for the user.
        chat::Error::Template(_) | chat::Error::Refused(_) => render(model, tools, results("user")),
        other => Err(other),
    });
    let pieces = rendered.map_err(Error::from)?;
    let behind = pieces.iter().skip_while(|piece| piece.origin != Origin::User || piece.text != TURN).skip(1);
    let mut tokens = Vec::new();
    for Piece { origin, text } in behind {
        tokens.extend(match origin {
            Origin::Template => model.encode_template(text)?,
            Origin::User => model.encode(text)?,
        });
    }
    if tokens.is_empty() {
        return Err(Error::Status(500, "the model's template does not print an answer as it is given".to_owned()));
    }
    Ok(tokens)
}

fn render(model: &Model, tools: &[Tool], results: Vec<Message>) -> Result<Vec<Piece>, chat::Error> {
    let mut turn = Message::assistant(TURN);
    turn.content = Content::Text(TURN.to_owned());
    chat::render(&chat::Request {
        template: Template::of(model),
        messages: [vec![Message::user("(task)"), turn], results].concat(),
        tools: tools.to_vec(),
        add_generation_prompt: true,
        extra: None,
    })
}
