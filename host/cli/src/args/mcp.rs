//! Arguments of `mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ToolSourceArgs;
use super::development::MANIFEST;
use super::parsers::variable;

#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  nala-host mcp --stdio
  nala-host mcp --stdio --from calculator.wasm
  nala-host mcp login weather

For clients that start their servers themselves, such as desktop applications: name this
command in their settings, with the folder of the application's spin.toml as `--from`.
Standard output belongs to the protocol; everything else is written to standard error.

The tools are those that the application's components name as `tools`, each call in a
sandbox of its own with what the manifest grants. To serve them over HTTP, write a route to
the component nala:mcp (see docs/mcp.md) and run `nala-host up`."
)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<McpVerb>,

    /// Speak the Model Context Protocol on standard input and output
    #[arg(long, required = true)]
    pub(crate) stdio: bool,

    #[command(flatten)]
    pub(crate) from: Box<ToolSourceArgs>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum McpVerb {
    /// Log in at a server that the manifest names, in a browser, and keep the tokens
    Login(Box<LoginArgs>),
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host mcp login weather
  nala-host mcp login weather --state-dir /var/lib/nala --scope read --scope write

The server is one with `oauth = \"login\"` under [application.tool.nala.mcp.NAME]. Its page is
opened in a browser of this machine; elsewhere, open the address that is printed, through
`ssh -L PORT:127.0.0.1:PORT` with the port of the address after `redirect_uri`.
The tokens are kept under `mcp/` in the state folder of `nala-host up`, readable by this user
alone, and exchanged for new ones as long as the server allows.")]
pub(crate) struct LoginArgs {
    /// The server's name in the manifest
    #[arg(value_name = "NAME")]
    pub(crate) server: String,

    /// The application's manifest
    #[arg(long, value_name = "SPIN.TOML", default_value = MANIFEST)]
    pub(crate) from: PathBuf,

    /// A value for a variable of the manifest; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variable: Vec<(String, String)>,

    /// Folder in which `nala-host up` keeps its state
    #[arg(long, value_name = "DIR", env = "NALA_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// What to ask for, in place of what the server names; may be given again
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// The identifier under which this client is registered there, if it is
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Address of a document that describes this client, for servers that take one
    #[arg(long, value_name = "URL")]
    pub(crate) client_metadata: Option<String>,

    /// Port of this machine that the browser is sent to in the end; 0 is any
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Print the address, and open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}
