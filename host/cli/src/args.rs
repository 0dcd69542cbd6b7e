//! What can be said on the command line.

mod development;
mod engine;
mod http;
mod mcp;
mod models;
mod parsers;
mod registry;
mod tool;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use nala_tenant::ClassName;

pub(crate) use self::development::{BuildArgs, CheckArgs, KeyArgs, KeyVerb, NewArgs, NewKeyArgs};
pub(crate) use self::engine::EngineArgs;
pub(crate) use self::http::HttpArgs;
pub(crate) use self::mcp::{LoginArgs, McpArgs, McpVerb};
pub(crate) use self::models::{ModelName, ModelsArgs};
use self::parsers::address;
pub(crate) use self::registry::{FetchArgs, PullArgs, PushArgs, Runnable};
pub(crate) use self::tool::{ToolArgs, ToolSourceArgs, ToolVerb};
use crate::{classes, logging, version};

/// Serves language models to sandboxed WebAssembly components
///
/// The model runs here, natively; everything that is policy or prompt is a
/// component: the OpenAI API, chat templates, and the handlers you bring.
#[derive(Debug, Parser)]
#[command(
    name = "nala-host",
    version,
    long_version = version::long(),
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  nala-host model pull smollm2-135m-instruct-q4_1
  nala-host up                                    the OpenAI API on 127.0.0.1:3000
  nala-host up --model ./my-model.gguf --listen 0.0.0.0:8080
  nala-host run app.wasm                          your own handler, no manifest
  nala-host new my-app                            a handler to begin with
  nala-host up spin.toml --watch                  builds and serves it as you write it
  nala-host push app.wasm oci://ghcr.io/acme/app:1
  nala-host doctor                                what this machine has, what is in force

Every option can be set by the environment variable shown with it."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Serve one handler component, without a manifest
    Run(RunArgs),
    /// Serve an application: a spin.toml, or the built-in OpenAI API
    Up(UpArgs),
    /// Make a new application from a template
    New(NewArgs),
    /// Run the build commands of an application's components
    Build(BuildArgs),
    /// Find what is wrong with an application, without running it
    Check(CheckArgs),
    /// Store a component in an OCI registry
    Push(PushArgs),
    /// Fetch a component from an OCI registry
    Pull(PullArgs),
    /// List, fetch and look into models
    Model(ModelArgs),
    /// List, look into and call the tools of an application
    Tool(ToolArgs),
    /// Serve an application's tools by the Model Context Protocol, to a client that starts this
    Mcp(McpArgs),
    /// Make keys for tenants
    Key(KeyArgs),
    /// Show what this machine has and which defaults are in force
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Compile a component in a process of its own, for a host that serves
    #[command(hide = true)]
    Compile(CompileArgs),
    /// Compose a component in a process of its own, for a host that serves
    #[command(hide = true)]
    Compose(ComposeArgs),
    /// Start the process of a class of tenants whenever there is none, for a host that serves
    #[command(hide = true)]
    Keep(KeepArgs),
    /// Start the MCP servers of a manifest, for a host that serves
    #[command(hide = true)]
    KeepServers,
}

/// What a host tells the process that compiles for it.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// Where compiled code is kept
    #[arg(long)]
    pub(crate) cache_dir: PathBuf,

    /// What the process may use
    pub(crate) limits: nala_deploy::JailLimits,

    /// The component
    pub(crate) input: PathBuf,

    /// Where it is noted that it is compiled
    pub(crate) output: PathBuf,
}

/// What a host tells the process that composes for it.
#[derive(Debug, Args)]
pub(crate) struct ComposeArgs {
    /// What the process may use
    pub(crate) limits: nala_deploy::JailLimits,

    /// What is to be composed
    pub(crate) input: PathBuf,

    /// Where the composed component is written
    pub(crate) output: PathBuf,
}

/// What a host tells the process that keeps that of a class.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// The class
    #[arg(long)]
    pub(crate) class: ClassName,

    /// The command line of the host
    #[arg(last = true)]
    pub(crate) line: Vec<std::ffi::OsString>,
}

/// How the host tells what it does, on standard error.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Form of messages and logs; `auto` is text, coloured on a terminal
    #[arg(
        long = "log-format",
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        env = "NALA_LOG_FORMAT",
        help_heading = "Logging"
    )]
    pub(crate) log_format: LogFormat,

    /// What is logged: error, warn, info, debug, trace, or directives such as
    /// `info,nala_http=debug`
    #[arg(
        long = "log-level",
        global = true,
        value_name = "LEVEL",
        default_value = "info",
        value_parser = logging::level,
        env = "NALA_LOG_LEVEL",
        help_heading = "Logging"
    )]
    pub(crate) level: String,
}

/// See [`LogArgs::log_format`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text, coloured on a terminal
    #[default]
    Auto,
    /// Text without colours
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host run target/wasm32-wasip2/release/app.wasm
  nala-host run app.wasm --model ./my-model.gguf --listen 127.0.0.1:8080
  nala-host run oci://ghcr.io/acme/app@sha256:…

A component in a registry is named by its digest, as `push` and `pull` print it; it is
fetched once, kept, and looked at again at each start.

The component must handle wasi:http (0.2 or 0.3); it gets every path. Models are
loaded only if the component imports nala:llm, which may open each of them.")]
pub(crate) struct RunArgs {
    /// The component: a file, or a reference with its digest
    #[arg(value_name = "APP.WASM|oci://…", value_parser = OsStringValueParser::new().try_map(registry::runnable))]
    pub(crate) component: Runnable,

    /// Also run what a tag stands for at this start, which may be another component at the
    /// next: whoever may push to the repository decides what runs here
    #[arg(long)]
    pub(crate) allow_tag: bool,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host up                       the built-in application: POST /v1/chat/completions, GET /v1/models
  nala-host up spin.toml             the application described there
  nala-host up spin.toml --watch     the same, built and exchanged whenever it changes
  nala-host up --model ./my-model.gguf
  nala-host up --model chat=./large.gguf --model ./small.gguf --model-memory 12GiB

With several models, a request names the one it wants. The first is loaded at the
start, the others when they are first asked for. Where the memory for models does
not suffice for all, the one that was used longest ago makes room, never one in
use; who finds no room for a minute is told 429.

The built-in components are inside this binary: with a GGUF file it needs nothing else.")]
pub(crate) struct UpArgs {
    /// The application's manifest; without one the built-in application
    #[arg(value_name = "SPIN.TOML")]
    pub(crate) manifest: Option<PathBuf>,

    /// The profile of the manifest whose settings are used
    #[arg(long, value_name = "NAME", requires = "manifest")]
    pub(crate) profile: Option<String>,

    /// A value for a variable of the manifest; may be given again. Others come from
    /// environment variables named SPIN_VARIABLE_NAME
    #[arg(long, value_name = "NAME=VALUE", value_parser = parsers::variable, requires = "manifest")]
    pub(crate) variable: Vec<(String, String)>,

    /// Follow the manifest, the components and what their `build.watch` names: build what
    /// changes and exchange it, without a request being lost. For development: the
    /// process is not confined, since it runs builds
    #[arg(long, requires = "manifest")]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// What `run` and `up` share.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Where requests are taken; port 0 chooses a free one [default: that of the
    /// operator's file, or 127.0.0.1:3000]
    #[arg(long, value_name = "ADDR", env = "NALA_LISTEN", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Where probes and metrics are served (/livez, /readyz, /metrics); none
    /// without this option
    #[arg(long, value_name = "ADDR", env = "NALA_ADMIN_LISTEN", value_parser = address)]
    pub(crate) admin_listen: Option<SocketAddr>,

    /// The operator's file: tenants with their keys and limits (see docs/tenants.md).
    /// Without it whoever reaches the listener is served, as one owner of the machine
    #[arg(long, value_name = "NALA.TOML", env = "NALA_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Folder for what is kept between starts: what tenants have used, and key-value
    /// data. Nothing is kept without this option, or `state.dir` in the operator's file
    #[arg(long, value_name = "DIR", env = "NALA_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Whether the process gives up all rights that serving does not need, by landlock
    /// and seccomp (see docs/sandbox.md)
    #[arg(long, value_name = "POLICY", value_enum, default_value_t, env = "NALA_SANDBOX")]
    pub(crate) sandbox: SandboxPolicy,

    /// Serve the tenants of this class only, over standard input, for the host that has
    /// started this process
    #[arg(long, value_name = "NAME", env = classes::VARIABLE, hide = true)]
    pub(crate) class: Option<ClassName>,

    #[command(flatten)]
    pub(crate) models: ModelsArgs,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) http: HttpArgs,

    #[command(flatten)]
    pub(crate) code: CodeArgs,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}

/// See [`ServeArgs::sandbox`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxPolicy {
    /// Refuse to serve where the kernel lacks a part of it
    Required,
    /// With what the kernel has; the log tells what is missing
    #[default]
    BestEffort,
    /// Keep all rights
    Off,
}

/// Where compiled components are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Compiled components")]
pub(crate) struct CodeArgs {
    /// Folder for compiled components [default: nala/components in the user's cache folder]
    #[arg(long, value_name = "DIR", env = "NALA_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Keep nothing: compile at every start, whatever NALA_CACHE_DIR says
    #[arg(long)]
    pub(crate) no_cache: bool,
}

impl Cli {
    /// Reads the command line. Wrong usage, `--help` and `--version` end the
    /// process, as clap does.
    pub(crate) fn read() -> Self {
        let mut cli = Self::read_from(std::env::args_os()).unwrap_or_else(|error| error.exit());
        if let Verb::Keep(keep) = &cli.verb {
            // It logs as the host does, which has read this line already.
            let line = std::iter::once("nala-host".into()).chain(keep.line.iter().cloned());
            cli.log = Self::read_from(line).unwrap_or_else(|error| error.exit()).log;
        }
        cli
    }

    /// # Errors
    /// Wrong usage.
    pub(crate) fn read_from(line: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(line)?;
        refuse_contradiction(&matches)?;
        Self::from_arg_matches(&matches)
    }
}

/// `--no-cache` contradicts `--cache-dir`, but overrides the environment, which
/// clap's own `conflicts_with` would take for a contradiction too.
fn refuse_contradiction(matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((_, verb)) = matches.subcommand() else { return Ok(()) };
    let on_the_line = |id: &str| {
        let known = verb.try_contains_id(id).unwrap_or(false);
        known && verb.value_source(id) == Some(ValueSource::CommandLine)
    };
    if on_the_line("no_cache") && on_the_line("cache_dir") {
        let text = "--no-cache cannot be used with --cache-dir: leave one of them out";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
    }
    Ok(())
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) verb: ModelVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    /// List the models of the catalogue and the files in the models folder
    List(FormatArgs),
    /// Download a model of the catalogue, or continue where it was stopped
    Pull {
        /// A name from `nala-host model list`
        name: String,
    },
    /// Show what a GGUF file says about itself
    Inspect {
        /// The file, or the name of an installed model
        #[arg(value_name = "PATH|NAME")]
        model: String,

        #[command(flatten)]
        output: FormatArgs,
    },
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host doctor
  nala-host doctor --model ./my-model.gguf --format json")]
pub(crate) struct DoctorArgs {
    /// Also check this model, as `up` takes it; may be given again
    #[arg(
        long,
        value_name = "NAME|PATH|NAME=PATH",
        env = "NALA_MODEL",
        value_parser = models::model,
        value_delimiter = ','
    )]
    pub(crate) model: Vec<ModelName>,

    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct FormatArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// See [`FormatArgs::format`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host completions bash > /etc/bash_completion.d/nala-host
  nala-host completions zsh > \"${fpath[1]}/_nala-host\"")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
