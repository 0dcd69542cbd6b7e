//! Arguments of `mcp`.

use clap::Args;

use super::ToolSourceArgs;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host mcp --stdio
  nala-host mcp --stdio --from calculator.wasm

For clients that start their servers themselves, such as desktop applications: name this
command in their settings, with the folder of the application's spin.toml as `--from`.
Standard output belongs to the protocol; everything else is written to standard error.

The tools are those that the application's components name as `tools`, each call in a
sandbox of its own with what the manifest grants. To serve them over HTTP, write a route to
the component nala:mcp (see docs/mcp.md) and run `nala-host up`.")]
pub(crate) struct McpArgs {
    /// Speak the Model Context Protocol on standard input and output
    #[arg(long, required = true)]
    pub(crate) stdio: bool,

    #[command(flatten)]
    pub(crate) from: Box<ToolSourceArgs>,
}
