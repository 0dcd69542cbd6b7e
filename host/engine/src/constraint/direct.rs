//! Compiling without threads and cache, for the fuzz targets.

use std::sync::Arc;

use super::grammar::Grammar;
use super::limits::ConstraintLimits;
use super::source::GrammarSource;
use super::vocabulary::Vocabulary;
use super::watchdog::Watchdog;
use super::{gbnf, refused};
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// A compiler that compiles on the calling thread.
pub(crate) struct OneGrammar {
    vocabulary: Arc<Vocabulary>,
    watchdog: Arc<Watchdog>,
    limits: ConstraintLimits,
}

impl OneGrammar {
    pub(crate) fn new(tokenizer: Arc<dyn Tokenizer>, limits: ConstraintLimits) -> Result<Self, Error> {
        let vocabulary = Arc::new(Vocabulary::new(tokenizer, &limits)?);
        Ok(Self { vocabulary, watchdog: Arc::new(Watchdog::start()?), limits })
    }

    pub(crate) fn compile(&self, source: &GrammarSource) -> Result<Grammar, Error> {
        if source.text().len() > self.limits.source_bytes {
            return Err(Error::Constraint("too long".to_owned()));
        }
        Grammar::compile(source, self.vocabulary.clone(), self.watchdog.clone(), &self.limits)
    }

    /// Fails if GBNF is turned into something that the library does not understand.
    pub(crate) fn gbnf_is_lark(&self, source: &str) -> Result<(), String> {
        let Ok(lark) = gbnf::to_lark(source, &self.limits) else { return Ok(()) };
        let top = llguidance::api::TopLevelGrammar::from_lark(lark.clone());
        let Err(error) = self.vocabulary.factory.create_parser(top) else { return Ok(()) };
        let Error::Constraint(text) = refused(error) else { return Ok(()) };
        // Too large is an answer; malformed is not.
        if text.contains("too big") || text.contains("too many") || text.contains("too large") {
            return Ok(());
        }
        Err(format!("{text}\n{lark}"))
    }
}
