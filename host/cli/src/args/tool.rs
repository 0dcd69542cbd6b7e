//! Arguments of `tool`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::development::MANIFEST;
use super::parsers::variable;
use super::{CodeArgs, EngineArgs, FetchArgs, FormatArgs, ModelsArgs};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host tool list
  nala-host tool inspect calculate
  nala-host tool call calculate '{\"expression\": \"37 * 43\"}'
  nala-host tool call current_time '{}' --from clock.wasm

Tools are components that export nala:tools/provider. Those of an application are the ones
that its components name as `tools`, with what the manifest grants them; a file of its own is
granted nothing. Each call runs in a sandbox of its own.")]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    pub(crate) verb: ToolVerb,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ToolVerb {
    /// List the tools
    List {
        #[command(flatten)]
        output: FormatArgs,

        #[command(flatten)]
        from: Box<ToolSourceArgs>,
    },
    /// Show what a tool takes and answers, and what its component may use
    Inspect {
        /// The tool, or COMPONENT/TOOL where several components have one of that name
        #[arg(value_name = "TOOL")]
        tool: String,

        #[command(flatten)]
        output: FormatArgs,

        #[command(flatten)]
        from: Box<ToolSourceArgs>,
    },
    /// Call a tool and print what it answers; the status is 1 where it failed
    Call {
        /// The tool, or COMPONENT/TOOL where several components have one of that name
        #[arg(value_name = "TOOL")]
        tool: String,

        /// Its arguments: a JSON object, or - to read it from standard input
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,

        #[command(flatten)]
        output: FormatArgs,

        #[command(flatten)]
        from: Box<ToolSourceArgs>,
    },
}

/// Where tools come from.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolSourceArgs {
    /// The application's manifest, or a component
    #[arg(long, value_name = "SPIN.TOML|WASM", default_value = MANIFEST)]
    pub(crate) from: PathBuf,

    /// The profile of the manifest
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// A value for a variable of the manifest; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variable: Vec<(String, String)>,

    /// The operator's file, for what it says under `egress`; see docs/egress.md
    #[arg(long, value_name = "NALA.TOML", env = "NALA_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Folder of key-value data, as for `up`. Without it, data is gone after the call
    #[arg(long, value_name = "DIR", env = "NALA_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) models: ModelsArgs,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) code: CodeArgs,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}
