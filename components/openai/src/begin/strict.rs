//! Calls that the model makes of its own accord, held to a grammar: where a tool is
//! strict, and where the answer has to be of a form unless it is a call.
//!
//! A grammar over the whole answer would have to let through any text that is no
//! call, and no control tokens at all. Instead the answer is watched. Where it begins a
//! call ([`Lookout`]), the session is taken back to before that, the beginning is
//! written as [`force`] writes it, and from there on the answer follows the grammar of
//! a forced call.

use std::rc::Rc;

use chat_format::{Choice, Forced, Format, Parallel, Tool, force};
use nala_sdk::llm::{Chunk, Error, GenerateOptions, Generation, Grammar, Model, Session, Token};

use super::lookout::{Lookout, Sight, Signs};
use crate::error::ApiError;

/// How many tokens that were looked at before a call can have begun in: markers and
/// names of tools have fewer bytes.
const LATEST: usize = 256;

/// What holds a call to the grammar, for all choices.
#[derive(Debug)]
pub(super) struct Plan {
    signs: Signs,
    forced: Forced,
    grammar: Grammar,
    model: Rc<Model>,
}

impl Plan {
    /// # Errors
    /// 400 for schemas that cannot be followed.
    pub(super) fn of(
        model: &Rc<Model>,
        signs: Signs,
        (format, tools, parallel): (Format, &[Tool], Parallel),
        compile: impl FnOnce(&Forced) -> Result<Grammar, ApiError>,
    ) -> Result<Option<Self>, ApiError> {
        // There are tools, so that it cannot fail.
        let Ok(Some(forced)) = force(format, tools, &Choice::Required, parallel) else { return Ok(None) };
        let grammar = compile(&forced)?;
        Ok(Some(Self { signs, forced, grammar, model: Rc::clone(model) }))
    }
}

/// Watches one choice.
#[derive(Debug)]
pub(super) struct Watch {
    plan: Rc<Plan>,
    session: Rc<Session>,
    /// How many tokens the session held before the answer.
    prompt: u32,
    options: GenerateOptions,
    tokens: Vec<Token>,
    lookout: Lookout,
}

/// What comes of a chunk.
pub(super) enum Seen {
    /// It is what it is, and the choice goes on.
    Same(Chunk, Option<Box<Watch>>),
    /// A call begins with it. What is to be read in its place, and what is to be
    /// followed from here on.
    Call(Chunk, Box<Call>),
}

/// A call that has begun; the run before it has to be dropped first.
pub(super) struct Call {
    plan: Rc<Plan>,
    session: Rc<Session>,
    prompt: u32,
    options: GenerateOptions,
    /// How many tokens of the answer stay.
    keep: u32,
    /// What follows them.
    add: Vec<Token>,
}

impl Watch {
    /// `prompt` is how many tokens the session holds before the answer.
    pub(super) fn new(plan: &Rc<Plan>, session: Rc<Session>, prompt: u32, options: GenerateOptions) -> Self {
        let lookout = Lookout::new(plan.signs.clone());
        Self { plan: Rc::clone(plan), session, prompt, options, tokens: Vec::new(), lookout }
    }

    /// Looks at a chunk. `thinking` is whether it begins in a thought.
    ///
    /// # Errors
    /// What the vocabulary fails with.
    pub(super) fn see(mut self, mut chunk: Chunk, thinking: bool) -> Result<Seen, ApiError> {
        let counted = self.tokens.len();
        self.tokens.extend(chunk.tokens.iter().map(|token| token.id));
        let before = match self.lookout.look(&chunk.text, thinking) {
            Sight::Nothing if chunk.finish.is_none() => return Ok(Seen::Same(chunk, Some(Box::new(self)))),
            Sight::Nothing | Sight::Never => return Ok(Seen::Same(chunk, None)),
            Sight::Call(before) => before,
        };
        let (keep, rest) = self.boundary(counted)?;
        let mut add = if rest.is_empty() { Vec::new() } else { self.plan.model.encode(&rest)? };
        if !self.plan.forced.prefix.is_empty() {
            add.extend(self.plan.model.encode_template(&self.plan.forced.prefix)?);
        }
        let spent = (keep as usize).saturating_add(add.len());
        if spent >= self.options.max_new as usize {
            // It will be cut off before its first argument, whoever writes it.
            return Ok(Seen::Same(chunk, None));
        }
        chunk.text = self.unread(before);
        // What the model wrote from there on is taken back, its end included.
        chunk.tokens.truncate((keep as usize).saturating_sub(counted));
        chunk.finish = None;
        let Self { plan, session, prompt, options, .. } = self;
        Ok(Seen::Call(chunk, Box::new(Call { plan, session, prompt, options, keep, add })))
    }

    /// What is to be read in place of the chunk that the call was seen in.
    fn unread(&self, before: Result<String, usize>) -> String {
        let prefix = &self.plan.forced.prefix;
        match before {
            Ok(before) => before + prefix,
            // What was read of the call is the beginning of this.
            Err(read) => prefix.get(read..).unwrap_or_default().to_owned(),
        }
    }

    /// Whether nothing of the call has been read, so that it is to be read anew.
    pub(super) fn is_unread(&self) -> bool {
        self.plan.signs.is_unread()
    }

    /// How many tokens stand before the one that the call begins in, and what of that
    /// one stands before the call. The first `counted` tokens were looked at before.
    fn boundary(&self, counted: usize) -> Result<(u32, String), ApiError> {
        let first = counted.saturating_sub(LATEST);
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for token in self.tokens.iter().skip(first) {
            starts.push(bytes.len());
            bytes.extend(self.plan.model.decode(&[*token])?);
        }
        let (within, rest) = place(&bytes, &starts, self.plan.signs.text().as_bytes())
            .ok_or_else(|| Error::Backend("the tokens of a call are not its text".to_owned()))?;
        let rest = String::from_utf8_lossy(rest).into_owned();
        Ok((u32::try_from(first + within).unwrap_or(u32::MAX), rest))
    }
}

/// Which of the tokens that begin at `starts` a text begins in, and
/// what of that token stands before it.
fn place<'a>(bytes: &'a [u8], starts: &[usize], text: &[u8]) -> Option<(usize, &'a [u8])> {
    let at = bytes.windows(text.len().max(1)).position(|window| window == text)?;
    let within = starts.iter().rposition(|start| *start <= at)?;
    Some((within, bytes.get(*starts.get(within)?..at)?))
}

impl Call {
    /// Writes the call's beginning and goes on.
    ///
    /// # Errors
    /// What the session fails with.
    pub(super) fn go_on(self) -> Result<Generation, ApiError> {
        let Self { plan, session, prompt, mut options, keep, add } = self;
        session.rewind(prompt.saturating_add(keep))?;
        if !add.is_empty() {
            session.prefill(&add)?;
        }
        session.constrain(&plan.grammar)?;
        let spent = keep.saturating_add(u32::try_from(add.len()).unwrap_or(u32::MAX));
        options.max_new = options.max_new.saturating_sub(spent);
        Ok(session.generate(&options)?)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_begins_in_a_token_or_within_one() {
        let place = |tokens: &[&'static str], text: &str| {
            let bytes: Vec<u8> = tokens.concat().into_bytes();
            let starts: Vec<usize> =
                tokens.iter().scan(0, |at, token| Some(std::mem::replace(at, *at + token.len()))).collect();
            let found = super::place(&bytes, &starts, text.as_bytes());
            found.map(|(within, rest)| (within, String::from_utf8(rest.to_vec()).unwrap()))
        };
        assert_eq!(place(&["a", "<tool", "_call>"], "<tool_call>"), Some((1, String::new())));
        assert_eq!(place(&["a ", "b<", "tool_call>", "x"], "<tool_call>"), Some((1, "b".to_owned())));
        assert_eq!(place(&["a", ""], "<tool_call>"), None);
    }
}
