//! Models, sessions and the generation of text: `nala:llm`.
//!
//! A [`Session`] is a sequence of tokens and the model's state after it.
//! [`Session::prefill`] appends tokens, [`Session::generate`] lets the host's
//! decode loop append more and hands them over in [`Chunk`]s, and
//! [`Session::constrain`] keeps those within a [`Grammar`]. A program that chooses
//! the tokens itself [`submit`]s steps. Whole texts become vectors with [`embed`] and
//! scores with [`rank`].

mod embedding;
mod ending;
mod grammar;
mod step;
mod together;

use std::rc::Rc;

use crate::bindings::nala::llm::{meter, model, session};
use ending::Ending;

pub use embedding::{embed, embed_with, max_inputs, rank};
pub use grammar::Grammar;
pub use step::{Pending, Step, submit};
pub use together::Together;

pub use crate::bindings::nala::llm::embedding::{Offer, Pooling, Ranking};
pub use crate::bindings::nala::llm::meter::{Limits, Usage};
pub use crate::bindings::nala::llm::model::{Caps, Info, StateKind};
pub use crate::bindings::nala::llm::session::{
    Alt, Bias, Chunk, Dry, DynamicTemperature, Finish, GenerateOptions, Mirostat, MirostatVersion, PrefillInfo,
    Priority, Reading, Readout, Sampled, Sampler, SessionOptions, Xtc,
};
pub use crate::bindings::nala::llm::types::{Error, QuotaKind, Token};

/// The most alternatives that [`GenerateOptions::top_logprobs`] may ask for.
pub const MAX_LOGPROBS: u32 = 20;

/// A model that the host has loaded, and keeps loaded while this or a session or
/// generation of it lives. The weights are shared by all.
#[derive(Debug)]
pub struct Model(model::Model);

impl Model {
    /// The names that this component may open, the default one first.
    #[must_use]
    pub fn available() -> Vec<String> {
        model::available()
    }

    /// Opens a model by name. Costs nothing where it is loaded; else waits until
    /// it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::Denied`], with the names that would work;
    /// [`Error::Busy`] where models in use take the memory that it needs, and
    /// [`Error::Backend`] where it cannot be loaded.
    pub fn open(name: &str) -> Result<Self, Error> {
        model::Model::open(name).map(Self)
    }

    /// Opens the first of [`Model::available`].
    ///
    /// # Errors
    /// As [`Model::open`]; [`Error::NotFound`] where the component is granted no
    /// model.
    pub fn open_default() -> Result<Self, Error> {
        match Self::available().first() {
            Some(name) => Self::open(name),
            None => Err(Error::NotFound(
                "this component is granted no model; name one in ai_models of its manifest".to_owned(),
            )),
        }
    }

    /// What is known of it without running it.
    #[must_use]
    pub fn info(&self) -> Info {
        self.0.info()
    }

    /// The chat template that came in the model file, as Jinja source.
    #[must_use]
    pub fn chat_template(&self) -> Option<String> {
        self.0.chat_template()
    }

    /// A metadata value of the model file as text, for example
    /// `general.architecture`.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        self.0.metadata(key)
    }

    /// Turns text that the program itself wrote into tokens; it may name control
    /// tokens such as `<|im_end|>`. Never adds a token of its own.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for text that the vocabulary cannot express.
    pub fn encode_template(&self, text: &str) -> Result<Vec<Token>, Error> {
        self.0.encode(text, true)
    }

    /// The token of a text that the program itself wrote, if it is one, as those of
    /// control tokens are.
    #[must_use]
    pub fn token_of(&self, text: &str) -> Option<Token> {
        match self.encode_template(text).ok()?[..] {
            [token] => Some(token),
            _ => None,
        }
    }

    /// Turns text from outside into tokens; what looks like a control token in
    /// it stays ordinary text. Never adds a token of its own.
    ///
    /// # Errors
    /// As [`Model::encode_template`].
    pub fn encode(&self, text: &str) -> Result<Vec<Token>, Error> {
        self.0.encode(text, false)
    }

    /// The bytes that the tokens stand for, control tokens included; a token may
    /// hold a part of a UTF-8 character.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a token outside the vocabulary.
    pub fn decode(&self, tokens: &[Token]) -> Result<Vec<u8>, Error> {
        self.0.decode(tokens)
    }

    /// The token that begins a sequence, where the model has one.
    #[must_use]
    pub fn bos_token(&self) -> Option<Token> {
        self.0.bos_token()
    }

    /// Whether the model expects [`Model::bos_token`] at the start of a prompt
    /// that does not bring its own.
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        self.0.adds_bos()
    }

    /// The names of the LoRA adapters that the operator loaded with it, for
    /// [`SessionOptions::adapter`].
    #[must_use]
    pub fn adapters(&self) -> Vec<String> {
        self.0.adapters()
    }

    /// The tokens with which the model ends its turn, the main one first.
    #[must_use]
    pub fn end_tokens(&self) -> Vec<Token> {
        self.0.end_tokens()
    }
}

/// A sequence of tokens and the model's state after it. Dropping it (and its
/// [`Generation`]) frees the state at once.
#[derive(Debug)]
pub struct Session(Rc<session::Session>);

impl Session {
    /// Opens an empty session that may grow to the model's context.
    ///
    /// # Errors
    /// [`Error::Quota`] when the component holds too many sessions.
    pub fn open(model: &Model) -> Result<Self, Error> {
        Self::open_with(model, SessionOptions::default())
    }

    /// Opens an empty session.
    ///
    /// # Errors
    /// As [`Session::open`]; [`Error::InvalidArgument`] for options out of range.
    pub fn open_with(model: &Model, options: SessionOptions) -> Result<Self, Error> {
        session::Session::open(&model.0, &options).map(|session| Self(Rc::new(session)))
    }

    /// How many tokens it holds.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.0.length()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends tokens and computes the state after them. Blocks until that is
    /// done; on an error the session is as before.
    ///
    /// # Errors
    /// [`Error::ContextFull`] when the tokens do not fit, [`Error::Busy`] and
    /// [`Error::Quota`] when there is no room now.
    pub fn prefill(&self, tokens: &[Token]) -> Result<PrefillInfo, Error> {
        self.0.prefill(tokens)
    }

    /// A session that holds what this one holds, and shares it: a branch costs
    /// what it adds.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a run goes on, as for all calls below;
    /// [`Error::Quota`] for too many sessions or KV cells.
    pub fn fork(&self) -> Result<Self, Error> {
        self.0.fork().map(|session| Self(Rc::new(session)))
    }

    /// Shortens the session to `to` tokens and says how many it holds now.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more tokens than there are.
    pub fn rewind(&self, to: u32) -> Result<u32, Error> {
        self.0.rewind(to)
    }

    /// Takes `count` tokens at `at` out of the session; those behind them move
    /// up and keep what they have seen.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tokens that are not there,
    /// [`Error::Unsupported`] where the model cannot do it.
    pub fn evict(&self, at: u32, count: u32) -> Result<(), Error> {
        self.0.evict(at, count)
    }

    /// Moves the state out of the KV cells until the session is used again: to
    /// be called before a longer wait, as for a tool.
    ///
    /// # Errors
    /// [`Error::Evicted`] when the state is gone already.
    pub fn park(&self) -> Result<(), Error> {
        self.0.park()
    }

    /// Keeps what the session holds under a name, for [`Session::restore`] in
    /// this or a later request, while the model stays loaded.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name that is not allowed or one too many,
    /// [`Error::Busy`] without room.
    pub fn save(&self, name: &str) -> Result<(), Error> {
        self.0.save(name)
    }

    /// Opens a session that holds what was saved under a name. None: nothing
    /// was.
    ///
    /// # Errors
    /// As [`Session::open`], and [`Error::Quota`] for too many KV cells.
    pub fn restore(model: &Model, name: &str) -> Result<Option<Self>, Error> {
        Self::restore_with(model, SessionOptions::default(), name)
    }

    /// The same with options. The adapter must be the one it was saved with.
    ///
    /// # Errors
    /// As [`Session::restore`], and [`Error::InvalidArgument`] for another adapter.
    pub fn restore_with(model: &Model, options: SessionOptions, name: &str) -> Result<Option<Self>, Error> {
        let found = session::Session::restore(&model.0, &options, name)?;
        Ok(found.map(|session| Self(Rc::new(session))))
    }

    /// Has what the session says from here on follow a grammar: its runs, and the
    /// tokens that [`Readout::Sample`] chooses. A run ends with
    /// [`Finish::ConstraintDone`] where nothing more may come.
    ///
    /// Forks and what is saved have the grammar too, and a session that is rewound
    /// is at the grammar's place of then. Tokens that are given to the session
    /// meanwhile must be allowed by it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a grammar of another model,
    /// [`Error::Quota`] when the component's sessions and grammars take too much.
    pub fn constrain(&self, grammar: &Grammar) -> Result<(), Error> {
        self.0.constrain(Some(&grammar.0))
    }

    /// Lets what the session says be free again.
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub fn unconstrain(&self) -> Result<(), Error> {
        self.0.constrain(None)
    }

    /// Gives the session's work another priority from the next batch on, also while
    /// a run goes on.
    ///
    /// # Errors
    /// [`Error::Busy`] when called faster than the host computes.
    pub fn set_priority(&self, priority: Priority) -> Result<(), Error> {
        self.0.set_priority(priority)
    }

    /// Starts the host's decode loop and returns at once. One run at a time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for options out of range or a second run.
    pub fn generate(&self, options: &GenerateOptions) -> Result<Generation, Error> {
        Ok(Generation { run: self.0.generate(options)?, ending: Ending::default(), _session: Rc::clone(&self.0) })
    }
}

/// A run of the decode loop: an iterator over what it generates, ending after
/// the chunk whose [`Chunk::finish`] is set. Dropping it cancels the run.
///
/// A run that was cut short does not look like a whole one: behind its last
/// chunk comes an error, [`Error::Evicted`] for [`Finish::Preempted`],
/// [`Error::Deadline`] for [`Finish::Deadline`] and [`Error::Cancelled`] for
/// [`Finish::Cancelled`]. A program that expects such an end looks at
/// [`Chunk::finish`] and asks no further.
///
/// It keeps its session alive, so the [`Session`] may be dropped before it.
#[derive(Debug)]
pub struct Generation {
    // Before the session, which must not be dropped under a run.
    run: session::Generation,
    ending: Ending,
    _session: Rc<session::Session>,
}

impl Generation {
    /// Adds tokens to the session as if the run had generated them, and lets it go
    /// on behind them: what a tool found, say. Their text does not leave. Tokens
    /// that were generated before the host took the call stand before them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a run that has ended, [`Error::ContextFull`]
    /// and [`Error::Quota`] for tokens that do not fit; the run goes on without
    /// them.
    pub fn inject(&self, tokens: &[Token]) -> Result<(), Error> {
        self.run.inject(tokens)
    }

    /// Ends the run within one decode step. What was generated so far can still
    /// be taken; behind it comes [`Error::Cancelled`].
    pub fn cancel(&self) {
        self.run.cancel();
    }
}

impl Iterator for Generation {
    type Item = Result<Chunk, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ending.next(|| self.run.next())
    }
}

/// What this instance has used.
#[must_use]
pub fn used() -> Usage {
    meter::used()
}

/// What this instance may use.
#[must_use]
pub fn limits() -> Limits {
    meter::limit()
}

impl Default for SessionOptions {
    /// As many tokens as the context has, [`Priority::Normal`], and no adapter.
    fn default() -> Self {
        Self { max_tokens: None, priority: Priority::Normal, adapter: None }
    }
}

impl Sampler {
    /// Always the most likely token.
    pub const GREEDY: Self = Self {
        repeat_penalty: 1.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        penalty_window: 0,
        dry: None,
        top_n_sigma: 0.0,
        top_k: 0,
        typical_p: 1.0,
        top_p: 1.0,
        min_p: 0.0,
        xtc: None,
        temperature: 0.0,
        dynamic_temperature: None,
        mirostat: None,
        seed: None,
    };
}

impl Default for Sampler {
    /// Draws from the model's own distribution: temperature 1, nothing cut off.
    fn default() -> Self {
        Self { temperature: 1.0, ..Self::GREEDY }
    }
}

impl GenerateOptions {
    /// Up to `max_new` tokens drawn by `sampler`, each handed over as it comes.
    #[must_use]
    pub fn new(max_new: u32, sampler: Sampler) -> Self {
        Self {
            sampler,
            max_new,
            stop_tokens: Vec::new(),
            stop_text: Vec::new(),
            shown_tokens: Vec::new(),
            ignore_end: false,
            bias: Vec::new(),
            dry_breakers: Vec::new(),
            top_logprobs: None,
            flush_tokens: 1,
            flush_ms: 0,
            deadline_ms: None,
            draft: None,
        }
    }

    /// Up to `max_new` tokens, always the most likely one.
    ///
    /// ```
    /// use nala_sdk::llm::GenerateOptions;
    /// let options = GenerateOptions {
    ///     stop_text: vec!["\n".to_owned()],
    ///     ..GenerateOptions::greedy(16)
    /// };
    /// assert_eq!(options.sampler.temperature, 0.0);
    /// ```
    #[must_use]
    pub fn greedy(max_new: u32) -> Self {
        Self::new(max_new, Sampler::GREEDY)
    }
}

/// The error in words for people.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::InvalidArgument(text) | Error::Unsupported(text) | Error::NotFound(text) | Error::Denied(text) => {
            text.clone()
        }
        Error::ContextFull(room) => {
            format!("the prompt does not fit into the context; {room} tokens would still fit")
        }
        Error::Quota(kind) => {
            let what = match kind {
                QuotaKind::Tokens => "tokens",
                QuotaKind::Kv => "KV cells",
                QuotaKind::Sessions => "open sessions",
                QuotaKind::Cpu => "CPU time",
                QuotaKind::Wall => "wall time",
                QuotaKind::Memory => "memory",
            };
            format!("the quota of {what} is used up")
        }
        Error::Deadline => "the deadline has passed".to_owned(),
        Error::Cancelled => "the generation was cancelled, or the host is shutting down".to_owned(),
        Error::Busy => "the model is busy; try again later".to_owned(),
        Error::Evicted => "the session's state was evicted; its tokens must be prefilled again".to_owned(),
        Error::Constraint(text) => format!("the output constraint failed: {text}"),
        Error::Backend(text) => format!("the inference backend failed: {text}"),
    }
}
