//! Grammars as they are written.

/// A grammar as it is written by whoever asks for constrained output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrammarSource {
    /// A JSON Schema (2020-12 and the older drafts). The output is a JSON text
    /// that is valid under it, with the properties in the order of the schema.
    ///
    /// Between the parts of the text there may be up to two spaces, or one line
    /// break with up to 40 spaces or tabs of indentation; never more, and none
    /// around the whole text. Within strings only control characters are written as
    /// `\u00XX`; all others stand for themselves. References must be local (`#/…`). `oneOf` is taken
    /// where its branches cannot both hold; otherwise write `anyOf`.
    JsonSchema(String),
    /// Any JSON value, with the whitespace of [`GrammarSource::JsonSchema`]. For
    /// "any JSON object" use the schema `{"type":"object"}`.
    AnyJson,
    /// A regular expression in the syntax of the `regex` crate, which must match
    /// the whole output. Look-around and word boundaries are refused; `^` and `$`
    /// may stand at the ends and mean nothing there.
    Regex(String),
    /// A grammar in llguidance's dialect of Lark, with the start rule `start`.
    /// Rules about tokens (`<…>`) are refused.
    Lark(String),
    /// A grammar in llama.cpp's GBNF, with the start rule `root`.
    Gbnf(String),
}

impl GrammarSource {
    /// The text, empty for what has none.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::JsonSchema(text) | Self::Regex(text) | Self::Lark(text) | Self::Gbnf(text) => text,
            Self::AnyJson => "",
        }
    }
}
