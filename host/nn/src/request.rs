//! The inputs of a call.

use crate::error::{Code, Error};
use crate::options::Options;
use crate::prompt::{Piece, Prompt};
use crate::tensor::{Element, Tensor};

/// The name of the output that is the text.
pub const TEXT: &str = "text";
/// The name of the output that says what it took.
pub const USAGE: &str = "usage";

/// What an input is.
enum Input {
    Text,
    Template,
    Options,
}

/// What the names of inputs stand for. The numbers are LlamaEdge's, whose inputs
/// have no names.
fn input(name: &str) -> Option<Input> {
    match name {
        "prompt" | "0" => Some(Input::Text),
        "template" => Some(Input::Template),
        "options" | "1" => Some(Input::Options),
        _ => None,
    }
}

/// Whether an input may have this name.
#[must_use]
pub fn is_input(name: &str) -> bool {
    input(name).is_some()
}

/// A call's inputs, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What it goes on from.
    pub prompt: Prompt,
    /// What else was asked for.
    pub options: Options,
}

impl Request {
    /// Reads named tensors. Those called `prompt` (or `0`) and `template` are the
    /// prompt's pieces, in their order; one called `options` (or `1`) is JSON.
    ///
    /// # Errors
    /// [`Error`] for a name that is not known, for a tensor that is not U8, for
    /// text that is not UTF-8, for options as [`Options::read`] tells, and where
    /// there is no prompt.
    pub fn read(inputs: impl IntoIterator<Item = (String, Tensor)>) -> Result<Self, Error> {
        let mut pieces = Vec::new();
        let mut options = None;
        for (name, tensor) in inputs {
            let Some(input) = input(&name) else {
                return Err(unknown(&name));
            };
            if tensor.element() != Element::U8 {
                let element = tensor.element();
                return Err(Error::invalid(format!("the input `{name}` is {element}; give its text as U8")));
            }
            match input {
                Input::Text => pieces.push(Piece::Text(text(&name, tensor)?)),
                Input::Template => pieces.push(Piece::Template(text(&name, tensor)?)),
                Input::Options if options.is_some() => {
                    return Err(Error::invalid("options are given twice; put all into one input"));
                }
                Input::Options => options = Some(Options::read(tensor.data())?),
            }
        }
        if pieces.is_empty() {
            return Err(Error::invalid("no input is called `prompt`; give the text to go on from as one"));
        }
        Ok(Self { prompt: Prompt::new(pieces), options: options.unwrap_or_default() })
    }
}

fn text(name: &str, tensor: Tensor) -> Result<String, Error> {
    String::from_utf8(tensor.into_data()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(Code::InvalidEncoding, format!("the input `{name}` is not UTF-8 from byte {at} on"))
    })
}

/// The error for a name that is no input's.
#[must_use]
pub fn unknown(name: &str) -> Error {
    let name = quoted(name);
    Error::invalid(format!("an input is called `{name}`; there are `prompt`, `template` and `options`"))
}

/// So much of a name that the rest of the message can still be seen.
fn quoted(name: &str) -> &str {
    name.get(..name.floor_char_boundary(64)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str, data: &str) -> (String, Tensor) {
        (name.to_owned(), Tensor::of_bytes(data.into()))
    }

    #[test]
    fn pieces_keep_their_order_and_their_authors() {
        let inputs = [
            bytes("template", "<user>"),
            bytes("prompt", "a"),
            bytes("options", r#"{"n-predict": 3}"#),
            bytes("template", "<end>"),
        ];
        let request = Request::read(inputs).unwrap();
        let pieces = [Piece::Template("<user>".into()), Piece::Text("a".into()), Piece::Template("<end>".into())];
        assert_eq!(request.prompt, Prompt::new(pieces.into()));
        assert_eq!(request.options.generate.max_new, 3);
        // By LlamaEdge's numbers.
        let request = Request::read([bytes("0", "a"), bytes("1", "{}")]).unwrap();
        assert_eq!(request, Request { prompt: Prompt::text("a".into()), options: Options::default() });
    }

    #[test]
    fn inputs_that_are_none_are_named() {
        let refused = |inputs: Vec<(String, Tensor)>| Request::read(inputs).unwrap_err();
        assert!(refused(vec![bytes("image", "")]).to_string().contains("`image`"));
        assert!(refused(vec![bytes(&"ä".repeat(9999), "")]).to_string().contains("`options`"));
        assert!(refused(vec![bytes("options", "{}")]).to_string().contains("no input is called `prompt`"));
        assert!(refused(vec![bytes("1", "{}"), bytes("options", "{}")]).to_string().contains("twice"));
        let numbers = Tensor::new(vec![1], Element::Fp32, vec![0; 4]).unwrap();
        assert!(refused(vec![("prompt".into(), numbers)]).to_string().contains("FP32"));
        let broken = refused(vec![("prompt".into(), Tensor::of_bytes(vec![b'a', 0xff]))]);
        assert_eq!((broken.code(), broken.to_string().contains("byte 1")), (Code::InvalidEncoding, true));
    }
}
