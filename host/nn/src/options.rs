//! Options as JSON, with the keys that users of LlamaEdge know from its metadata.
//!
//! Only what concerns one run can be set. In LlamaEdge the same JSON also says how
//! a model is loaded and which files are opened; here that is the operator's.

use std::time::Duration;

use nala_engine::{DynamicTemperature, GenerateOptions, GrammarSource, Mirostat, MirostatVersion, Sampling, Xtc};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Code, Error};

/// The most bytes of options: parsed JSON takes many times the room of its text.
pub const MAX_OPTIONS_BYTES: usize = 256 << 10;

/// Tokens that are handed over together: a call answers with all of them, so that
/// nobody waits for the first.
const FLUSH_TOKENS: u32 = 64;
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// What is to be done with a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Task {
    /// Go on with it.
    #[default]
    Generate,
    /// Make a vector of it.
    Embed,
}

/// What a guest asks for beside its prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is to be done.
    pub task: Task,
    /// How it is generated.
    pub generate: GenerateOptions,
    /// The most tokens that prompt and answer may have together. None: as many as
    /// the context has.
    pub max_tokens: Option<u32>,
    /// What the answer has to follow.
    pub grammar: Option<GrammarSource>,
}

impl Default for Options {
    /// As the defaults of llama.cpp, which are LlamaEdge's.
    fn default() -> Self {
        let sampling =
            Sampling { top_k: 40, top_p: 0.95, min_p: 0.05, temperature: 0.8, penalty_window: 64, ..Sampling::GREEDY };
        let generate = GenerateOptions {
            sampling,
            flush_tokens: FLUSH_TOKENS,
            flush_after: FLUSH_AFTER,
            ..GenerateOptions::greedy(u32::MAX)
        };
        Self { task: Task::Generate, generate, max_tokens: None, grammar: None }
    }
}

/// The keys.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Keys {
    n_predict: Option<i64>,
    ctx_size: Option<u32>,
    reverse_prompt: Option<Value>,
    #[serde(alias = "temperature")]
    temp: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    typ_p: Option<f32>,
    repeat_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    last_n_penalty: Option<i64>,
    dynatemp_range: Option<f32>,
    dynatemp_exponent: Option<f32>,
    xtc_probability: Option<f32>,
    xtc_threshold: Option<f32>,
    mirostat: Option<u32>,
    mirostat_tau: Option<f32>,
    mirostat_eta: Option<f32>,
    seed: Option<i64>,
    ignore_eos: Option<bool>,
    grammar: Option<String>,
    json_schema: Option<Value>,
    embedding: Option<bool>,
}

impl Options {
    /// Reads a JSON object. What it does not name is as in [`Options::default`].
    ///
    /// # Errors
    /// [`Error`] for text that is no JSON object or longer than
    /// [`MAX_OPTIONS_BYTES`], for a key that is not known, and for a value out of
    /// its range as far as the engine does not look at it. The key is named.
    pub fn read(json: &[u8]) -> Result<Self, Error> {
        if json.len() > MAX_OPTIONS_BYTES {
            let (bytes, most) = (json.len(), MAX_OPTIONS_BYTES);
            return Err(Error::new(Code::TooLarge, format!("the options have {bytes} bytes; {most} are the most")));
        }
        Keys::read(json)?.into_options()
    }
}

impl Keys {
    fn read(json: &[u8]) -> Result<Self, Error> {
        // serde takes a list for the fields in their order.
        if json.trim_ascii_start().starts_with(b"[") {
            return Err(Error::invalid("the options are a JSON array; give an object"));
        }
        serde_json::from_slice(json).map_err(|error| match error.is_data() {
            true => Error::invalid(format!(
                "the options are refused: {error}; threads, GPU layers, batches, images and files are the host's affair"
            )),
            false => Error::new(Code::InvalidEncoding, format!("the options are not JSON: {error}")),
        })
    }

    fn into_options(self) -> Result<Options, Error> {
        let mut options = Options::default();
        let grammar = self.grammar()?;
        let GenerateOptions { sampling, max_new, stop_text, ignore_end, .. } = &mut options.generate;
        if let Some(predict) = self.n_predict.filter(|&predict| predict != -1) {
            *max_new = positive("n-predict", predict, ", or -1 for as many as fit")?;
        }
        if let Some(reverse) = self.reverse_prompt {
            *stop_text = texts(reverse)?;
        }
        *ignore_end = self.ignore_eos.unwrap_or(false);
        let given = [
            (self.temp, &mut sampling.temperature),
            (self.top_p, &mut sampling.top_p),
            (self.min_p, &mut sampling.min_p),
            (self.typ_p, &mut sampling.typical_p),
            (self.repeat_penalty, &mut sampling.repeat_penalty),
            (self.presence_penalty, &mut sampling.presence_penalty),
            (self.frequency_penalty, &mut sampling.frequency_penalty),
        ];
        for (value, field) in given {
            *field = value.unwrap_or(*field);
        }
        sampling.top_k = self.top_k.unwrap_or(sampling.top_k);
        sampling.penalty_window = match self.last_n_penalty {
            None => sampling.penalty_window,
            Some(0) => 0,
            Some(-1) => u32::MAX,
            Some(window) => positive("last-n-penalty", window, ", 0 for none or -1 for all tokens")?,
        };
        sampling.dynamic_temperature = self
            .dynatemp_range
            .filter(|&range| range != 0.0)
            .map(|range| DynamicTemperature { range, exponent: self.dynatemp_exponent.unwrap_or(1.0) });
        sampling.xtc = self
            .xtc_probability
            .filter(|&probability| probability != 0.0)
            .map(|probability| Xtc { probability, threshold: self.xtc_threshold.unwrap_or(0.1) });
        sampling.mirostat = match self.mirostat.unwrap_or(0) {
            0 => None,
            1 => Some(MirostatVersion::One),
            2 => Some(MirostatVersion::Two),
            other => return Err(Error::invalid(format!("mirostat must be 0, 1 or 2, and is {other}"))),
        }
        .map(|version| Mirostat {
            version,
            tau: self.mirostat_tau.unwrap_or(5.0),
            eta: self.mirostat_eta.unwrap_or(0.1),
        });
        sampling.seed = match self.seed {
            None | Some(-1) => None,
            Some(seed) => Some(
                u64::try_from(seed)
                    .map_err(|_| Error::invalid(format!("seed must be 0 or more, or -1 for any, and is {seed}")))?,
            ),
        };
        if self.ctx_size == Some(0) {
            return Err(Error::invalid("ctx-size must be at least 1, and is 0"));
        }
        options.max_tokens = self.ctx_size;
        options.grammar = grammar;
        options.task = if self.embedding == Some(true) { Task::Embed } else { Task::Generate };
        Ok(options)
    }

    /// What the answer has to follow, of two keys.
    fn grammar(&self) -> Result<Option<GrammarSource>, Error> {
        let gbnf = self.grammar.as_ref().filter(|text| !text.is_empty());
        let schema = self.json_schema.as_ref().map(schema).transpose()?.filter(|text| !text.is_empty());
        match (gbnf, schema) {
            (Some(_), Some(_)) => Err(Error::invalid("grammar and json-schema cannot both be given; leave one out")),
            (Some(gbnf), None) => Ok(Some(GrammarSource::Gbnf(gbnf.clone()))),
            (None, Some(schema)) => Ok(Some(GrammarSource::JsonSchema(schema))),
            (None, None) => Ok(None),
        }
    }
}

/// A schema as text, as LlamaEdge has it, or as it is.
fn schema(value: &Value) -> Result<String, Error> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Object(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(Error::invalid("json-schema must be a JSON Schema, as an object or as text")),
    }
}

/// One text, or a list of them.
fn texts(value: Value) -> Result<Vec<String>, Error> {
    let all = match value {
        Value::Array(all) => all,
        one => vec![one],
    };
    let text = |value| match value {
        Value::String(text) => Ok(text),
        _ => Err(Error::invalid("reverse-prompt must be a text or a list of texts")),
    };
    let all: Vec<String> = all.into_iter().map(text).collect::<Result<_, _>>()?;
    // LlamaEdge's word for none is an empty text.
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}

fn positive(key: &str, value: i64, or: &str) -> Result<u32, Error> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(Error::invalid(format!("{key} must be from 1 to {}{or}, and is {value}", u32::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Options {
        Options::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn keys_of_llamaedge_are_read() {
        let options = read(
            r#"{"n-predict": 7, "temp": 0, "top-p": 0.5, "top-k": 3, "min-p": 0.1, "typ-p": 0.9,
                "repeat-penalty": 1.2, "presence-penalty": 0.1, "frequency-penalty": 0.2, "last-n-penalty": -1,
                "seed": 4, "ignore-eos": true, "ctx-size": 99, "reverse-prompt": "User:"}"#,
        );
        let GenerateOptions { sampling, max_new, stop_text, ignore_end, .. } = options.generate;
        assert_eq!((max_new, stop_text, ignore_end, options.max_tokens), (7, vec!["User:".into()], true, Some(99)));
        assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p), (0.0, 0.5, 3, 0.1));
        assert_eq!((sampling.repeat_penalty, sampling.presence_penalty), (1.2, 0.1));
        assert_eq!((sampling.frequency_penalty, sampling.typical_p), (0.2, 0.9));
        assert_eq!((sampling.penalty_window, sampling.seed), (u32::MAX, Some(4)));
    }

    #[test]
    fn what_is_off_by_its_value_is_off() {
        let off = r#"{"n-predict": -1, "seed": -1, "mirostat": 0, "dynatemp-range": 0, "xtc-probability": 0,
                      "reverse-prompt": "", "grammar": "", "embedding": false}"#;
        assert_eq!(read(off), Options::default());
        assert_eq!(read("{}"), Options::default());
        assert_eq!(read(r#"{"temperature": 0.25}"#), read(r#"{"temp": 0.25}"#));
    }

    #[test]
    fn grammars_have_two_keys_and_a_schema_two_forms() {
        let source = |json: &str| read(json).grammar.unwrap();
        assert_eq!(source(r#"{"grammar": "root ::= \"a\""}"#), GrammarSource::Gbnf("root ::= \"a\"".into()));
        let schema = GrammarSource::JsonSchema(r#"{"type":"object"}"#.into());
        assert_eq!(source(r#"{"json-schema": {"type": "object"}}"#), schema);
        assert_eq!(source(r#"{"json-schema": "{\"type\":\"object\"}"}"#), schema);
    }

    #[test]
    fn nonsense_is_refused_by_its_name() {
        let refused = |json: &str| Options::read(json.as_bytes()).unwrap_err();
        for (json, says) in [
            (r#"{"n-gpu-layers": 99}"#, "unknown field `n-gpu-layers`"),
            (r#"{"image": "/etc/passwd"}"#, "unknown field `image`"),
            (r#"{"top-p": "much"}"#, "invalid type: string \"much\""),
            (r#"{"temp": 1, "temperature": 1}"#, "duplicate field `temp`"),
            (r#"{"n-predict": 0}"#, "n-predict must be"),
            (r#"{"n-predict": -2}"#, "-1 for as many as fit"),
            (r#"{"seed": -2}"#, "seed must be"),
            (r#"{"ctx-size": 0}"#, "ctx-size"),
            (r#"{"mirostat": 3}"#, "mirostat must be"),
            (r#"{"reverse-prompt": [1]}"#, "reverse-prompt must be"),
            (r#"{"json-schema": 1}"#, "json-schema must be"),
            (r#"{"json-schema": {}, "grammar": "root ::= \"a\""}"#, "cannot both"),
            ("[]", "give an object"),
        ] {
            let error = refused(json);
            assert!(error.to_string().contains(says), "{json}: {error}");
            assert_eq!(error.code(), Code::InvalidArgument, "{json}");
        }
        for json in ["", "{", "nonsense", "{\"temp\": 1e999}", "\u{1}"] {
            assert_eq!(refused(json).code(), Code::InvalidEncoding, "{json}");
        }
        assert_eq!(refused(&"[".repeat(100_000)).code(), Code::InvalidArgument);
        assert_eq!(refused(&format!("{{\"json-schema\":{}", "[".repeat(100_000))).code(), Code::InvalidEncoding);
        assert_eq!(refused(&" ".repeat(MAX_OPTIONS_BYTES + 1)).code(), Code::TooLarge);
        let long = refused(&format!("{{\"{}\": 1}}", "x".repeat(100_000)));
        assert!(long.to_string().len() < 2000);
    }
}
