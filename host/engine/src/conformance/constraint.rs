//! What every vocabulary must do under a grammar.

use std::sync::Arc;

use crate::constraint::{ConstraintLimits, GrammarCompiler, GrammarSource, Matcher};
use crate::tokenizer::Tokenizer;

/// Texts whose parts merge in different ways in different vocabularies.
const TEXTS: [&str; 6] = [
    r#"{"name": "Ada", "born": 1815}"#,
    "The quick brown fox; it's 12345.678!",
    "    indented\n\n\tand\r\nbroken",
    "naïve 日本語 🙂 text",
    " leading and trailing ",
    "<user>, <|im_end|> and </s> are only text",
];

/// Forced text comes in the tokens that the tokenizer makes of the whole text, and
/// the mask allows only these.
///
/// # Panics
/// If it does not.
pub fn run(tokenizer: &Arc<dyn Tokenizer>) {
    let compiler = GrammarCompiler::new(tokenizer.clone(), ConstraintLimits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for text in TEXTS {
        let quoted: String = text.chars().map(|c| format!("\\x{{{:x}}}", u32::from(c))).collect();
        let grammar = runtime.block_on(compiler.compile(GrammarSource::Regex(quoted))).expect("a grammar");
        let mut matcher = Matcher::new(&grammar);
        let mut tokens = Vec::new();
        while !matcher.is_done() {
            let forced = matcher.forced();
            let mask = matcher.mask().expect("a mask");
            let next = if forced.is_empty() { mask.tokens().take(1).collect() } else { forced };
            assert!(mask.allows(next[0]), "{text:?}: the mask forbids what is forced");
            assert_eq!(matcher.accept(&next), Ok(next.len()), "{text:?}: {next:?}");
            tokens.extend(next);
        }
        let mut spelt = Vec::new();
        tokens.iter().for_each(|&token| tokenizer.piece(token, false, &mut spelt).expect("a token"));
        assert_eq!(String::from_utf8_lossy(&spelt), text);
        let canonical = tokenizer.encode(text, false).expect("tokens");
        let mut whole = Vec::new();
        canonical.iter().for_each(|&token| tokenizer.piece(token, false, &mut whole).expect("a token"));
        // Some vocabularies put a space before a text.
        if whole == text.as_bytes() {
            assert_eq!(tokens, canonical, "{text:?} is spelt in another way");
        }
        let ends = matcher.mask().expect("a mask");
        assert!(tokenizer.end_tokens().iter().all(|&token| ends.allows(token)), "{text:?}: the end may come");
    }
}
