//! The grammar that an answer is held to.

use std::rc::Rc;

use chat_format::{Choice, Forced, Format, Opening, Strict, answer_or};
use nala_sdk::llm::{self, Grammar, Model};

use super::Written;
use super::lookout::{Signs, Sure};
use super::strict::Plan;
use crate::ask::{Ask, Prompt};
use crate::error::ApiError;
use crate::parameters::output::{Output, Unknown};

/// The grammar of a forced call, or else of what the answer has to be.
pub(super) fn grammar(model: &Model, ask: &Ask, written: &Written) -> Result<Option<Grammar>, ApiError> {
    if let Some(forced) = &written.forced {
        let compiled = Grammar::lark(model, &forced.grammar);
        return compiled.map(Some).map_err(refused("tools"));
    }
    match &ask.options.output {
        Output::Free => Ok(None),
        Output::Gbnf(_) if may_call(ask, written) => Err(leaves_no_way("grammar")),
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
            if !may_call(ask, written) {
                return Ok(Some(grammar));
            }
            let opening = written.format.and_then(Format::opening);
            match (opening, serde_json::from_str(schema)) {
                (Some(Opening::Marker(opening)), Ok(schema)) if is_text(model, opening) => {
                    Grammar::lark(model, &answer_or(opening, &schema)).map(Some).map_err(refused(param))
                }
                _ => Err(leaves_no_way(param)),
            }
        }
    }
}

/// Whether the model may call a tool as it likes.
fn may_call(ask: &Ask, written: &Written) -> bool {
    match &ask.prompt {
        Prompt::Conversation(conversation) => conversation.choice == Choice::Auto && !written.tools.is_empty(),
        Prompt::Text(_) | Prompt::Template(_) | Prompt::Tokens(_) => false,
    }
}

/// Whether a marker is text to a model, which a grammar can let through, and no
/// control token.
fn is_text(model: &Model, marker: &str) -> bool {
    matches!((model.encode(marker), model.encode_template(marker)), (Ok(text), Ok(named)) if text == named)
}

fn leaves_no_way(param: &str) -> ApiError {
    let message = format!(
        "'{param}' leaves this model no way to call one of the 'tools'; send \"tool_choice\": \"none\" for an answer \
         in that form, or \"required\" for a call"
    );
    ApiError::invalid(param, message)
}

/// What holds calls that the model makes as it likes to a grammar: where a tool is
/// strict, and where the rest of the answer follows one.
///
/// # Errors
/// 400 where the notation does not tell calls from what else is said.
pub(super) fn strict(model: &Rc<Model>, ask: &Ask, written: &Written) -> Result<Option<Plan>, ApiError> {
    let strict = written.tools.iter().position(|tool| tool.strict == Strict::Enforced);
    let form = ask.options.output != Output::Free;
    let (Some(format), true) = (written.format, may_call(ask, written) && (form || strict.is_some())) else {
        return Ok(None);
    };
    let sure = |marker: &str| match (form, is_text(model, marker)) {
        (true, _) => Sure::AtFirst,
        (false, true) => Sure::WithACall,
        (false, false) => Sure::Always,
    };
    let Some(signs) = Signs::of(format, &written.tools, sure) else {
        let message = format!(
            "'tools[{}]' is strict, but this model writes calls in a way that cannot be held to a schema unless they \
             are required; leave out 'strict', or ask for the call by 'tool_choice'",
            strict.unwrap_or(0)
        );
        return Err(ApiError::unsupported("tools", message));
    };
    let compile = |forced: &Forced| Grammar::lark(model, &forced.grammar).map_err(refused("tools"));
    Plan::of(model, signs, (format, &written.tools, written.parallel), compile)
}

pub(super) fn refused(param: &'static str) -> impl Fn(llm::Error) -> ApiError {
    move |error| match error {
        llm::Error::Constraint(reason) => {
            ApiError::invalid(param, format!("'{param}' cannot be used as a grammar: {reason}"))
        }
        other => other.into(),
    }
}
