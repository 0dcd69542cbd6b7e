//! `nala-host tool`: the tools of an application, as whoever may call them sees them.

mod source;
mod written;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use nala_wasm::{Answer, Elsewhere, Progress, Provider, Tool};
use serde_json::{Value, json};
use tokio::runtime::Handle;

pub(crate) use self::source::Tools;
use crate::args::{OutputFormat, ToolArgs, ToolSourceArgs, ToolVerb};
use crate::console::{Console, Help};

/// Runs the verb.
///
/// # Errors
/// The tools cannot be loaded, there is no such tool, or it failed.
pub(crate) fn main(args: &ToolArgs, console: Console) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let _entered = runtime.enter();
    match &args.verb {
        ToolVerb::List { output, from } => list(&Tools::load(from, console)?, output.format),
        ToolVerb::Inspect { tool, output, from } => {
            let tools = Tools::load(from, console)?;
            inspect(&tools, &tools.find(tool)?, output.format)
        }
        ToolVerb::Call { tool, arguments, output, from } => {
            call(tool, arguments_of(arguments)?, output.format, from, console)
        }
    }
}

/// What calls of tools that are made by hand run on.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().context("the worker threads cannot be started")
}

fn arguments_of(written: &str) -> anyhow::Result<String> {
    if written != "-" {
        return Ok(written.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
    Ok(text)
}

fn list(tools: &Tools, format: OutputFormat) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        OutputFormat::Json => {
            let all: Vec<Value> = tools
                .all()
                .iter()
                .map(|(by, tool)| {
                    let mut tool = written::tool(tool);
                    written::insert(&mut tool, "component", json!(by));
                    tool
                })
                .collect();
            writeln!(out, "{:#}", json!({ "tools": all }))?;
        }
        OutputFormat::Text => {
            let all = tools.all();
            let longest = |length: fn(&(String, Tool)) -> usize| all.iter().map(length).max().unwrap_or_default();
            let (names, components) = (longest(|(_, tool)| tool.name.len()), longest(|(by, _)| by.len()));
            for (by, tool) in &all {
                let what = written::brief(&tool.description);
                writeln!(out, "{:names$}  {by:components$}  {what}", tool.name)?;
            }
            writeln!(out, "\nCall one with: nala-host tool call TOOL JSON")?;
        }
    }
    Ok(())
}

fn inspect(tools: &Tools, Found { by, tool }: &Found, format: OutputFormat) -> anyhow::Result<()> {
    let mut all = written::tool(tool);
    written::insert(&mut all, "component", json!(by.name()));
    written::insert(&mut all, "grant", tools.facts(by.name()));
    let mut out = std::io::stdout().lock();
    match format {
        OutputFormat::Json => writeln!(out, "{all:#}")?,
        OutputFormat::Text => {
            writeln!(out, "{} of {} {}", tool.name, by.kind(), by.name())?;
            writeln!(out, "{}\n", written::plain(&tool.description))?;
            for (key, title) in [
                ("inputSchema", "Takes"),
                ("outputSchema", "Answers"),
                ("annotations", "Says of itself"),
                ("grant", "Its component"),
            ] {
                if let Some(value) = all.get(key).filter(|value| !value.is_null()) {
                    writeln!(out, "{title}: {value:#}")?;
                }
            }
        }
    }
    Ok(())
}

fn call(
    tool: &str,
    arguments: String,
    format: OutputFormat,
    from: &ToolSourceArgs,
    console: Console,
) -> anyhow::Result<()> {
    let tools = Tools::load(from, console)?;
    let Found { by, tool } = tools.find(tool)?;
    let tool = tool.name;
    let bar = console.bar(0, "{msg}");
    let told = |progress| show(&bar, &progress);
    let answer = Handle::current().block_on(async {
        match &by {
            By::Component(provider) => provider.call(&tool, arguments, told).await,
            By::Server(server) => nala_wasm::call_elsewhere(server, &tool, arguments, A_CALL, told).await,
        }
    });
    bar.finish_and_clear();
    let answer = answer.map_err(|error| help(&error, &tool))?;
    print(&answer, format)?;
    match answer.is_error {
        false => Ok(()),
        true => Err(Help {
            what: format!("`{tool}` says that it failed"),
            help: "standard output has its answer".to_owned(),
        }
        .into()),
    }
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let Progress { done, total, message } = progress;
    let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
    bar.set_message(written::plain(&format!("{done}{of} {}", message.as_deref().unwrap_or_default())));
}

fn help(error: &nala_wasm::ToolError, tool: &str) -> anyhow::Error {
    use nala_wasm::ToolError;
    let (what, help) = match error {
        ToolError::UnknownTool(what) => (what, "list them with: nala-host tool list".to_owned()),
        ToolError::InvalidArguments(what) => (what, format!("see what it takes: nala-host tool inspect {tool}")),
        ToolError::Needs(_) => (
            &"it asks whoever calls it, who cannot be asked here".to_owned(),
            "call it through a client of the Model Context Protocol".to_owned(),
        ),
        ToolError::Failed(what) => (what, "this is a fault of the tool; the log above may tell more".to_owned()),
        ToolError::Limit(what) => {
            (what, "raise the limit under [component.NAME.tool.nala.limits], or ask for less".to_owned())
        }
        ToolError::Busy(what) => (what, "try again later".to_owned()),
    };
    Help { what: written::plain(what), help }.into()
}

fn print(answer: &Answer, format: OutputFormat) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        OutputFormat::Json => writeln!(out, "{:#}", written::answer(answer))?,
        OutputFormat::Text => {
            for content in &answer.content {
                writeln!(out, "{}", written::shown(content))?;
            }
        }
    }
    Ok(())
}

/// How long an MCP server's tool is waited for, if the manifest says nothing of it.
const A_CALL: Duration = Duration::from_secs(3600);

/// Who has a tool.
enum By {
    Component(Arc<Provider>),
    Server(Arc<dyn Elsewhere>),
}

impl By {
    fn name(&self) -> &str {
        match self {
            Self::Component(provider) => provider.name(),
            Self::Server(server) => server.name(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Component(_) => "component",
            Self::Server(_) => "MCP server",
        }
    }
}

/// A tool, and who has it.
struct Found {
    by: By,
    tool: Tool,
}
