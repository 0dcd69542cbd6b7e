//! The answer of `/tokenize`.

use nala_sdk::llm::Token;

use super::parameters::Pieces;
use crate::json;

/// `{"tokens": […]}`: ids, or objects of an id and its piece, which is a string, or a
/// list of bytes where it is a part of a character.
pub(super) fn tokens(tokens: &[Token], pieces: Pieces, bytes: impl Fn(Token) -> Vec<u8>) -> Vec<u8> {
    let mut out = b"{\"tokens\":[".to_vec();
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match pieces {
            Pieces::Absent => out.extend_from_slice(token.to_string().as_bytes()),
            Pieces::Reported => {
                out.extend_from_slice(format!("{{\"id\":{token},\"piece\":").as_bytes());
                let bytes = bytes(*token);
                match std::str::from_utf8(&bytes) {
                    Ok(text) => json::string(text, &mut out),
                    Err(_) => {
                        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
                        out.extend_from_slice(format!("[{}]", list.join(",")).as_bytes());
                    }
                }
                out.push(b'}');
            }
        }
    }
    out.extend_from_slice(b"]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_are_no_text_are_bytes() {
        let bytes = |token| if token == 7 { vec![0xc3] } else { b"a\"".to_vec() };
        let text = |pieces| String::from_utf8(tokens(&[3, 7], pieces, bytes)).unwrap();
        assert_eq!(text(Pieces::Absent), "{\"tokens\":[3,7]}");
        assert_eq!(text(Pieces::Reported), r#"{"tokens":[{"id":3,"piece":"a\""},{"id":7,"piece":[195]}]}"#);
        assert_eq!(tokens(&[], Pieces::Reported, bytes), b"{\"tokens\":[]}");
    }
}
