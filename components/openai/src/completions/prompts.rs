//! The `prompt` parameter.

use nala_sdk::llm::Token;
use serde_json::Value;

use crate::ask::Prompt;
use crate::brief::brief;
use crate::error::ApiError;
use crate::parameters::MAX_CHOICES;
use crate::turn::Bytes;

const PARAM: &str = "prompt";
const WHAT: &str = "a string, a list of strings, a list of token ids or a list of lists of token ids";

/// Who wrote the text of a prompt (`parse_special`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Anybody: what looks like a control token in it is text.
    ByAnybody,
    /// Somebody who wrote it for this model, control tokens included.
    ForTheModel,
}

/// Whether answers begin with the prompt (`echo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// They do.
    Prompt,
    /// They do not.
    Nothing,
}

impl Echo {
    /// What the answers to a prompt begin with. Tokens are written as the text that
    /// they stand for.
    #[must_use]
    pub fn of(self, prompt: &Prompt, bytes: &mut impl Bytes) -> String {
        match (self, prompt) {
            (Self::Nothing, _) | (Self::Prompt, Prompt::Conversation(_)) => String::new(),
            (Self::Prompt, Prompt::Text(text) | Prompt::Template(text)) => text.clone(),
            (Self::Prompt, Prompt::Tokens(tokens)) => {
                let bytes: Vec<u8> = tokens.iter().flat_map(|token| bytes(*token)).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
        }
    }
}

/// Reads one prompt, or several.
pub(super) fn read(value: Option<&Value>, written: Written) -> Result<Vec<Prompt>, ApiError> {
    let value = value.ok_or_else(|| ApiError::missing(PARAM, WHAT))?;
    let text = |text: &str| match written {
        Written::ByAnybody => Prompt::Text(text.to_owned()),
        Written::ForTheModel => Prompt::Template(text.to_owned()),
    };
    let list = match value {
        Value::String(one) => return Ok(vec![text(one)]),
        Value::Array(list) => list,
        other => return Err(wrong(PARAM, WHAT, other)),
    };
    match list.first() {
        None => Err(wrong(PARAM, WHAT, value)),
        Some(Value::Number(_)) => Ok(vec![Prompt::Tokens(tokens(list, PARAM)?)]),
        Some(_) if list.len() as u64 > MAX_CHOICES => {
            let message = format!("'{PARAM}' has {} prompts, but at most {MAX_CHOICES} are allowed", list.len());
            Err(ApiError::invalid(PARAM, message))
        }
        Some(Value::String(_)) => each(list, |value, at| match value {
            Value::String(one) => Ok(text(one)),
            other => Err(wrong(at, "a string, as those before it", other)),
        }),
        Some(Value::Array(_)) => each(list, |value, at| match value {
            Value::Array(ids) if !ids.is_empty() => Ok(Prompt::Tokens(tokens(ids, at)?)),
            other => Err(wrong(at, "a list of at least one token id", other)),
        }),
        Some(other) => Err(wrong("prompt[0]", "a string, a token id or a list of token ids", other)),
    }
}

fn each(list: &[Value], one: impl Fn(&Value, &str) -> Result<Prompt, ApiError>) -> Result<Vec<Prompt>, ApiError> {
    list.iter().enumerate().map(|(index, value)| one(value, &format!("{PARAM}[{index}]"))).collect()
}

/// Token ids. Whether the model has them is found out when it is there.
pub(crate) fn tokens(list: &[Value], at: &str) -> Result<Vec<Token>, ApiError> {
    let one = |(index, value): (usize, &Value)| {
        let id = value.as_u64().and_then(|id| Token::try_from(id).ok());
        id.ok_or_else(|| wrong(&format!("{at}[{index}]"), "a token id, an integer from 0", value))
    };
    list.iter().enumerate().map(one).collect()
}

fn wrong(at: &str, must: &str, value: &Value) -> ApiError {
    ApiError::invalid(at, format!("'{at}' must be {must}, not {}", brief(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompts_are_read_in_every_form() {
        let text = |text: &str| Prompt::Text(text.to_owned());
        for (value, expected) in [
            (json!("a"), vec![text("a")]),
            (json!(["a", ""]), vec![text("a"), text("")]),
            (json!([1, 2]), vec![Prompt::Tokens(vec![1, 2])]),
            (json!([[1, 2], [3]]), vec![Prompt::Tokens(vec![1, 2]), Prompt::Tokens(vec![3])]),
        ] {
            assert_eq!(read(Some(&value), Written::ByAnybody), Ok(expected), "{value}");
        }
        let template = read(Some(&json!(["<|im_end|>"])), Written::ForTheModel);
        assert_eq!(template, Ok(vec![Prompt::Template("<|im_end|>".to_owned())]));
        let many: Vec<u32> = (0..1000).collect();
        assert!(read(Some(&json!(many)), Written::ByAnybody).is_ok(), "a prompt of many tokens is one prompt");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, param) in [
            (json!([]), "prompt"),
            (json!({}), "prompt"),
            (json!(1), "prompt"),
            (json!([null]), "prompt[0]"),
            (json!([1, "a"]), "prompt[1]"),
            (json!([1, -1]), "prompt[1]"),
            (json!([1, 4_294_967_296_u64]), "prompt[1]"),
            (json!([1.5]), "prompt[0]"),
            (json!(["a", 1]), "prompt[1]"),
            (json!([[1], []]), "prompt[1]"),
            (json!([[1], [2, "a"]]), "prompt[1][1]"),
            (json!([[1], 2]), "prompt[1]"),
            (json!(vec!["a"; 9]), "prompt"),
        ] {
            let error = read(Some(&value), Written::ByAnybody).expect_err(&value.to_string());
            assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{value}: {}", error.message);
        }
        assert_eq!(read(None, Written::ByAnybody).unwrap_err().code, Some("missing_required_parameter"));
    }

    #[test]
    fn prompts_are_echoed_as_text() {
        let mut bytes = |token: Token| vec![b'a' + u8::try_from(token).unwrap()];
        let tokens = Prompt::Tokens(vec![0, 2]);
        assert_eq!(Echo::Prompt.of(&tokens, &mut bytes), "ac");
        assert_eq!(Echo::Prompt.of(&Prompt::Template("<s>".to_owned()), &mut bytes), "<s>");
        assert_eq!(Echo::Nothing.of(&tokens, &mut bytes), "");
    }
}
