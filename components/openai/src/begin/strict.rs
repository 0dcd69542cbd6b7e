//! Calls that the model makes of its own accord, held to the schemas of strict tools.
//!
//! A grammar over the whole answer would have to let through any text that is no
//! call, and no control tokens at all. Instead the answer is watched. Where it begins a
//! call ([`Format::opening`]), the session is taken back to before that, the beginning
//! is written as [`force`] writes it, and from there on the answer follows the grammar
//! of a forced call.

use std::rc::Rc;

use chat_format::{Choice, Forced, Format, Opening, Parallel, Tool, force};
use nala_sdk::llm::{Chunk, GenerateOptions, Generation, Grammar, Model, Session, Token};

use crate::error::ApiError;

/// How many tokens that were looked at before an opening can have begun in. It has
/// fewer bytes.
const LATEST: usize = 64;

/// What holds a call to the schemas, for all choices.
#[derive(Debug)]
pub(super) struct Plan {
    opening: Opening,
    forced: Forced,
    grammar: Grammar,
    model: Rc<Model>,
    /// How many tokens the prompt has.
    prompt: u32,
}

impl Plan {
    /// None where no call can be told from what else is said.
    ///
    /// # Errors
    /// 400 for schemas that cannot be followed.
    pub(super) fn of(
        model: &Rc<Model>,
        format: Format,
        tools: &[Tool],
        parallel: Parallel,
        prompt: u32,
        compile: impl FnOnce(&Forced) -> Result<Grammar, ApiError>,
    ) -> Result<Option<Self>, ApiError> {
        let Some(opening) = format.opening() else { return Ok(None) };
        // There are tools, so that it cannot fail.
        let Ok(Some(forced)) = force(format, tools, &Choice::Required, parallel) else { return Ok(None) };
        let grammar = compile(&forced)?;
        Ok(Some(Self { opening, forced, grammar, model: Rc::clone(model), prompt }))
    }
}

/// Watches one choice.
#[derive(Debug)]
pub(super) struct Watch {
    plan: Rc<Plan>,
    session: Session,
    options: GenerateOptions,
    tokens: Vec<Token>,
    /// What has been said, as far as an opening can still begin in it.
    said: String,
    /// How many bytes of the answer are in front of `said`.
    before: usize,
}

/// What comes of a chunk.
pub(super) enum Seen {
    /// It is what it is, and the choice goes on.
    Same(Chunk),
    /// A call begins with it. What is to be read in its place, and what is to be
    /// followed from here on.
    Call(Chunk, Box<Begun>),
}

/// A call that has begun; the run before it has to be dropped first.
pub(super) struct Begun {
    watch: Watch,
    /// How many tokens of the answer stay.
    keep: u32,
    /// What follows them.
    add: Vec<Token>,
}

impl Watch {
    pub(super) fn new(plan: &Rc<Plan>, session: Session, options: GenerateOptions) -> Self {
        Self { plan: Rc::clone(plan), session, options, tokens: Vec::new(), said: String::new(), before: 0 }
    }

    /// Looks at a chunk. None instead of the watch: it is over.
    ///
    /// # Errors
    /// What the vocabulary fails with.
    pub(super) fn see(mut self, mut chunk: Chunk) -> Result<(Seen, Option<Self>), ApiError> {
        let consumed = self.said.len();
        let counted = self.tokens.len();
        self.said.push_str(&chunk.text);
        self.tokens.extend(chunk.tokens.iter().map(|token| token.id));
        let Some((at, length)) = self.find() else {
            let over = chunk.finish.is_some() || self.is_decided();
            self.forget();
            return Ok((Seen::Same(chunk), (!over).then_some(self)));
        };
        let opening = self.said.get(at..at + length).unwrap_or_default().to_owned();
        let (keep, rest) = self.boundary(counted, &opening)?;
        // What the model wrote from there on is taken back, its end included.
        chunk.tokens.truncate((keep as usize).saturating_sub(counted));
        chunk.finish = None;
        let mut add = self.plan.model.encode(&rest)?;
        add.extend(self.plan.model.encode_template(&self.plan.forced.prefix)?);
        // What was read before is a part of it: the parser held it back.
        let whole = format!("{}{}", self.said.get(..at).unwrap_or_default(), self.plan.forced.prefix);
        chunk.text = whole.get(consumed..).unwrap_or_default().to_owned();
        Ok((Seen::Call(chunk, Box::new(Begun { watch: self, keep, add })), None))
    }

    /// Where a call begins in what was said, and how long its opening is.
    fn find(&self) -> Option<(usize, usize)> {
        match self.plan.opening {
            Opening::Marker(text) => self.said.find(text).map(|at| (at, text.len())),
            Opening::First(text) => {
                let said = self.said.trim_start();
                (self.before == 0 && said.starts_with(text)).then(|| (self.said.len() - said.len(), text.len()))
            }
        }
    }

    /// Whether no call can begin any more.
    fn is_decided(&self) -> bool {
        match self.plan.opening {
            Opening::Marker(_) => false,
            Opening::First(_) => !self.said.trim_start().is_empty(),
        }
    }

    /// Drops what no opening can begin in.
    fn forget(&mut self) {
        let Opening::Marker(text) = self.plan.opening else { return };
        let mut at = self.said.len().saturating_sub(text.len());
        while !self.said.is_char_boundary(at) {
            at += 1;
        }
        self.before += at;
        self.said.drain(..at);
    }

    /// How many tokens stand before the one that `opening` begins in, and what of that
    /// one stands before it. The opening ends behind the first `counted` tokens.
    fn boundary(&self, counted: usize, opening: &str) -> Result<(u32, String), ApiError> {
        let first = counted.saturating_sub(LATEST);
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for token in self.tokens.iter().skip(first) {
            starts.push(bytes.len());
            bytes.extend(self.plan.model.decode(&[*token])?);
        }
        let at = first_of(&bytes, opening.as_bytes()).unwrap_or(0);
        let within = starts.iter().rposition(|start| *start <= at).unwrap_or(0);
        let start = starts.get(within).copied().unwrap_or(0);
        let rest = String::from_utf8_lossy(bytes.get(start..at).unwrap_or_default()).into_owned();
        Ok((u32::try_from(first + within).unwrap_or(u32::MAX), rest))
    }
}

/// Where a text stands for the first time.
fn first_of(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len().max(1)).position(|window| window == text)
}

impl Begun {
    /// Writes the call's beginning and goes on.
    ///
    /// # Errors
    /// What the session fails with.
    pub(super) fn go_on(self) -> Result<Generation, ApiError> {
        let Self { watch: Watch { plan, session, mut options, .. }, keep, add } = self;
        session.rewind(plan.prompt.saturating_add(keep))?;
        if !add.is_empty() {
            session.prefill(&add)?;
        }
        session.constrain(&plan.grammar)?;
        let spent = keep.saturating_add(u32::try_from(add.len()).unwrap_or(u32::MAX));
        // One at least, so that the run ends as one that is cut off does.
        options.max_new = options.max_new.saturating_sub(spent).max(1);
        Ok(session.generate(&options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_is_found() {
        assert_eq!(first_of(b"a<b><b>", b"<b>"), Some(1));
        assert_eq!(first_of(b"ab", b"<b>"), None);
        assert_eq!(first_of(b"", b"x"), None);
    }
}
