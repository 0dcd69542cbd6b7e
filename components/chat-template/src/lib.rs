//! Renders chat templates: a conversation becomes the prompt that a model was
//! trained on.
//!
//! Templates are Jinja programs that come in model files, so they are foreign
//! code: they run here, in a component with a store and limits of its own, on
//! [minijinja] set up to behave as transformers' environment does
//! (see [`mod@engine`]), with a budget of work, of nesting and of output.
//!
//! What comes out is not one text but pieces that say who wrote them, see
//! `origin.rs`: only the template's own text may name control tokens.
//!
//! A template renders what it knows. What it does not know of a conversation is
//! shown to it in another way, see `fit/`.

mod clock;
pub mod conversation;
mod depth;
pub mod engine;
mod fit;
mod json;
mod list;
mod manner;
mod methods;
mod origin;
mod percent;
mod print;
mod scan;
pub mod source;

use std::time::{SystemTime, UNIX_EPOCH};

use conversation::Conversation;
use engine::Program;
use source::Source;

pub use bindings::nala::chat::types::{Content, Error, Message, Origin, Piece, Request, Template, Tool, ToolCall};

/// What wit-bindgen makes of `wit/`.
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
mod bindings {
    wit_bindgen::generate!({
        world: "nala:chat/renderer",
        path: "../../wit/nala-chat",
        additional_derives: [PartialEq],
    });
}

/// The most bytes that a prompt may have: more than any context holds.
pub const MAX_PROMPT: usize = 8 * 1024 * 1024;

/// Renders a conversation at the present time.
///
/// # Errors
/// [`Error`], whose cases say whose fault it is.
pub fn render(request: &Request) -> Result<Vec<Piece>, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs());
    render_at(request, now)
}

/// Renders a conversation at a time given in seconds since 1970.
///
/// # Errors
/// As [`render`].
pub fn render_at(request: &Request, now: u64) -> Result<Vec<Piece>, Error> {
    let source = Source::of(&request.template.source)?;
    let conversation = Conversation::of(request, &source)?;
    let mark = origin::unused(&source, &conversation)?;
    let program = Program::compile(&source, now, Some(mark))?;
    let (conversation, prompt) = fit::fit(&program, &source, conversation, now)?;
    Ok(origin::of(&program, &source, mark, &conversation, &prompt))
}

#[cfg(target_family = "wasm")]
struct Component;

#[cfg(target_family = "wasm")]
impl bindings::exports::nala::chat::render::Guest for Component {
    fn render(request: Request) -> Result<Vec<Piece>, Error> {
        render(&request)
    }
}

#[cfg(target_family = "wasm")]
#[allow(
    unsafe_code,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    reason = "generated: exporting a function from a component"
)]
const _: () = {
    bindings::export!(Component with_types_in bindings);
};
