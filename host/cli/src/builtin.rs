//! The components inside this binary, built by `build.rs`.

use std::sync::Arc;

use nala_manifest::source::Builtin;
use nala_wasm::{Limits, LoadError, Renderer, Runtime, Source};

/// The OpenAI API.
pub(crate) const OPENAI: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openai.wasm"));

/// Renders the chat templates that models come with.
pub(crate) const CHAT_TEMPLATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/chat_template.wasm"));

/// Serves tools by the Model Context Protocol.
pub(crate) const MCP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mcp.wasm"));

/// What a manifest may name as a source.
pub(crate) const fn bytes(builtin: Builtin) -> &'static [u8] {
    match builtin {
        Builtin::Mcp => MCP,
    }
}

/// Loads the renderer.
///
/// # Errors
/// Never in a build that passed its tests.
pub(crate) fn renderer(runtime: &Runtime) -> Result<Arc<Renderer>, LoadError> {
    let compiled = runtime.compile("chat-template", Source::Bytes(CHAT_TEMPLATE))?;
    runtime.load_renderer(&compiled, Limits::renderer()).map(Arc::new)
}
