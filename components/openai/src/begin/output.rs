//! The grammar that an answer is held to.

use std::rc::Rc;

use chat_format::{Choice, Forced, Strict};
use nala_sdk::llm::{self, Grammar, Model};

use super::Written;
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

/// What holds calls that the model makes as it likes to the schemas of strict tools.
/// None where no tool is strict, or where its notation does not tell calls from what
/// else is said (`Format::opening`).
pub(super) fn strict(model: &Rc<Model>, ask: &Ask, written: &Written) -> Result<Option<Plan>, ApiError> {
    let Prompt::Conversation(conversation) = &ask.prompt else { return Ok(None) };
    let strict = written.tools.iter().any(|tool| tool.strict == Strict::Enforced);
    let (Some(format), true, Choice::Auto) = (written.format, strict, &conversation.choice) else { return Ok(None) };
    let prompt = u32::try_from(written.tokens.len()).unwrap_or(u32::MAX);
    let compile = |forced: &Forced| Grammar::lark(model, &forced.grammar).map_err(refused("tools"));
    Plan::of(model, format, &written.tools, written.parallel, prompt, compile)
}

fn refused(param: &'static str) -> impl Fn(llm::Error) -> ApiError {
    move |error| match error {
        llm::Error::Constraint(reason) => {
            ApiError::invalid(param, format!("'{param}' cannot be used as a grammar: {reason}"))
        }
        other => other.into(),
    }
}
