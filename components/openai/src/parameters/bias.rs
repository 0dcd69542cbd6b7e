//! The `logit_bias` parameter.

use nala_sdk::llm::{Bias, Token};
use serde_json::Value;

use crate::brief::{brief, short};
use crate::error::ApiError;

/// The most tokens that the host biases.
pub(crate) const MAX_BIAS: usize = 4096;

/// The range of a bias, as OpenAI has it.
const MOST: f64 = 100.0;

/// Reads an object of token ids and what is added to their logits.
pub(crate) fn read(value: Option<&Value>) -> Result<Vec<Bias>, ApiError> {
    let wrong = |message: String| ApiError::invalid("logit_bias", message);
    let Some(value) = value else { return Ok(Vec::new()) };
    let Value::Object(map) = value else {
        let must = "must be an object of token ids and numbers from -100 to 100";
        return Err(wrong(format!("'logit_bias' {must}, not {}", brief(value))));
    };
    if map.len() > MAX_BIAS {
        return Err(wrong(format!("'logit_bias' has {} tokens, but at most {MAX_BIAS} are allowed", map.len())));
    }
    map.iter().map(|(token, add)| one(token, add).map_err(wrong)).collect()
}

fn one(token: &str, add: &Value) -> Result<Bias, String> {
    let at = format!("'logit_bias[{:?}]'", short(token));
    // As numbers are printed: "005" and "+5" would be other names of token 5,
    // with which an object could contradict itself.
    let id = token.parse::<Token>().ok().filter(|id| id.to_string() == token);
    let Some(id) = id else {
        return Err(format!("{at} names no token: write its id as a plain decimal number, without sign or zeros"));
    };
    match add.as_f64().filter(|add| (-MOST..=MOST).contains(add)) {
        #[allow(clippy::cast_possible_truncation, reason = "the range is small")]
        Some(add) => Ok(Bias { id, add: add as f32 }),
        None => Err(format!("{at} must be a number from -100 to 100, not {}", brief(add))),
    }
}
