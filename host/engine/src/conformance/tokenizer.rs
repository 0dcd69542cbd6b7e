//! Checks of [`crate::Tokenizer`].

use crate::backend::LoadedModel;

pub(super) fn run(load: &dyn Fn() -> LoadedModel) {
    let tokenizer = load().tokenizer;
    let decode = |tokens: &[u32], special| {
        let mut bytes = Vec::new();
        for &token in tokens {
            tokenizer.piece(token, special, &mut bytes).unwrap();
        }
        bytes
    };
    for text in ["", "Hello, world!", "  two  spaces\n\n\ttab", "naïve 🦀 日本語", "a\0b", "1234567890"] {
        let tokens = tokenizer.encode(text, false).unwrap();
        assert!(tokens.iter().all(|&t| t < tokenizer.vocab()));
        assert_eq!(String::from_utf8_lossy(&decode(&tokens, false)), text, "round trip");
    }
    let ends = tokenizer.end_tokens();
    assert!(!ends.is_empty(), "a model must be able to end its turn");
    for &end in ends {
        let name = String::from_utf8(decode(&[end], true)).unwrap();
        assert!(decode(&[end], false).is_empty(), "{name} has no text");
        assert_eq!(tokenizer.encode(&name, true).unwrap(), [end], "{name} can be written by templates");
        let typed = tokenizer.encode(&format!("x{name}y"), false).unwrap();
        assert!(!typed.contains(&end), "a user must not be able to type {name}");
        assert_eq!(String::from_utf8_lossy(&decode(&typed, false)), format!("x{name}y"), "typed text stays text");
    }
    assert!(tokenizer.piece(tokenizer.vocab(), true, &mut Vec::new()).is_err(), "outside the vocabulary");
    assert!(tokenizer.piece(u32::MAX, true, &mut Vec::new()).is_err(), "outside the vocabulary");
}
