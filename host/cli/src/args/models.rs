//! Which models are served, and how much memory they may take.

use std::fmt;
use std::time::Duration;

use clap::Args;
use nala_engine::PoolConfig;
use nala_llama::AdapterFile;

use super::parsers::{size, within};

/// A day: nobody means to unload a model after longer.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// Which models are served, and how much memory they may take.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Models")]
pub(crate) struct ModelsArgs {
    /// A model: a name from `nala-host model list`, the path of a GGUF file, or
    /// NAME=PATH to serve it under a name of your own. Give it again for more
    /// models, or separate them by commas; the first is the default
    /// [default: what the manifest names, else smollm2-135m-instruct-q4_1]
    #[arg(
        long = "model",
        value_name = "NAME|PATH|NAME=PATH",
        env = "NALA_MODEL",
        value_parser = model,
        value_delimiter = ','
    )]
    pub(crate) models: Vec<ModelName>,

    /// Load the model of this name at the start and never unload it; may be given
    /// again. A model that is the only one always stays
    #[arg(long, value_name = "NAME", env = "NALA_RESIDENT", value_delimiter = ',')]
    pub(crate) resident: Vec<String>,

    /// Memory for the models that are loaded at a time, such as 8GiB
    /// [default: three quarters of what this process may use]
    #[arg(long, value_name = "SIZE", env = "NALA_MODEL_MEMORY", value_parser = size, allow_negative_numbers = true)]
    pub(crate) model_memory: Option<u64>,

    /// A LoRA adapter for the default model, made for that very model: sessions
    /// choose it by its name. May be given again
    #[arg(long, value_name = "NAME=PATH", env = "NALA_ADAPTER", value_parser = adapter, value_delimiter = ',')]
    pub(crate) adapter: Vec<AdapterFile>,

    /// A smaller model of the same vocabulary that guesses what the default model
    /// will say: a name or a path, as for --model
    #[arg(long, value_name = "NAME|PATH", env = "NALA_DRAFT_MODEL")]
    pub(crate) draft_model: Option<String>,

    /// Seconds after which a model that nobody uses is unloaded; 0 keeps it until
    /// others need its memory
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = PoolConfig::default().idle.map_or(0, |idle| idle.as_secs()),
        env = "NALA_MODEL_IDLE",
        value_parser = within(0..=MAX_SECONDS),
        allow_negative_numbers = true
    )]
    pub(crate) model_idle: u64,
}

impl ModelsArgs {
    /// After how long a model that nobody uses is unloaded.
    pub(crate) fn idle(&self) -> Option<Duration> {
        (self.model_idle > 0).then(|| Duration::from_secs(self.model_idle))
    }
}

/// How somebody names a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelName {
    /// The name to serve it by. None: its own.
    pub(crate) serve_as: Option<String>,
    /// A name from the catalogue, or a path; which of them is seen when it is
    /// looked up.
    pub(crate) source: String,
}

impl ModelName {
    /// A model under its own name.
    pub(crate) fn plain(source: &str) -> Self {
        Self { serve_as: None, source: source.to_owned() }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.serve_as {
            Some(name) => write!(f, "{name}={}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// `NAME=PATH`.
fn adapter(text: &str) -> Result<AdapterFile, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.trim().is_empty() && !path.trim().is_empty() => {
            Ok(AdapterFile { name: name.trim().to_owned(), path: path.into() })
        }
        _ => Err("write NAME=PATH: the name that sessions ask for, and the adapter's GGUF file".to_owned()),
    }
}

/// `NAME`, `PATH` or `NAME=PATH`. What stands before the first `=` is a name only
/// if it could be one: `./a=b.gguf` is a path.
pub(super) fn model(text: &str) -> Result<ModelName, String> {
    if text.trim().is_empty() {
        return Err("the name is empty; write a name from `nala-host model list` or the path of a GGUF file".to_owned());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    match text.split_once('=') {
        Some(("", _)) => Err("there is no name before the `=`; write NAME=PATH, or ./ before a path".to_owned()),
        Some((name, source)) if name.chars().all(allowed) => match source.trim() {
            "" => Err(format!("there is no file behind the `=`; write {name}=PATH")),
            _ => Ok(ModelName { serve_as: Some(name.to_owned()), source: source.to_owned() }),
        },
        _ => Ok(ModelName::plain(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_has_a_name_and_a_file() {
        let expected = AdapterFile { name: "law".to_owned(), path: "a=b.gguf".into() };
        assert_eq!(adapter("law=a=b.gguf"), Ok(expected));
        for text in ["", "law", "law=", "=x.gguf", " =x"] {
            assert!(adapter(text).unwrap_err().contains("NAME=PATH"), "{text}");
        }
    }

    #[test]
    fn a_model_may_be_given_a_name() {
        for (text, name, source) in [
            ("smollm2", None, "smollm2"),
            ("./my model.gguf", None, "./my model.gguf"),
            ("chat=./m.gguf", Some("chat"), "./m.gguf"),
            ("chat=smollm2", Some("chat"), "smollm2"),
            ("a:1=x=y.gguf", Some("a:1"), "x=y.gguf"),
            ("./a=b.gguf", None, "./a=b.gguf"),
        ] {
            let expected = ModelName { serve_as: name.map(str::to_owned), source: source.to_owned() };
            assert_eq!(model(text), Ok(expected), "{text}");
            assert_eq!(model(text).unwrap().to_string(), text);
        }
        for text in ["", " ", "=x", "x=", "x= "] {
            assert!(model(text).is_err(), "{text}");
        }
    }
}
