//! How large a query may be. Reading and running one recurses, and a component has a small
//! stack: a query that is refused here would only trap.

use std::slice;

use jaq_core::load::Lexer;
use jaq_core::load::lex::{StrPart, Tok, Token};

const BYTES: usize = 4 << 10;
/// Brackets that are opened, in strings too, for what is a string is not known yet.
const BRACKETS: usize = 400;
/// Words, signs and parts of strings.
const PARTS: usize = 800;
/// How much of a query may wait for what comes after it, such as each sign of `- - - 1`.
const DEPTH: usize = 100;

/// Words after which another filter is read before theirs ends.
const WORDS: [&str; 11] = ["and", "as", "catch", "def", "elif", "foreach", "if", "label", "or", "reduce", "try"];

/// What is too much about a query.
pub(super) fn check(query: &str) -> Result<(), String> {
    let refuse = |what: &str, has: usize, most: usize| {
        if has > most { Err(format!("the query {what} {has} and may have {most}: make it shorter")) } else { Ok(()) }
    };
    refuse("in bytes has", query.len(), BYTES)?;
    let brackets = query.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'{')).count();
    refuse("in brackets has", brackets, BRACKETS)?;
    // What is no token is told by who reads the query.
    let tokens = Lexer::new(query).lex().unwrap_or_default();
    refuse("in words and signs has", parts(&tokens), PARTS)?;
    refuse("in depth has", depth(&tokens), DEPTH)
}

/// The tokens inside of another.
fn inside<'a, 's>(token: &'a Token<&'s str>) -> Vec<&'a [Token<&'s str>]> {
    match &token.1 {
        Tok::Block(tokens) => vec![tokens.as_slice()],
        Tok::Str(parts) => parts
            .iter()
            .map(|part| if let StrPart::Term(token) = part { slice::from_ref(token) } else { &[] })
            .collect(),
        _ => Vec::new(),
    }
}

/// How many there are, with the parts of strings.
fn parts(tokens: &[Token<&str>]) -> usize {
    tokens.iter().map(|token| 1 + inside(token).into_iter().map(|tokens| 1 + parts(tokens)).sum::<usize>()).sum()
}

/// How deep they nest: what waits at this level, and the deepest inside of it.
fn depth(tokens: &[Token<&str>]) -> usize {
    let waits = |Token(text, kind): &Token<&str>| match kind {
        Tok::Sym => usize::from(!matches!(*text, "." | ".." | ":" | ";" | "?" | ")" | "]" | "}")),
        Tok::Word => usize::from(WORDS.contains(text)),
        // They are added to each other, as by `+`.
        Tok::Str(parts) => parts.len().saturating_sub(1),
        _ => 0,
    };
    let deepest = tokens.iter().flat_map(inside).map(|tokens| 2 + depth(tokens)).max();
    tokens.iter().map(waits).sum::<usize>() + deepest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(query: &str) -> String {
        check(query).unwrap_err()
    }

    #[test]
    fn what_is_too_much_is_told() {
        assert!(refused(&" ".repeat(5000)).contains("in bytes has 5000 and may have 4096"));
        assert!(refused(&"(\")\"".repeat(500)).contains("in brackets has 500 and may have 400"));
        assert!(refused(&".a ".repeat(900)).contains("and may have 800"));
        assert!(refused(&format!("[\"{}\"]", "\\n".repeat(900))).contains("and may have 800"));
        assert!(refused(&format!("{}1", "- ".repeat(101))).contains("in depth has 101 and may have 100"));
        assert!(refused(&format!("{}1{}", "[".repeat(51), "]".repeat(51))).contains("in depth has 102"));
        let inner = format!("\"\\({}1)\"", "- ".repeat(100));
        assert!(refused(&inner).contains("in depth has 10"));
        assert!(refused(&format!("{inner} + {}1", "(\")\")".repeat(399))).contains("may have"));
    }

    #[test]
    fn what_is_written_for_use_is_not_too_much() {
        let object: Vec<_> = (0..40).map(|n| format!("field_{n}: (.f{n} // \"none\" | tostring)")).collect();
        let query = format!(".items | map(select(.a and .b)) | map({{{}}}) | sort_by(.field_1)", object.join(", "));
        assert_eq!(check(&query), Ok(()));
    }

    #[test]
    fn no_query_overflows_the_stack() {
        let parts = [
            ("-", "1", ""),
            (". |", "1", ""),
            (". ,", "1", ""),
            (". +", "1", ""),
            (". //", "1", ""),
            (". and ", "1", ""),
            ("try ", "1", ""),
            (". as $x|", "1", ""),
            ("label $x|", "1", ""),
            ("\"\\n\" + ", "1", ""),
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{a:", "1", "}"),
            ("\"\\(", "1", ")\""),
            (".[", "1", "]"),
            (".a", "", ""),
            (".a?", "", ""),
            ("[.]|", "1", ""),
            ("(.[", "1", "]|=1)"),
            ("reduce . as $x(.;", "1", ")"),
            ("if . then ", "1", " else 2 end"),
            ("if . then 1 else ", "1", " end"),
            ("def f: ", "1", "; f"),
            ("map(", ".", ")"),
            ("[1]|map(", ".", ")"),
            ("{a:1}|with_entries(", ".", ")"),
            ("[1]|group_by(", ".", ")"),
            ("[\"a\"]|map(sub(\"a\";", ".", "))"),
            ("path(", ".", ")"),
            (". as [", "$x", "]|1"),
        ];
        for (open, middle, close) in parts {
            let query = |n: usize| format!("{}{middle}{}", open.repeat(n), close.repeat(n));
            let most = (1..1000).map(query).take_while(|query| check(query).is_ok()).last().unwrap();
            let arguments = json!({"query": most, "data": null}).to_string();
            // The host gives a component 512 KiB.
            let small = std::thread::Builder::new().stack_size(320 << 10);
            small.spawn(move || drop(crate::json::call(&arguments))).unwrap().join().unwrap();
        }
        let one = json!({"query": format!("\"{}\"", "\\n".repeat(99)), "data": null}).to_string();
        let small = std::thread::Builder::new().stack_size(320 << 10);
        assert!(!small.spawn(move || crate::json::call(&one).unwrap().is_error).unwrap().join().unwrap());
    }
}
