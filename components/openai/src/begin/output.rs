//! The grammar that an answer is held to.

use nala_sdk::llm::{self, Grammar, Model};

use super::Written;
use crate::ask::Ask;
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

fn refused(param: &'static str) -> impl Fn(llm::Error) -> ApiError {
    move |error| match error {
        llm::Error::Constraint(reason) => {
            ApiError::invalid(param, format!("'{param}' cannot be used as a grammar: {reason}"))
        }
        other => other.into(),
    }
}
