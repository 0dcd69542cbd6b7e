//! What of a vocabulary would end the process.

use std::collections::HashSet;
use std::io::Read;

use super::cursor::Cursor;
use super::value::{Value, Values};
use super::{Fault, shown};

/// The tokenizers that are served, as `tokenizer.ggml.model` names them. For
/// the others `llama-cpp-2` has no type and panics.
const SERVED: [&[u8]; 3] = [b"llama", b"gpt2", b"gemma4"];

/// Reads a list of tokens and returns how many there are.
///
/// llama.cpp reads tokens up to their first NUL, names empty ones after their
/// place, and ends the process where two are the same.
pub(super) fn tokens(cursor: &mut Cursor<impl Read>) -> Result<u64, Fault> {
    let count = cursor.strings()?;
    let mut known = HashSet::new();
    let mut empty = 0;
    for place in 0..count {
        let mut token = cursor.short("a token")?;
        if let Some(end) = token.iter().position(|&byte| byte == 0) {
            token.truncate(end);
        }
        if token.is_empty() {
            empty += 1;
            token = format!("[EMPTY_{place}]").into_bytes();
        }
        if known.contains(&token) {
            return Err(Fault::value(format!("tokenizer.ggml.tokens has `{}` twice", shown(&token))));
        }
        known.insert(token);
    }
    if count > 0 && empty == count {
        return Err(Fault::value("all texts of tokenizer.ggml.tokens are empty"));
    }
    Ok(count)
}

/// Checks the other keys of a tokenizer.
pub(super) fn check(values: &Values) -> Result<(), Fault> {
    match values.get("tokenizer.ggml.model") {
        // llama.cpp itself names a key that is missing or of another type.
        Some(Value::Text(model)) if !SERVED.contains(&model.as_slice()) => return Err(Fault::Tokenizer(shown(model))),
        Some(Value::LongText) => return Err(Fault::Tokenizer("a name of more than 1024 bytes".into())),
        _ => {}
    }
    match values.get("tokenizer.chat_template") {
        Some(template) if !template.is_text() => Err(Fault::value("tokenizer.chat_template is not a text")),
        _ => Ok(()),
    }
}
