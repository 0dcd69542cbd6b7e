//! Compiled grammars.

use std::sync::{Arc, Mutex, PoisonError};

use llguidance::TokenParser;
use llguidance::api::TopLevelGrammar;

use super::limits::ConstraintLimits;
use super::source::GrammarSource;
use super::vocabulary::Vocabulary;
use super::watchdog::Watchdog;
use super::{gbnf, json, lark, refused, regex};
use crate::error::Error;

/// A compiled grammar, bound to one model's vocabulary. Cheap to clone.
#[derive(Clone)]
pub struct Grammar {
    inner: Arc<Inner>,
}

struct Inner {
    /// At the start, and never moved from there: what matchers are copied from.
    start: Mutex<llguidance::Matcher>,
    vocabulary: Arc<Vocabulary>,
    watchdog: Arc<Watchdog>,
    limits: ConstraintLimits,
    warnings: Vec<String>,
    bytes: usize,
}

impl std::fmt::Debug for Grammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { warnings, bytes, .. } = &*self.inner;
        f.debug_struct("Grammar").field("bytes", bytes).field("warnings", warnings).finish_non_exhaustive()
    }
}

impl Grammar {
    /// Compiles on the calling thread, which needs
    /// [`DEEP_STACK`](super::threads::DEEP_STACK).
    pub(super) fn compile(
        source: &GrammarSource,
        vocabulary: Arc<Vocabulary>,
        watchdog: Arc<Watchdog>,
        limits: &ConstraintLimits,
    ) -> Result<Self, Error> {
        let (top, mut warnings) = prepare(source, limits)?;
        let mut parser: TokenParser = vocabulary.factory.create_parser(top).map_err(refused)?;
        let stats = parser.parser.lexer_stats();
        if stats.num_bytes > limits.compiled_bytes {
            return Err(Error::Constraint(format!(
                "the compiled grammar takes {} bytes, and at most {} are allowed; use fewer or shorter patterns and \
                 repetitions",
                stats.num_bytes, limits.compiled_bytes
            )));
        }
        parser.enable_cancellation();
        let mut start = llguidance::Matcher::new(Ok(parser));
        warnings.extend(start.grammar_warnings());
        let bytes = source.text().len() + stats.num_bytes;
        let inner = |start, limits: &ConstraintLimits| Inner {
            start: Mutex::new(start),
            vocabulary,
            watchdog,
            limits: limits.clone(),
            warnings,
            bytes,
        };
        // Whether the text may be nothing at all is found out here, not at the
        // first step.
        start.consume_tokens(&[]).map_err(refused)?;
        let this = Self { inner: Arc::new(inner(start, limits)) };
        // A grammar that matches nothing, or whose first step is too much work, is
        // refused now.
        super::Matcher::new(&this).mask()?;
        Ok(this)
    }

    /// What was not understood in the source, one text a finding; for people. Not
    /// empty means that the output may be freer than the source meant.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// About how much memory the grammar takes, with its source, in bytes. Each
    /// matcher takes as much again, and more as it goes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.bytes
    }

    pub(super) fn start(&self) -> llguidance::Matcher {
        self.inner.start.lock().unwrap_or_else(PoisonError::into_inner).deep_clone()
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.inner.vocabulary
    }

    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.inner.watchdog
    }

    pub(super) fn limits(&self) -> &ConstraintLimits {
        &self.inner.limits
    }
}

/// Checks a source and turns it into the library's terms, with what was not
/// understood in it.
fn prepare(source: &GrammarSource, limits: &ConstraintLimits) -> Result<(TopLevelGrammar, Vec<String>), Error> {
    match source {
        GrammarSource::JsonSchema(text) => json::schema(text, limits),
        GrammarSource::AnyJson => json::schema("{}", limits),
        GrammarSource::Regex(text) => Ok((regex::grammar(text, limits)?, Vec::new())),
        GrammarSource::Lark(text) => Ok((lark::grammar(text, limits)?, Vec::new())),
        GrammarSource::Gbnf(text) => {
            let lark = gbnf::to_lark(text, limits)?;
            Ok((TopLevelGrammar::from_lark(lark), Vec::new()))
        }
    }
}
