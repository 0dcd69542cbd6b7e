//! How tokens are chosen: OpenAI's parameters, and llama.cpp's by its server's names
//! and with its defaults (`tools/server/README.md` there).

use nala_sdk::llm::{Dry, DynamicTemperature, Mirostat, MirostatVersion, Sampler, Xtc};
use serde_json::Value;

use super::DEFAULT_MIN_P;
use super::fields::Fields;
use crate::brief::brief;
use crate::error::ApiError;

/// A window that is as long as the answer: "-1" at llama.cpp.
const WHOLE: u32 = u32::MAX;
/// The longest window of `dry_*`: it costs that much each token.
const MAX_DRY_WINDOW: u32 = 4096;
/// The most texts that break a repetition.
const MAX_BREAKERS: usize = 64;
/// Those that do if the client names none.
const BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];
/// The longest of them, in bytes: each must be one token.
const MAX_BREAKER: usize = 64;

/// The parameters that are read here.
pub(crate) const NAMES: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "repeat_penalty",
    "repeat_last_n",
    "frequency_penalty",
    "presence_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "xtc_probability",
    "xtc_threshold",
    "dynatemp_range",
    "dynatemp_exponent",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "seed",
];

/// The sampler. A window of [`u32::MAX`] is as long as the answer.
pub(crate) fn sampler(fields: &Fields<'_>) -> Result<Sampler, ApiError> {
    let top_p = fields.number("top_p", 0.0, 1.0)?;
    let top_k = fields.integer("top_k", 0, u64::from(u32::MAX))?;
    let min_p = fields.number("min_p", 0.0, 1.0)?;
    let mirostat = mirostat(fields)?;
    let uncut = top_p.is_none() && top_k.is_none() && mirostat.is_none();
    Ok(Sampler {
        repeat_penalty: fields.number("repeat_penalty", 0.1, 10.0)?.unwrap_or(1.0),
        frequency_penalty: fields.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        presence_penalty: fields.number("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        // The whole answer, as at OpenAI.
        penalty_window: window(fields, "repeat_last_n")?.unwrap_or(WHOLE),
        dry: dry(fields)?,
        // 0 and less: off.
        top_n_sigma: fields.number("top_n_sigma", -1.0, 100.0)?.unwrap_or(0.0).max(0.0),
        top_k: top_k.and_then(|k| u32::try_from(k).ok()).unwrap_or(0),
        typical_p: typical(fields)?,
        top_p: top_p.unwrap_or(1.0),
        min_p: min_p.unwrap_or(if uncut { DEFAULT_MIN_P } else { 0.0 }),
        xtc: xtc(fields)?,
        temperature: fields.number("temperature", 0.0, 2.0)?.unwrap_or(1.0),
        dynamic_temperature: dynamic_temperature(fields)?,
        mirostat,
        seed: seed(fields)?,
    })
}

/// The texts over which no repetition reaches.
pub(crate) fn dry_breakers(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    const NAME: &str = "dry_sequence_breakers";
    let wrong = |message: String| ApiError::invalid(NAME, message);
    let Some(value) = fields.0.get(NAME) else { return Ok(BREAKERS.map(str::to_owned).to_vec()) };
    let Value::Array(list) = value else { return Err(Fields::wrong(NAME, "a list of strings", value)) };
    if list.len() > MAX_BREAKERS {
        return Err(wrong(format!("'{NAME}' has {} texts, but at most {MAX_BREAKERS} are allowed", list.len())));
    }
    let one = |(index, value): (usize, &Value)| match value {
        Value::String(text) if (1..=MAX_BREAKER).contains(&text.len()) => Ok(text.clone()),
        Value::String(text) => {
            Err(wrong(format!("'{NAME}[{index}]' must have 1 to {MAX_BREAKER} bytes, not {}", text.len())))
        }
        other => Err(wrong(format!("'{NAME}[{index}]' must be a string, not {}", brief(other)))),
    };
    list.iter().enumerate().map(one).collect()
}

fn seed(fields: &Fields<'_>) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.0.get("seed") else { return Ok(None) };
    let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
    seed.map(Some).ok_or_else(|| Fields::wrong("seed", "an integer", value))
}

/// A count of tokens; -1 stands for all.
fn window(fields: &Fields<'_>, name: &str) -> Result<Option<u32>, ApiError> {
    let Some(value) = fields.0.get(name) else { return Ok(None) };
    match value.as_i64() {
        Some(-1) => Ok(Some(WHOLE)),
        Some(tokens) if tokens >= 0 => Ok(Some(u32::try_from(tokens).unwrap_or(WHOLE))),
        _ => Err(Fields::wrong(name, "an integer from -1", value)),
    }
}

fn typical(fields: &Fields<'_>) -> Result<f32, ApiError> {
    match fields.number("typical_p", 0.0, 1.0)? {
        // Nothing would be left.
        Some(0.0) => Err(ApiError::invalid("typical_p", "'typical_p' must be more than 0; 1 switches it off")),
        other => Ok(other.unwrap_or(1.0)),
    }
}

fn dry(fields: &Fields<'_>) -> Result<Option<Dry>, ApiError> {
    let multiplier = fields.number("dry_multiplier", 0.0, 100.0)?.unwrap_or(0.0);
    let base = fields.number("dry_base", 1.0, 100.0)?.unwrap_or(1.75);
    let allowed_length = fields.integer("dry_allowed_length", 1, u64::from(u32::MAX))?.unwrap_or(2);
    let window = window(fields, "dry_penalty_last_n")?.unwrap_or(WHOLE).min(MAX_DRY_WINDOW);
    let allowed_length = u32::try_from(allowed_length).unwrap_or(u32::MAX);
    Ok((multiplier > 0.0 && window > 0).then_some(Dry { multiplier, base, allowed_length, window }))
}

fn xtc(fields: &Fields<'_>) -> Result<Option<Xtc>, ApiError> {
    let probability = fields.number("xtc_probability", 0.0, 1.0)?.unwrap_or(0.0);
    let threshold = fields.number("xtc_threshold", 0.0, 1.0)?.unwrap_or(0.1);
    Ok((probability > 0.0).then_some(Xtc { probability, threshold }))
}

fn dynamic_temperature(fields: &Fields<'_>) -> Result<Option<DynamicTemperature>, ApiError> {
    let range = fields.number("dynatemp_range", 0.0, 2.0)?.unwrap_or(0.0);
    let exponent = fields.number("dynatemp_exponent", 0.01, 100.0)?.unwrap_or(1.0);
    Ok((range > 0.0).then_some(DynamicTemperature { range, exponent }))
}

fn mirostat(fields: &Fields<'_>) -> Result<Option<Mirostat>, ApiError> {
    let tau = fields.number("mirostat_tau", 0.01, 100.0)?.unwrap_or(5.0);
    let eta = fields.number("mirostat_eta", 0.0, 1.0)?.unwrap_or(0.1);
    match fields.integer("mirostat", 0, 2)?.unwrap_or(0) {
        0 => Ok(None),
        1 => Ok(Some(Mirostat { version: MirostatVersion::One, tau, eta })),
        _ => Ok(Some(Mirostat { version: MirostatVersion::Two, tau, eta })),
    }
}
