//! Between the interface's types and the engine's.

use std::time::Duration;

use nala_engine as engine;

use super::bindings::nala::llm::session as wit;
use super::bindings::nala::llm::types::Error;

pub(super) fn error(error: engine::Error) -> Error {
    match error {
        engine::Error::InvalidArgument(text) => Error::InvalidArgument(text),
        engine::Error::ContextFull { free } => Error::ContextFull(free),
        engine::Error::Busy => Error::Busy,
        engine::Error::Evicted => Error::Evicted,
        engine::Error::Unsupported(text) => Error::Unsupported(text),
        engine::Error::Cancelled => Error::Cancelled,
        engine::Error::Constraint(text) => Error::Constraint(text),
        engine::Error::Backend(text) => Error::Backend(text),
        // The engine's errors may grow in number.
        other => Error::Backend(other.to_string()),
    }
}

pub(super) fn options(options: wit::GenerateOptions) -> engine::GenerateOptions {
    let s = options.sampler;
    engine::GenerateOptions {
        sampling: engine::Sampling {
            repeat_penalty: s.repeat_penalty,
            frequency_penalty: s.frequency_penalty,
            presence_penalty: s.presence_penalty,
            penalty_window: s.penalty_window,
            dry: s.dry.map(|dry| engine::Dry {
                multiplier: dry.multiplier,
                base: dry.base,
                allowed_length: dry.allowed_length,
                window: dry.window,
                breakers: options.dry_breakers,
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
            mirostat: s.mirostat.map(|mirostat| engine::Mirostat { tau: mirostat.tau, eta: mirostat.eta }),
            seed: s.seed,
        },
        max_new: options.max_new,
        stop_tokens: options.stop_tokens,
        stop_text: options.stop_text,
        ignore_end: options.ignore_end,
        bias: options.bias.into_iter().map(|b| (b.id, b.add)).collect(),
        top_logprobs: options.top_logprobs,
        flush_tokens: options.flush_tokens,
        flush_after: Duration::from_millis(options.flush_ms.into()),
        deadline: options.deadline_ms.map(|ms| Duration::from_millis(ms.into())),
        draft: None,
    }
}

pub(super) fn chunk(chunk: engine::Chunk) -> wit::Chunk {
    wit::Chunk {
        tokens: chunk.tokens.into_iter().map(sampled).collect(),
        text: chunk.text,
        finish: chunk.finish.map(finish),
    }
}

fn sampled(token: engine::Sampled) -> wit::Sampled {
    let alt = |a: engine::Alternative| wit::Alt { id: a.token, logprob: a.logprob };
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
        engine::Finish::StopText => wit::Finish::StopText,
        engine::Finish::Length => wit::Finish::Length,
        engine::Finish::ContextFull => wit::Finish::ContextFull,
        engine::Finish::ConstraintDone => wit::Finish::ConstraintDone,
        engine::Finish::Deadline => wit::Finish::Deadline,
        engine::Finish::Cancelled => wit::Finish::Cancelled,
        engine::Finish::Preempted => wit::Finish::Preempted,
    }
}
