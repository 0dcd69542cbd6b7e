//! `nala-host model`: the catalogue, downloads, and what a file says of itself.

use std::io::Write;
use std::time::Duration;

use indicatif::ProgressBar;
use nala_models::gguf::Header;
use nala_models::{Listed, Outcome, Progress, Stage, State, Store};
use serde_json::json;

use crate::args::{ModelArgs, ModelVerb, OutputFormat};
use crate::console::Console;
use crate::models::mebibytes;

/// Runs the verb.
///
/// # Errors
/// What the models crate says; each error names the way out.
pub(crate) fn main(args: &ModelArgs, console: Console) -> anyhow::Result<()> {
    let store = Store::open_default()?;
    match &args.verb {
        ModelVerb::List(output) => list(&store, output.format),
        ModelVerb::Pull { name } => pull(&store, name, console),
        ModelVerb::Inspect { model, output } => inspect(&store, model, output.format),
    }
}

fn list(store: &Store, format: OutputFormat) -> anyhow::Result<()> {
    let listed = store.list()?;
    let mut out = std::io::stdout().lock();
    match format {
        OutputFormat::Json => {
            let models: Vec<_> = listed.iter().map(listed_json).collect();
            writeln!(out, "{:#}", json!({"folder": store.dir(), "models": models}))?;
        }
        OutputFormat::Text => {
            let width = listed.iter().map(|model| model.name.len()).max().unwrap_or_default();
            for model in &listed {
                let description = model.entry.as_ref().map_or("a file of your own", |entry| entry.description.as_str());
                writeln!(out, "{:width$}  {:32}  {description}", model.name, state_text(model))?;
            }
            writeln!(out, "\nModels are kept in {}; fetch one with: nala-host model pull NAME", store.dir().display())?;
        }
    }
    Ok(())
}

fn state_text(model: &Listed) -> String {
    match model.state {
        State::Installed { size } => format!("installed ({})", mebibytes(size)),
        State::Absent => {
            let size = model.entry.as_ref().map_or(0, |entry| entry.size);
            format!("not downloaded ({})", mebibytes(size))
        }
        State::Partial { received } => format!("partly downloaded ({})", mebibytes(received)),
        State::Damaged { .. } => "damaged: pull it again".to_owned(),
    }
}

/// A model as `model list` and `doctor` print it for programs.
pub(crate) fn listed_json(model: &Listed) -> serde_json::Value {
    let (state, bytes) = match model.state {
        State::Installed { size } => ("installed", Some(size)),
        State::Absent => ("absent", None),
        State::Partial { received } => ("partial", Some(received)),
        State::Damaged { size } => ("damaged", Some(size)),
    };
    json!({
        "name": model.name,
        "state": state,
        "bytes": bytes,
        "path": model.path,
        "description": model.entry.as_ref().map(|entry| &entry.description),
        "licence": model.entry.as_ref().map(|entry| &entry.licence),
    })
}

fn pull(store: &Store, name: &str, console: Console) -> anyhow::Result<()> {
    let mut progress = Bar { console, bar: None };
    let pulled = store.pull(name, &mut progress);
    progress.end();
    let pulled = pulled?;
    let path = pulled.path.display();
    console.say(&match pulled.outcome {
        Outcome::AlreadyThere => format!("{name} is there already, and verified: {path}"),
        Outcome::Downloaded => format!("{name} is downloaded and verified: {path}"),
    });
    console.say(&format!("Serve it: nala-host up --model {name}"));
    Ok(())
}

/// Shows the stages of a pull.
struct Bar {
    console: Console,
    bar: Option<ProgressBar>,
}

impl Bar {
    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn stage(&mut self, stage: Stage, total: Option<u64>) {
        self.end();
        let text = match stage {
            Stage::Waiting => "Waiting for another process that pulls this model",
            Stage::Finding => "Looking it up in the package index",
            Stage::Downloading => "Downloading",
            Stage::Unpacking => "Unpacking",
            Stage::Verifying => "Verifying",
        };
        match (self.console, total) {
            (Console::Terminal, Some(total)) => {
                let bar =
                    self.console.bar(total, "{msg} [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left");
                bar.set_message(text);
                self.bar = Some(bar);
            }
            (Console::Terminal, None) => {
                let bar = self.console.bar(0, "{spinner} {msg}");
                bar.set_message(text);
                bar.enable_steady_tick(Duration::from_millis(100));
                self.bar = Some(bar);
            }
            (_, Some(total)) => self.console.say(&format!("{text} ({})", mebibytes(total))),
            (_, None) => self.console.say(text),
        }
    }

    fn reached(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }
}

fn inspect(store: &Store, model: &str, format: OutputFormat) -> anyhow::Result<()> {
    let path = store.resolve(model)?;
    let header = Header::read(&path)?;
    let summary = header.summary();
    let mut out = std::io::stdout().lock();
    if format == OutputFormat::Json {
        writeln!(out, "{:#}", serde_json::to_value(&summary)?)?;
        return Ok(());
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not said".to_owned());
    let number = |value: Option<u64>| value.map_or_else(|| "not said".to_owned(), |number| number.to_string());
    let rows = [
        ("file", path.display().to_string()),
        ("size", mebibytes(summary.file_size)),
        ("name", text(&summary.name)),
        ("licence", text(&summary.licence)),
        ("architecture", text(&summary.architecture)),
        ("parameters", summary.parameters.to_string()),
        ("context", number(summary.context_length)),
        ("layers", number(summary.layers)),
        ("embedding", number(summary.embedding_length)),
        ("vocabulary", number(summary.vocabulary)),
        ("tokenizer", text(&summary.tokenizer)),
        ("chat template", summary.chat_template_bytes.map_or("none".to_owned(), |bytes| format!("{bytes} bytes"))),
    ];
    for (name, value) in rows {
        writeln!(out, "{name:14} {value}")?;
    }
    for share in &summary.kinds {
        let kind = share.kind.name().unwrap_or("unknown");
        writeln!(out, "{:14} {kind}: {} tensors, {}", "format", share.tensors, mebibytes(share.bytes))?;
    }
    Ok(())
}
