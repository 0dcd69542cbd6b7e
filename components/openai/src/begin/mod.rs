//! From a checked request to a running answer.

mod length;
mod lookout;
mod output;
mod prompt;
mod said;
mod served;
mod strict;

use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nala_sdk::llm::{self, GenerateOptions, Info, Model, Priority, Sampler, Session, SessionOptions, Token};

use crate::ask::{Ask, Options, Pace};
use crate::error::ApiError;
use crate::parameters::AtEnd;
use crate::turn::{Bytes, Running, Turns};
pub(crate) use prompt::{Written, write};
use said::{Begun, Said};
pub(crate) use served::{Served, begin_served};
use strict::{Plan, Watch};

/// A whole answer is fetched in batches: it costs fewer calls of the host.
const BATCH_TOKENS: u32 = 64;

/// How long the first token of a batch may wait for the others, in milliseconds.
const BATCH_MS: u32 = 1000;

/// Opens a model by the name that a client gave.
///
/// # Errors
/// 404 for a name that the component may not open, 503 for a model that cannot be
/// loaded now.
pub(crate) fn open(name: &str) -> Result<Model, ApiError> {
    Model::open(name).map_err(|error| unopened(name, error, Model::available))
}

/// Why a model was not opened. `available` are the names that may be.
fn unopened(name: &str, error: llm::Error, available: impl FnOnce() -> Vec<String>) -> ApiError {
    match error {
        // Which models exist beside the granted ones is not the client's business.
        llm::Error::NotFound(_) | llm::Error::Denied(_) => ApiError::model_not_found(name, &available()),
        // Elsewhere it is the client's work that has no room.
        llm::Error::Busy => ApiError::not_loaded(name),
        other => other.into(),
    }
}

/// Opens the model, renders and prefills the prompt, starts generating and waits for
/// the first token.
///
/// # Errors
/// Whatever is wrong up to there, with its status.
pub(crate) fn begin(ask: Ask) -> Result<Running<impl Turns, impl Bytes>, ApiError> {
    begin_one_of(ask, 1)
}

/// Begins one of several answers that run together, each to a prompt of its own. Each
/// may have its share of the request's KV cells.
///
/// # Errors
/// As [`begin`].
pub(crate) fn begin_one_of(ask: Ask, prompts: u32) -> Result<Running<impl Turns, impl Bytes>, ApiError> {
    let asked = Instant::now();
    let Ready { model, info, breakers, written } = ready(&ask)?;
    let grammar = output::grammar(&model, &ask, &written)?;
    let strict = output::strict(&model, &ask, &written)?;

    let tokens = written.tokens.len();
    let room = length::room(ask.param, tokens, info.ctx_max)?;
    let max_new =
        length::of_each(&ask.options, room, tokens, llm::limits().kv_cells / u64::from(prompts.max(1)), prompts)?;
    let options = SessionOptions {
        max_tokens: Some(info.ctx_max - room + max_new),
        // Somebody waits for it.
        priority: Priority::Interactive,
        adapter: None,
    };
    let session = Session::open_with(&model, options)?;
    let began = Instant::now();
    let prompt = session.prefill(&written.tokens).map_err(|error| too_long(ask.param, tokens, error))?;
    let generating = Instant::now();
    if let Some(grammar) = grammar {
        session.constrain(&grammar)?;
    }
    let mut options = options_of(&ask, max_new, breakers, written.shown(&model));
    options.deadline_ms = Some(time_left(asked.elapsed(), llm::limits().wall_us));
    let begun = generations(session, &options, ask.options.choices, strict.map(Rc::new).as_ref())?;
    let turns = Said::begin(begun, written.answering())?;
    Ok(Running {
        created: now(),
        choices: turns.choices(),
        model: ask.model,
        prompt,
        prompt_time: generating.duration_since(began),
        generating,
        turns,
        bytes: move |token| model.decode(&[token]).unwrap_or_default(),
    })
}

/// A request that can be computed.
struct Ready {
    model: Rc<Model>,
    info: Info,
    /// The tokens over which no repetition reaches that the sampler looks for.
    breakers: Vec<Token>,
    written: Written,
}

/// Opens the model and renders the prompt.
fn ready(ask: &Ask) -> Result<Ready, ApiError> {
    let model = Rc::new(open(&ask.model)?);
    let info = model.info();
    check_bias(&ask.options, &info)?;
    let breakers = breakers(&model, &ask.options)?;
    let written = write(&model, &info, ask)?;
    if written.tokens.is_empty() {
        let message = format!("'{}' is empty, and there is nothing that this model begins a text with", ask.param);
        return Err(ApiError::invalid(ask.param, message));
    }
    Ok(Ready { model, info, breakers, written })
}

/// Why a prompt of so many tokens was not read.
fn too_long(param: &str, tokens: usize, error: llm::Error) -> ApiError {
    match error {
        llm::Error::ContextFull(fit) => ApiError::context_length(param, tokens, fit),
        other => other.into(),
    }
}

/// The time, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs())
}

/// How long an answer may take, in milliseconds, so that it ends before the wall time
/// of the request does: what there is of it is more than nothing.
fn time_left(spent: Duration, wall_us: u64) -> u32 {
    /// For what comes before and after, in milliseconds.
    const MARGIN: u64 = 2000;
    let spent = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
    let left = (wall_us / 1000).saturating_sub(spent).saturating_sub(MARGIN);
    u32::try_from(left).unwrap_or(u32::MAX).max(1)
}

/// One run for each choice, all from the same prompt.
fn generations(
    session: Session,
    options: &GenerateOptions,
    choices: u32,
    strict: Option<&Rc<Plan>>,
) -> Result<Vec<Begun>, ApiError> {
    let mut sessions = (1..choices).map(|_| session.fork()).collect::<Result<Vec<_>, _>>()?;
    sessions.insert(0, session);
    let run = |(index, session)| run(&Rc::new(session), choice(options, index), strict);
    (0..).zip(sessions).map(run).collect()
}

/// A run in a session that ends where the answer begins.
fn run(session: &Rc<Session>, options: GenerateOptions, strict: Option<&Rc<Plan>>) -> Result<Begun, ApiError> {
    let prompt = session.len();
    let run = session.generate(&options)?;
    Ok(Begun { run, watch: strict.map(|plan| Watch::new(plan, Rc::clone(session), prompt, options)) })
}

/// Each choice draws with a seed of its own, so that they differ.
fn choice(options: &GenerateOptions, index: u64) -> GenerateOptions {
    let seed = options.sampler.seed.map(|seed| seed.wrapping_add(index));
    GenerateOptions { sampler: Sampler { seed, ..options.sampler }, ..options.clone() }
}

fn check_bias(options: &Options, info: &Info) -> Result<(), ApiError> {
    match options.bias.iter().find(|bias| bias.id >= info.n_vocab) {
        None => Ok(()),
        Some(bias) => {
            let last = info.n_vocab.saturating_sub(1);
            let message = format!("'logit_bias' names token {}, but the model's last is {last}", bias.id);
            Err(ApiError::invalid("logit_bias", message))
        }
    }
}

/// The tokens over which no repetition reaches that the sampler looks for.
fn breakers(model: &Model, options: &Options) -> Result<Vec<Token>, ApiError> {
    if options.sampler.dry.is_none() {
        return Ok(Vec::new());
    }
    let one = |text: &String| match model.encode(text)?[..] {
        [token] => Ok(token),
        ref tokens => {
            let param = "dry_sequence_breakers";
            let message = format!("'{param}' has {text:?}, which is {} tokens of the model and not one", tokens.len());
            Err(ApiError::invalid(param, message))
        }
    };
    options.dry_breakers.iter().map(one).collect()
}

fn options_of(ask: &Ask, max_new: u32, dry_breakers: Vec<Token>, shown_tokens: Vec<Token>) -> GenerateOptions {
    let mut sampler = ask.options.sampler;
    // The penalties never look at the prompt.
    sampler.penalty_window = sampler.penalty_window.min(max_new);
    let (flush_tokens, flush_ms) = match ask.pace {
        Pace::AtOnce => (BATCH_TOKENS, BATCH_MS),
        Pace::ByToken => (1, 0),
    };
    GenerateOptions {
        stop_text: ask.options.stop.clone(),
        ignore_end: ask.options.at_end == AtEnd::GoOn,
        dry_breakers,
        shown_tokens,
        bias: ask.options.bias.clone(),
        top_logprobs: ask.options.top_logprobs,
        flush_tokens,
        flush_ms,
        ..GenerateOptions::new(max_new, sampler)
    }
}

#[cfg(test)]
mod tests {
    use nala_sdk::http::IntoResponse;

    use super::*;

    #[test]
    fn a_model_that_is_not_opened_has_a_status_that_says_why() {
        let status = |error| {
            let error = unopened("m", error, || vec!["other".to_owned()]);
            let retry = error.clone().into_response().header("retry-after").is_some();
            (error.status, error.code, retry)
        };
        assert_eq!(status(llm::Error::Busy), (503, Some("model_loading"), true));
        assert_eq!(status(llm::Error::NotFound(String::new())), (404, Some("model_not_found"), false));
        assert_eq!(status(llm::Error::Denied(String::new())), (404, Some("model_not_found"), false));
        assert_eq!(status(llm::Error::Backend(String::new())), (500, None, false));
    }

    #[test]
    fn an_answer_ends_before_its_request() {
        assert_eq!(time_left(Duration::from_secs(10), 120_000_000), 108_000);
        assert_eq!(time_left(Duration::from_secs(200), 120_000_000), 1);
        assert_eq!(time_left(Duration::ZERO, u64::MAX), u32::MAX);
    }

    #[test]
    fn choices_draw_differently_and_the_first_as_if_alone() {
        let seeded = |seed| GenerateOptions::new(1, Sampler { seed, ..Sampler::default() });
        assert_eq!(choice(&seeded(Some(7)), 0), seeded(Some(7)));
        assert_eq!(choice(&seeded(Some(u64::MAX)), 2).sampler.seed, Some(1));
        assert_eq!(choice(&seeded(None), 2).sampler.seed, None);
    }
}
