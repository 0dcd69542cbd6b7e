//! What people read while the host works: lines, bars and errors, on standard
//! error, in the form that suits where it goes.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::LogFormat;

/// The form of everything on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Console {
    /// Colours and moving bars.
    Terminal,
    /// Plain lines.
    Plain,
    /// One JSON object a line.
    Json,
}

impl Console {
    pub(crate) fn new(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text => Self::Plain,
            // NO_COLOR: https://no-color.org
            LogFormat::Auto if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) => Self::Plain,
            LogFormat::Auto if std::io::stderr().is_terminal() => Self::Terminal,
            LogFormat::Auto => Self::Plain,
        }
    }

    /// A line for people, or an event for programs.
    pub(crate) fn say(self, text: &str) {
        match self {
            Self::Json => tracing::info!("{text}"),
            Self::Terminal | Self::Plain => line(text),
        }
    }

    /// Something that goes on although it is not as it should be.
    pub(crate) fn warn(self, text: &str) {
        match self {
            Self::Json => tracing::warn!("{text}"),
            Self::Terminal => line(&format!("\x1b[33;1mwarning\x1b[0m: {text}")),
            Self::Plain => line(&format!("warning: {text}")),
        }
    }

    /// What ended the program: the error, what caused it, and the way out where
    /// one was attached by [`Help`].
    pub(crate) fn error(self, error: &anyhow::Error) {
        let (chain, help) = parts(error);
        match self {
            Self::Json => {
                let (first, causes) = chain.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
                line(
                    &serde_json::json!({"level": "ERROR", "error": first, "causes": causes, "help": help}).to_string(),
                );
            }
            Self::Terminal => line(&text(&chain, help.as_deref(), Paint { on: true })),
            Self::Plain => line(&text(&chain, help.as_deref(), Paint { on: false })),
        }
    }

    /// A bar that moves on a terminal and is silent elsewhere.
    pub(crate) fn bar(self, total: u64, style: &str) -> ProgressBar {
        let target = match self {
            Self::Terminal => ProgressDrawTarget::stderr(),
            Self::Plain | Self::Json => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    }
}

/// The way out of an error, to attach with [`anyhow::Error::context`].
#[derive(Debug)]
pub(crate) struct Help {
    /// What went wrong.
    pub(crate) what: String,
    /// What to do.
    pub(crate) help: String,
}

impl std::fmt::Display for Help {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Help {}

/// The messages from the outermost to the root, and the outermost help.
fn parts(error: &anyhow::Error) -> (Vec<String>, Option<String>) {
    let help = error.downcast_ref::<Help>().map(|help| help.help.clone());
    let mut chain: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // Many errors repeat their source in their own text.
        if !chain.last().is_some_and(|last| last.contains(&text)) {
            chain.push(text);
        }
    }
    (chain, help)
}

#[derive(Clone, Copy)]
struct Paint {
    on: bool,
}

impl Paint {
    fn word(self, word: &str, colour: &str) -> String {
        if self.on { format!("\x1b[{colour};1m{word}\x1b[0m") } else { word.to_owned() }
    }
}

fn text(chain: &[String], help: Option<&str>, paint: Paint) -> String {
    let mut lines = Vec::new();
    for (depth, text) in chain.iter().enumerate() {
        let word = if depth == 0 { paint.word("error", "31") } else { format!("  {}", paint.word("caused by", "2")) };
        lines.push(format!("{word}: {text}"));
    }
    if let Some(help) = help {
        lines.push(format!("  {}: {help}", paint.word("help", "36")));
    }
    lines.join("\n")
}

/// A line on standard error; nobody is left to tell if that fails.
fn line(text: &str) {
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_the_way_out() {
        let error = anyhow!("no such file").context(Help { what: "cannot start".into(), help: "make the file".into() });
        let (chain, help) = parts(&error);
        assert_eq!(
            text(&chain, help.as_deref(), Paint { on: false }),
            "error: cannot start\n  caused by: no such file\n  help: make the file"
        );
    }

    #[test]
    fn a_cause_that_is_already_told_is_not_repeated() {
        let error = anyhow!("disk full").context("writing failed: disk full");
        assert_eq!(parts(&error).0, ["writing failed: disk full"]);
    }
}
