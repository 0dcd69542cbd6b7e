//! What callers choose: sampling, stopping, flushing.

use std::sync::Arc;
use std::time::Duration;

use crate::Token;

/// How the next token is chosen. The steps run in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits of tokens seen in the penalty window (multiplies
    /// where negative). 1.0: off.
    pub repeat_penalty: f32,
    /// Subtracted for each occurrence in the window. 0.0: off.
    pub frequency_penalty: f32,
    /// Subtracted once for tokens that occur in the window. 0.0: off.
    pub presence_penalty: f32,
    /// How many of the latest tokens of the run the penalties look at; the prompt
    /// does not count. 0: off.
    pub penalty_window: u32,
    /// Against repeating whole phrases. None: off.
    pub dry: Option<Dry>,
    /// Keep tokens whose logit is at most so many standard deviations below the
    /// largest. 0.0: off.
    pub top_n_sigma: f32,
    /// Keep the k most likely tokens. 0: off.
    pub top_k: u32,
    /// Keep the tokens whose information is nearest to what is expected, up to
    /// this sum of probabilities ("locally typical"). 1.0: off.
    pub typical_p: f32,
    /// Keep the most likely tokens whose probabilities sum up to p, from 0.0 to
    /// 1.0. 1.0: off.
    pub top_p: f32,
    /// Keep tokens at least this probable relative to the most likely one, from
    /// 0.0 to 1.0. 0.0: off.
    pub min_p: f32,
    /// Now and then leave out all likely tokens but the least likely of them.
    /// None: off.
    pub xtc: Option<Xtc>,
    /// Divides the logits before the draw; 0.0 takes the most likely token.
    pub temperature: f32,
    /// Let the temperature follow how undecided the model is. None: it is fixed.
    pub dynamic_temperature: Option<DynamicTemperature>,
    /// Draw so that the surprise stays about the same, in place of the steps from
    /// `top_n_sigma` to `xtc`. None: off.
    pub mirostat: Option<Mirostat>,
    /// The same seed, prompt and options give the same draw. None: chosen by
    /// the engine.
    pub seed: Option<u64>,
}

impl Sampling {
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

/// The "don't repeat yourself" penalty: a token that would prolong a repetition of
/// `n` tokens, at least `allowed_length`, loses
/// `multiplier * base^(n - allowed_length)` from its logit.
#[derive(Debug, Clone, PartialEq)]
pub struct Dry {
    /// More than 0.
    pub multiplier: f32,
    /// At least 1.
    pub base: f32,
    /// Repetitions of fewer tokens cost nothing; at least 1.
    pub allowed_length: u32,
    /// How many of the latest tokens of the run it looks at, at most
    /// [`MAX_DRY_WINDOW`].
    pub window: u32,
    /// No repetition reaches over one of these, a line's end say.
    pub breakers: Vec<Token>,
}

/// The most tokens that [`Dry`] looks back over: it costs that much each token.
pub const MAX_DRY_WINDOW: u32 = 4096;

/// "Exclude top choices": with `probability`, of the tokens at least as probable
/// as `threshold` only the least probable is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xtc {
    /// From 0 to 1.
    pub probability: f32,
    /// From 0 to 1; above 0.5 nothing is ever left out.
    pub threshold: f32,
}

/// The temperature is `temperature - range` where the model is certain,
/// `temperature + range` where it knows nothing, and in between follows the
/// entropy, as a part of the most that is possible, to the power of `exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DynamicTemperature {
    /// More than 0.
    pub range: f32,
    /// More than 0.
    pub exponent: f32,
}

/// Which of the two algorithms of Basu et al., "Mirostat".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MirostatVersion {
    /// How many tokens are kept follows from the bound and from how fast the
    /// probabilities of the likeliest 100 fall, taken for those of all.
    One,
    /// Tokens more surprising than the bound are left out.
    #[default]
    Two,
}

/// Few tokens are kept where the surprise is above `tau` bits, and more where it is
/// below, by a bound that moves so that it comes to `tau` on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mirostat {
    /// How tokens are left out.
    pub version: MirostatVersion,
    /// The surprise aimed at, in bits; more than 0.
    pub tau: f32,
    /// How fast the bound moves, from 0 to 1.
    pub eta: f32,
}

/// One run of the decode loop.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateOptions {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// The most tokens to generate, at least 1.
    pub max_new: u32,
    /// End the run before this token is added, beside the model's own.
    pub stop_tokens: Vec<Token>,
    /// End the run where one of these appears; neither it nor anything behind
    /// it leaves. None is empty.
    pub stop_text: Vec<String>,
    /// Control tokens whose text is part of [`Chunk::text`]; others have none
    /// there. Stop texts see it too. A token that ends the run has no text in any
    /// case.
    pub shown: Vec<Token>,
    /// Go on past the model's own end tokens.
    pub ignore_end: bool,
    /// Added to single logits before everything else.
    pub bias: Vec<(Token, f32)>,
    /// Alternatives to report a token, at most [`MAX_LOGPROBS`]. None: no
    /// log-probabilities.
    pub top_logprobs: Option<u32>,
    /// Hand tokens over when so many have gathered (0 counts as 1) …
    pub flush_tokens: u32,
    /// … or when the first of them has waited so long. Zero: hand over each
    /// token at once.
    pub flush_after: Duration,
    /// End the run after so long.
    pub deadline: Option<Duration>,
    /// The most tokens to guess ahead, see [`EngineConfig::max_draft`], which is
    /// also what None means. 0: none. What comes out is the same.
    ///
    /// [`EngineConfig::max_draft`]: crate::EngineConfig::max_draft
    pub draft: Option<u32>,
}

/// Which of a tenant's work goes first.
///
/// No priority starves: of a tenant's tokens, interactive work gets 16 parts,
/// normal work 4 and background work 1, where all three wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Work that nobody waits for.
    Background,
    /// Everything else.
    #[default]
    Normal,
    /// Somebody looks at the screen.
    Interactive,
}

/// Whom work is for. Where several tenants want more than there is, each gets
/// tokens by its weight, however many sessions it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// Tells it from others; chosen by the host.
    pub name: Arc<str>,
    /// Its part of the whole, beside the weights of the others. 0 counts as 1.
    pub weight: u32,
    /// The most runs of it that are decoded at a time; further ones wait until one of
    /// those is over. 0 counts as 1.
    pub max_runs: u32,
    /// The most sessions that it keeps saved, in all its scopes together.
    pub max_saved: u32,
    /// The most bytes of RAM that those take.
    pub saved_bytes: u64,
}

impl Default for Tenant {
    /// One that nothing limits beyond what the engine allows anybody.
    fn default() -> Self {
        Self { name: Arc::from(""), weight: 1, max_runs: u32::MAX, max_saved: u32::MAX, saved_bytes: u64::MAX }
    }
}

/// What is wanted of the logits after a step, see
/// [`submit`](crate::engine::submit).
#[derive(Debug, Clone, PartialEq)]
pub enum Readout {
    /// A token, chosen as a run would choose it; it is not added to the session.
    /// Penalties have nothing to look at. With a seed the draw follows from the
    /// seed and the session's length.
    Sample(Box<Sampling>),
    /// The most likely tokens, at most [`MAX_LOGPROBS`].
    Top(u32),
    /// The log-probabilities of these tokens, at most [`MAX_READOUT_TOKENS`].
    LogprobsOf(Vec<Token>),
    /// How undecided the model is: the entropy of its distribution, in nats.
    Entropy,
}

/// The most tokens that one [`Readout::LogprobsOf`] can ask for.
pub const MAX_READOUT_TOKENS: usize = 4096;

/// What a [`Readout`] gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// The token that was chosen.
    Token(Sampled),
    /// The most likely tokens, the likeliest first.
    Top(Vec<Alternative>),
    /// In the order of the question.
    Logprobs(Vec<f32>),
    /// In nats.
    Entropy(f32),
}

/// The most alternatives that can be reported a token.
pub const MAX_LOGPROBS: u32 = 20;

impl GenerateOptions {
    /// Greedy generation of up to `max_new` tokens, each handed over at once.
    #[must_use]
    pub fn greedy(max_new: u32) -> Self {
        Self {
            sampling: Sampling::GREEDY,
            max_new,
            stop_tokens: Vec::new(),
            stop_text: Vec::new(),
            shown: Vec::new(),
            ignore_end: false,
            bias: Vec::new(),
            top_logprobs: None,
            flush_tokens: 1,
            flush_after: Duration::ZERO,
            deadline: None,
            draft: None,
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model ended its turn, or a stop token was drawn. That token is the
    /// last one of the last chunk; it is not added to the session.
    StopToken,
    /// A stop text appeared: the one at this place of
    /// [`GenerateOptions::stop_text`]. Of several it is the one whose last character
    /// came first, and of those that end together the longest.
    StopText(u32),
    /// `max_new` tokens were generated.
    Length,
    /// The context, or the session's limit, is full.
    ContextFull,
    /// The session's grammar allows nothing more.
    ConstraintDone,
    /// The deadline passed.
    Deadline,
    /// `Generation::cancel` was called.
    Cancelled,
    /// The KV cells were needed for another session.
    Preempted,
}

/// A token and its log-probability under the model, before the sampler's steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    /// The token.
    pub token: Token,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}

/// A token that was generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The token.
    pub token: Token,
    /// Natural logarithm of its probability, if asked for.
    pub logprob: Option<f32>,
    /// The most likely tokens at this place, if asked for.
    pub alternatives: Vec<Alternative>,
    /// Whether a constraint left no choice, so that it was not sampled.
    pub forced: bool,
}

/// What has been generated since the last chunk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chunk {
    /// The tokens, in order.
    pub tokens: Vec<Sampled>,
    /// Their text: whole characters only; complete with the last chunk.
    pub text: String,
    /// Set in the last chunk only.
    pub finish: Option<Finish>,
}

/// What a prefill cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefillInfo {
    /// Tokens whose state was already there.
    pub cached: u32,
    /// Tokens that were computed.
    pub computed: u32,
    /// How long the work waited before its first batch.
    pub queued: Duration,
}
