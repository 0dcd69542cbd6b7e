//! Single parameters: of which kind they are and within which range.

use nala_sdk::llm::MAX_LOGPROBS;
use serde_json::{Map, Value};

use super::{Delivery, StreamUsage};
use crate::brief::{brief, short};
use crate::error::ApiError;

/// The parameters that are given, none of them null.
pub(crate) struct Fields<'a>(pub(crate) &'a Map<String, Value>);

impl Fields<'_> {
    pub(crate) fn wrong(name: &str, must: &str, value: &Value) -> ApiError {
        ApiError::invalid(name, format!("'{name}' must be {must}, not {}", brief(value)))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(Self::wrong(name, "a string", other)),
        }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(Self::wrong(name, "true or false", other)),
        }
    }

    pub(crate) fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        match value.as_f64() {
            #[allow(clippy::cast_possible_truncation, reason = "the range is small")]
            Some(number) if (least..=most).contains(&number) => Ok(Some(number as f32)),
            _ => Err(Self::wrong(name, &format!("a number from {least} to {most}"), value)),
        }
    }

    pub(crate) fn integer(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(Self::wrong(name, &format!("an integer from {least} to {most}"), value)),
        }
    }

    pub(crate) fn max_tokens(&self) -> Result<Option<u32>, ApiError> {
        let read = |name| self.integer(name, 1, u64::MAX);
        let tokens = match (read("max_tokens")?, read("max_completion_tokens")?) {
            (Some(old), Some(new)) if old != new => {
                return Err(ApiError::invalid(
                    "max_tokens",
                    format!("'max_tokens' ({old}) contradicts 'max_completion_tokens' ({new}); send one of them"),
                ));
            }
            (old, new) => new.or(old),
        };
        // More than fits is cut at the end of the context anyway.
        Ok(tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)))
    }

    pub(crate) fn top_logprobs(&self) -> Result<Option<u32>, ApiError> {
        let top = self.integer("top_logprobs", 0, u64::from(MAX_LOGPROBS))?;
        match (self.boolean("logprobs")?.unwrap_or(false), top) {
            (false, Some(_)) => Err(ApiError::invalid("top_logprobs", "'top_logprobs' needs 'logprobs' to be true")),
            (false, None) => Ok(None),
            (true, top) => Ok(Some(top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0))),
        }
    }

    pub(crate) fn delivery(&self) -> Result<Delivery, ApiError> {
        let streams = self.boolean("stream")?.unwrap_or(false);
        let Some(options) = self.0.get("stream_options") else {
            return Ok(if streams { Delivery::Events(StreamUsage::Absent) } else { Delivery::Whole });
        };
        if !streams {
            return Err(ApiError::invalid("stream_options", "'stream_options' needs 'stream' to be true"));
        }
        let Value::Object(options) = options else {
            return Err(Self::wrong("stream_options", "an object", options));
        };
        let mut usage = StreamUsage::Absent;
        for (name, value) in options {
            match (name.as_str(), value) {
                ("include_usage", Value::Bool(true)) => usage = StreamUsage::Included,
                // Random padding against traffic analysis, which is for TLS
                // over the open network; there is none of it here.
                ("include_usage" | "include_obfuscation", Value::Bool(_) | Value::Null) => {}
                ("include_usage" | "include_obfuscation", other) => {
                    return Err(Self::wrong(&format!("stream_options.{name}"), "true or false", other));
                }
                _ => {
                    return Err(ApiError::unknown(format!("stream_options.{}", short(name))));
                }
            }
        }
        Ok(Delivery::Events(usage))
    }
}
