//! What the fuzz targets in `fuzz/` call: checks of inner parts that take any
//! bytes. Not an interface for anybody else; only with the feature `testing`.

#![allow(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are checks that fail by panicking, in a module only so that the fuzz targets can reach them"
)]

use std::sync::Arc;

use crate::constraint::{ConstraintLimits, Grammar, GrammarSource, Matcher, OneGrammar};
use crate::error::Error;
use crate::fake::Fake;
use crate::text::{Pushed, TextAssembler};

/// Limits as they are in service, but for what only takes time.
fn limits() -> ConstraintLimits {
    ConstraintLimits {
        source_bytes: 4096,
        regex_bytes: 512,
        compile_fuel: 200_000,
        compiled_bytes: 4 << 20,
        lexer_states: 2000,
        step_fuel: 20_000,
        step_items: 10_000,
        row_items: 500,
        ..ConstraintLimits::default()
    }
}

/// Grammars for the fake model, on the calling thread.
pub struct Constraints {
    model: OneGrammar,
}

impl Default for Constraints {
    fn default() -> Self {
        Self::new()
    }
}

impl Constraints {
    /// Reads the fake's vocabulary.
    #[must_use]
    pub fn new() -> Self {
        let tokenizer = Fake::default().load().tokenizer;
        Self { model: OneGrammar::new(Arc::clone(&tokenizer), limits()).unwrap() }
    }

    /// The first byte is the kind, then follow a length, the choices of a walk and
    /// the source.
    pub fn walk(&self, data: &[u8]) {
        let [kind, length, rest @ ..] = data else { return };
        let (choices, source) = rest.split_at(usize::from(*length).min(rest.len()));
        let Ok(source) = std::str::from_utf8(source) else { return };
        let source = source.to_owned();
        let source = match kind % 5 {
            0 => GrammarSource::JsonSchema(source),
            1 => GrammarSource::Regex(source),
            2 => GrammarSource::Lark(source),
            3 => GrammarSource::Gbnf(source),
            _ => GrammarSource::AnyJson,
        };
        let json = matches!(source, GrammarSource::JsonSchema(_) | GrammarSource::AnyJson);
        match self.model.compile(&source) {
            Ok(grammar) => walk(&grammar, choices, json),
            Err(Error::Constraint(text)) => check_error(&text),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// The source is GBNF.
    pub fn convert(&self, data: &[u8]) {
        let Ok(source) = std::str::from_utf8(data) else { return };
        if let Err(text) = self.model.gbnf_is_lark(source) {
            panic!("{text}");
        }
    }
}

fn check_error(text: &str) {
    assert!(!text.is_empty() && text.len() < 2000 && !text.contains("\n<backtrace>"), "{text}");
    assert!(!text.contains("cannot be handled"), "the library panicked: {text}");
}

fn walk(grammar: &Grammar, choices: &[u8], json: bool) {
    let mut matcher = Matcher::new(grammar);
    let mut said = Vec::new();
    for &choice in choices {
        let mask = match matcher.mask() {
            Ok(mask) => mask.clone(),
            Err(error) => return check_error(&error.to_string()),
        };
        let Some(token) = mask.tokens().nth(usize::from(choice) % mask.allowed().max(1)) else { break };
        match matcher.accept(&[token]) {
            Ok(taken) => assert_eq!(taken, 1, "what a mask allows is taken in"),
            Err(error) => return check_error(&error.to_string()),
        }
        said.push(token);
        let forced = matcher.forced();
        if choice > 200 && !forced.is_empty() {
            match matcher.accept(&forced) {
                Ok(taken) => assert_eq!(taken, forced.len(), "what is forced is taken in"),
                Err(error) => return check_error(&error.to_string()),
            }
            said.extend(forced);
        }
    }
    if json && matcher.is_accepting() {
        let text: Vec<u8> = said.iter().filter_map(|&token| u8::try_from(token).ok()).collect();
        let text = String::from_utf8(text).unwrap();
        let parsed = serde_json::from_str::<serde_json::Value>(&text).map_err(|error| error.to_string());
        // Numbers that f64 cannot hold and deep nesting are JSON all the same.
        let fine = |error: &String| error.contains("out of range") || error.contains("recursion limit");
        assert!(parsed.as_ref().err().is_none_or(fine), "not JSON: {text:?}");
    }
    let back = choices.len() % (said.len() + 1);
    if matcher.rollback(back).is_err() {
        return;
    }
    said.truncate(said.len() - back);
    let mut fresh = Matcher::new(grammar);
    let Ok(taken) = fresh.accept(&said) else { return };
    assert_eq!(taken, said.len(), "a fresh matcher takes the same tokens");
    if let (Ok(ours), Ok(theirs)) = (matcher.mask().cloned(), fresh.mask()) {
        assert_eq!(&ours, theirs, "a step back changes nothing");
    }
}

/// Feeds a text to the assembler whole and in pieces. The first bytes say how many
/// and how long stop texts there are, and how the rest is cut.
pub fn text(data: &[u8]) {
    let [stops, cut, rest @ ..] = data else { return };
    let (stop_bytes, rest) = rest.split_at(usize::from(*stops).min(rest.len()));
    let stops = String::from_utf8_lossy(stop_bytes).into_owned();
    // A text may end in half a character, which becomes U+FFFD when all is over.
    let usable = |stop: &&str| !stop.is_empty() && !stop.contains(char::REPLACEMENT_CHARACTER);
    let stops: Vec<String> = stops.split(',').filter(usable).map(str::to_owned).collect();
    let whole = assemble(&stops, std::iter::once(rest));
    let pieces = assemble(&stops, rest.chunks(usize::from(*cut).max(1)));
    let bytes = assemble(&stops, rest.chunks(1));
    assert_eq!(pieces, bytes, "the text depends on how it is cut");
    assert_eq!(whole, bytes, "the text depends on how it is cut");
    let (whole, which) = whole;
    let text = String::from_utf8_lossy(rest);
    let first = stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
    if first.is_none() {
        assert_eq!(whole, text, "without a stop text everything leaves");
    } else {
        assert!(text.starts_with(&whole), "what leaves is the beginning");
        let stop = which.and_then(|which| stops.get(which as usize));
        let behind = text.get(whole.len()..).unwrap_or_default();
        assert!(stop.is_some_and(|stop| behind.starts_with(stop.as_str())), "behind it stands another stop text");
        assert!(stops.iter().all(|stop| !whole.contains(stop.as_str())), "a stop text left");
    }
}

/// What leaves, and which stop text ended it.
fn assemble<'a>(stops: &[String], pieces: impl Iterator<Item = &'a [u8]>) -> (String, Option<u32>) {
    let mut assembler = TextAssembler::new(stops.to_vec());
    let mut out = String::new();
    for piece in pieces {
        if let Pushed::Stopped(which) = assembler.push(piece, &mut out) {
            return (out, Some(which));
        }
    }
    assembler.finish(&mut out);
    (out, None)
}
