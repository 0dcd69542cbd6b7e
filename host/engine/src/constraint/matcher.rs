//! One sequence's way through a grammar.

use super::grammar::Grammar;
use super::mask::TokenMask;
use super::refused;
use crate::backend::Token;
use crate::error::Error;

/// One sequence's way through a grammar.
///
/// Every call is bounded by the limits of the compiler that made the grammar. An
/// [`Error::Constraint`] of [`Matcher::mask`] or [`Matcher::accept`] is final:
/// all later calls return it again.
pub struct Matcher {
    inner: llguidance::Matcher,
    grammar: Grammar,
    mask: TokenMask,
    /// Tokens taken in, without an end token.
    taken: usize,
    /// Whether an end token was taken in.
    ended: bool,
    failed: Option<Error>,
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { grammar, taken, ended, failed, .. } = self;
        let mut debug = f.debug_struct("Matcher");
        debug.field("grammar", grammar).field("taken", taken).field("ended", ended).field("failed", failed);
        debug.finish_non_exhaustive()
    }
}

impl Matcher {
    /// At the start of a grammar. Copies what the grammar takes
    /// ([`Grammar::bytes`]), so better not on the engine thread.
    #[must_use]
    pub fn new(grammar: &Grammar) -> Self {
        let mask = TokenMask::none(grammar.vocabulary().size);
        Self { inner: grammar.start(), grammar: grammar.clone(), mask, taken: 0, ended: false, failed: None }
    }

    /// The grammar that is followed.
    #[must_use]
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Which tokens may come next. The end tokens are among them where the text
    /// may end. In a forced run it is one token only. Empty once an end token was
    /// taken in, and where nothing more may come in a vocabulary without end
    /// tokens.
    ///
    /// # Errors
    /// [`Error::Constraint`] if a step of this grammar is too much work, or if no
    /// token of the vocabulary can continue the text.
    pub fn mask(&mut self) -> Result<&TokenMask, Error> {
        if self.ended {
            self.mask.clear();
            return Ok(&self.mask);
        }
        let words: Vec<u32> = self.guarded(llguidance::Matcher::compute_mask_or_eos)?.into();
        self.mask.set_to_common(&words, &self.grammar.vocabulary().possible);
        if self.mask.allowed() == 0 && !self.is_done() {
            return Err(self.fail(refused("NoExtensionBias")));
        }
        Ok(&self.mask)
    }

    /// Takes in tokens as long as they are legal, and returns how many that were.
    /// The rest is not taken in.
    ///
    /// More is legal than a mask allows: a forced text may be spelt with other
    /// tokens than the tokenizer's.
    ///
    /// # Errors
    /// [`Error::Constraint`] if a step of this grammar is too much work. Nothing
    /// is known then about how many tokens were taken in.
    pub fn accept(&mut self, tokens: &[Token]) -> Result<usize, Error> {
        for (n, &token) in tokens.iter().enumerate() {
            if self.ended {
                return Ok(n);
            }
            if self.grammar.vocabulary().end_tokens.allows(token) {
                if !self.accepting()? {
                    return Ok(n);
                }
                self.ended = true;
                continue;
            }
            if !self.grammar.vocabulary().possible.allows(token) {
                return Ok(n);
            }
            if self.guarded(|inner| inner.try_consume_tokens(&[token]))? == 0 {
                return Ok(n);
            }
            self.taken += 1;
        }
        Ok(tokens.len())
    }

    /// The tokens that must come next, as the model's tokenizer spells the text
    /// that must come. Tokens at the end of it that could be spelt otherwise once
    /// more text follows are held back. Nothing is taken in.
    ///
    /// Empty if there is a choice, or after a failure. A text that is forced without
    /// end is one.
    pub fn forced(&mut self) -> Vec<Token> {
        if self.ended || self.inner.is_stopped() {
            return Vec::new();
        }
        let mut tokens = self.guarded(|inner| Ok::<_, Error>(inner.compute_ff_tokens())).unwrap_or_default();
        let vocabulary = self.grammar.vocabulary();
        let text = |token: &Token| vocabulary.possible.allows(*token) && !vocabulary.end_tokens.allows(*token);
        let legal = tokens.iter().take_while(|token| text(token)).count();
        tokens.truncate(legal);
        tokens
    }

    /// A matcher of its own at the same place.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            inner: self.inner.deep_clone(),
            grammar: self.grammar.clone(),
            mask: self.mask.clone(),
            taken: self.taken,
            ended: self.ended,
            failed: self.failed.clone(),
        }
    }

    /// Takes back the last `tokens` tokens that were taken in, an end token
    /// included.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if fewer were taken in; nothing is changed.
    /// [`Error::Constraint`] if this grammar cannot go back (Lark with a
    /// `max_tokens` attribute), or after a failure.
    pub fn rollback(&mut self, tokens: usize) -> Result<(), Error> {
        let taken = self.taken + usize::from(self.ended);
        if tokens > taken {
            return Err(Error::InvalidArgument(format!("{tokens} tokens cannot be taken back: {taken} were taken in")));
        }
        if tokens == 0 {
            return Ok(());
        }
        let back = tokens - usize::from(self.ended);
        if back > 0 {
            self.guarded(|inner| inner.rollback(back))?;
        }
        self.ended = false;
        self.taken -= back;
        Ok(())
    }

    /// Whether the text may end here: an end token is allowed now, or was taken
    /// in.
    pub fn is_accepting(&mut self) -> bool {
        self.accepting().unwrap_or(false)
    }

    /// Whether nothing but the end may come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.failed.is_none() && (self.ended || (self.inner.is_stopped() && self.inner.stop_reason().is_ok()))
    }

    /// Why this matcher can no longer be used, if it cannot.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    fn accepting(&mut self) -> Result<bool, Error> {
        Ok(self.ended || self.guarded(llguidance::Matcher::is_accepting)?)
    }

    /// Makes a call of the library, within its time.
    fn guarded<T, E: std::fmt::Display>(
        &mut self,
        call: impl FnOnce(&mut llguidance::Matcher) -> Result<T, E>,
    ) -> Result<T, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let time = self.grammar.limits().step_time;
        let handle = self.inner.cancellation_handle();
        let watched = handle.as_ref().map(|handle| self.grammar.watchdog().watch(handle, time));
        let result = call(&mut self.inner);
        drop(watched);
        let error = match (result, self.inner.is_cancelled(), self.inner.get_error()) {
            (_, true, _) => Error::Constraint(format!(
                "a step of this grammar took longer than {} ms; make it less ambiguous",
                time.as_millis()
            )),
            (Err(error), ..) => refused(error),
            // Some calls hide their failure.
            (Ok(_), _, Some(error)) => refused(error),
            (Ok(value), ..) => return Ok(value),
        };
        Err(self.fail(error))
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }
}
