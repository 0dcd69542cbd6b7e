//! Between the interface's types and the engine's.

use std::time::Duration;

use nala_engine as engine;

use super::bindings::nala::llm::session as wit;
use super::bindings::nala::llm::types::{Error, QuotaKind};

pub(super) fn error(error: engine::Error) -> Error {
    match error {
        engine::Error::InvalidArgument(text) => Error::InvalidArgument(text),
        engine::Error::ContextFull { free } => Error::ContextFull(free),
        engine::Error::Busy => Error::Busy,
        // What is kept between requests is memory of the host.
        engine::Error::Quota(_) => Error::Quota(QuotaKind::Memory),
        engine::Error::Evicted => Error::Evicted,
        engine::Error::Unsupported(text) => Error::Unsupported(text),
        engine::Error::Cancelled => Error::Cancelled,
        engine::Error::Constraint(text) => Error::Constraint(text),
        engine::Error::Backend(text) => Error::Backend(text),
        // The engine's errors may grow in number.
        other => Error::Backend(other.to_string()),
    }
}

/// An error in words, for interfaces that have no types for it.
pub(crate) fn words(error: &Error) -> String {
    let of_engine = match error {
        Error::InvalidArgument(text)
        | Error::Unsupported(text)
        | Error::NotFound(text)
        | Error::Denied(text)
        | Error::Constraint(text) => return text.clone(),
        Error::Backend(text) => engine::Error::Backend(text.clone()),
        Error::ContextFull(free) => engine::Error::ContextFull { free: *free },
        Error::Cancelled => engine::Error::Cancelled,
        Error::Busy => engine::Error::Busy,
        Error::Evicted => engine::Error::Evicted,
        Error::Deadline => return "the deadline has passed".into(),
        Error::Quota(kind) => {
            return match kind {
                QuotaKind::Kv => "the component may hold no more KV cells; drop sessions, or shorten the prompt",
                QuotaKind::Sessions => "the component may open no more sessions; drop some, or execution contexts",
                QuotaKind::Memory => "the component may hold no more grammars; drop some, or use a simpler one",
                QuotaKind::Tokens | QuotaKind::Cpu | QuotaKind::Wall => "a limit of the component was reached",
            }
            .into();
        }
    };
    of_engine.to_string()
}

fn sampling(s: wit::Sampler, breakers: Vec<u32>) -> engine::Sampling {
    engine::Sampling {
        repeat_penalty: s.repeat_penalty,
        frequency_penalty: s.frequency_penalty,
        presence_penalty: s.presence_penalty,
        penalty_window: s.penalty_window,
        dry: s.dry.map(|dry| engine::Dry {
            multiplier: dry.multiplier,
            base: dry.base,
            allowed_length: dry.allowed_length,
            window: dry.window,
            breakers,
        }),
        top_n_sigma: s.top_n_sigma,
        top_k: s.top_k,
        typical_p: s.typical_p,
        top_p: s.top_p,
        min_p: s.min_p,
        xtc: s.xtc.map(|xtc| engine::Xtc { probability: xtc.probability, threshold: xtc.threshold }),
        temperature: s.temperature,
        dynamic_temperature: s
            .dynamic_temperature
            .map(|dynamic| engine::DynamicTemperature { range: dynamic.range, exponent: dynamic.exponent }),
        mirostat: s.mirostat.map(|mirostat| engine::Mirostat {
            version: match mirostat.version {
                wit::MirostatVersion::One => engine::MirostatVersion::One,
                wit::MirostatVersion::Two => engine::MirostatVersion::Two,
            },
            tau: mirostat.tau,
            eta: mirostat.eta,
        }),
        seed: s.seed,
    }
}

pub(super) fn options(options: wit::GenerateOptions) -> engine::GenerateOptions {
    engine::GenerateOptions {
        sampling: sampling(options.sampler, options.dry_breakers),
        max_new: options.max_new,
        stop_tokens: options.stop_tokens,
        stop_text: options.stop_text,
        shown: options.shown_tokens,
        ignore_end: options.ignore_end,
        bias: options.bias.into_iter().map(|b| (b.id, b.add)).collect(),
        top_logprobs: options.top_logprobs,
        flush_tokens: options.flush_tokens,
        flush_after: Duration::from_millis(options.flush_ms.into()),
        deadline: options.deadline_ms.map(|ms| Duration::from_millis(ms.into())),
        draft: options.draft,
    }
}

pub(super) fn chunk(chunk: engine::Chunk) -> wit::Chunk {
    wit::Chunk {
        tokens: chunk.tokens.into_iter().map(sampled).collect(),
        text: chunk.text,
        finish: chunk.finish.map(finish),
    }
}

pub(super) fn priority(priority: wit::Priority) -> engine::Priority {
    match priority {
        wit::Priority::Background => engine::Priority::Background,
        wit::Priority::Normal => engine::Priority::Normal,
        wit::Priority::Interactive => engine::Priority::Interactive,
    }
}

pub(super) fn readout(readout: wit::Readout) -> engine::Readout {
    match readout {
        // There are no tokens of a run that a repetition could reach over.
        wit::Readout::Sample(sampler) => engine::Readout::Sample(Box::new(sampling(sampler, Vec::new()))),
        wit::Readout::Top(n) => engine::Readout::Top(n),
        wit::Readout::LogprobsOf(tokens) => engine::Readout::LogprobsOf(tokens),
        wit::Readout::Entropy => engine::Readout::Entropy,
    }
}

pub(super) fn readings(readings: Result<Vec<engine::Reading>, engine::Error>) -> Result<Vec<wit::Reading>, Error> {
    let one = |reading| match reading {
        engine::Reading::Token(token) => wit::Reading::Token(sampled(token)),
        engine::Reading::Top(top) => wit::Reading::Top(top.into_iter().map(alt).collect()),
        engine::Reading::Logprobs(logprobs) => wit::Reading::Logprobs(logprobs),
        engine::Reading::Entropy(entropy) => wit::Reading::Entropy(entropy),
    };
    readings.map(|all| all.into_iter().map(one).collect()).map_err(error)
}

fn alt(alternative: engine::Alternative) -> wit::Alt {
    wit::Alt { id: alternative.token, logprob: alternative.logprob }
}

fn sampled(token: engine::Sampled) -> wit::Sampled {
    wit::Sampled {
        id: token.token,
        logprob: token.logprob,
        alts: token.alternatives.into_iter().map(alt).collect(),
        forced: token.forced,
    }
}

fn finish(finish: engine::Finish) -> wit::Finish {
    match finish {
        engine::Finish::StopToken => wit::Finish::StopToken,
        engine::Finish::StopText(which) => wit::Finish::StopText(which),
        engine::Finish::Length => wit::Finish::Length,
        engine::Finish::ContextFull => wit::Finish::ContextFull,
        engine::Finish::ConstraintDone => wit::Finish::ConstraintDone,
        engine::Finish::Deadline => wit::Finish::Deadline,
        engine::Finish::Cancelled => wit::Finish::Cancelled,
        engine::Finish::Preempted => wit::Finish::Preempted,
    }
}
