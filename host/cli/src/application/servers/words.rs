//! The words of the protocol and those that components have for the same.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use nala_mcp::{CallToolResult, ContentBlock, Hear, ResourceContents, ServerError};
use nala_wasm::{Abilities, Annotations, Answer, Body, Content, Contents, Link, Media, Teller, Tool, ToolError};
use serde_json::Value;

/// What a tool is called here: several servers may have one of the same name.
fn ours(server: &str, theirs: &str) -> String {
    format!("{server}_{theirs}")
}

/// What a tool is called there.
pub(super) fn theirs<'n>(server: &str, ours: &'n str) -> Option<&'n str> {
    ours.strip_prefix(server)?.strip_prefix('_')
}

/// A server's tool.
pub(super) fn tool(server: &str, tool: &nala_mcp::Tool) -> Tool {
    let text = |schema: &serde_json::Map<String, Value>| Value::Object(schema.clone()).to_string();
    let hints = tool.annotations.as_ref();
    Tool {
        name: ours(server, &tool.name),
        title: tool.title.clone().or_else(|| hints.and_then(|hints| hints.title.clone())),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: text(&tool.input_schema),
        output_schema: tool.output_schema.as_deref().map(text),
        annotations: Annotations {
            read_only: hints.and_then(|hints| hints.read_only_hint),
            destructive: hints.and_then(|hints| hints.destructive_hint),
            idempotent: hints.and_then(|hints| hints.idempotent_hint),
            open_world: hints.and_then(|hints| hints.open_world_hint),
        },
    }
}

/// What whoever calls can be asked.
pub(super) fn abilities(abilities: Abilities) -> nala_mcp::Abilities {
    nala_mcp::Abilities {
        elicit_form: abilities.contains(Abilities::ELICIT_FORM),
        elicit_url: abilities.contains(Abilities::ELICIT_URL),
        sample: abilities.contains(Abilities::SAMPLE),
        roots: abilities.contains(Abilities::ROOTS),
        hear_log: abilities.contains(Abilities::HEAR_LOG),
    }
}

/// What a tool answered.
pub(super) fn answer(result: CallToolResult) -> Result<Answer, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    Ok(Answer {
        content: content.into_iter().map(one).collect::<Result<_, _>>()?,
        structured: structured_content.map(|value| value.to_string()),
        is_error: is_error.unwrap_or_default(),
    })
}

fn one(block: ContentBlock) -> Result<Content, ToolError> {
    Ok(match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => Content::Image(media(&image.data, image.mime_type)?),
        ContentBlock::Audio(audio) => Content::Audio(media(&audio.data, audio.mime_type)?),
        ContentBlock::Resource(embedded) => Content::Resource(match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Contents { uri, mime_type, body: Body::Text(text) }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Contents { uri, mime_type, body: Body::Bytes(bytes(&blob)?) }
            }
            _ => return Err(unknown("a resource")),
        }),
        ContentBlock::ResourceLink(link) => Content::Link(Link {
            uri: link.uri,
            name: link.name,
            description: link.description,
            mime_type: link.mime_type,
        }),
        _ => return Err(unknown("something")),
    })
}

fn unknown(what: &str) -> ToolError {
    ToolError::Failed(format!("the server answered {what} of a kind that is not known"))
}

fn media(data: &str, mime_type: String) -> Result<Media, ToolError> {
    Ok(Media { data: bytes(data)?, mime_type })
}

fn bytes(text: &str) -> Result<Vec<u8>, ToolError> {
    STANDARD
        .decode(text)
        .map_err(|error| ToolError::Failed(format!("the server answered bytes that are none: {error}")))
}

/// Why there is no answer. What a server says is shortened by whoever keeps it.
pub(super) fn error(server: &str, error: &ServerError) -> ToolError {
    let what = format!("the MCP server `{server}`: {error}");
    match error {
        // A tool that is gone, or arguments that it does not take (-32602).
        ServerError::Refused(refused) if refused.code.0 == -32602 => ToolError::InvalidArguments(what),
        ServerError::Late(_) => ToolError::Limit(what),
        ServerError::Busy(_) => ToolError::Busy(what),
        _ => ToolError::Failed(what),
    }
}

/// Whoever waits for a call.
pub(super) struct Heard(pub(super) Teller);

impl Hear for Heard {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.0.progress(done, total, message);
    }

    fn log(&self, severity: nala_mcp::Severity, logger: Option<String>, data: Value) {
        use nala_wasm::Severity as Ours;

        let severity = match severity {
            nala_mcp::Severity::Debug => Ours::Debug,
            nala_mcp::Severity::Info => Ours::Info,
            nala_mcp::Severity::Notice => Ours::Notice,
            nala_mcp::Severity::Warning => Ours::Warning,
            nala_mcp::Severity::Error => Ours::Error,
            nala_mcp::Severity::Critical => Ours::Critical,
            nala_mcp::Severity::Alert => Ours::Alert,
            nala_mcp::Severity::Emergency => Ours::Emergency,
        };
        self.0.log(severity, logger, data.to_string());
    }

    fn ask(&self, key: String, inquiry: nala_mcp::Inquiry, params: Value) -> BoxFuture<'_, Result<Value, String>> {
        let kind = match inquiry {
            nala_mcp::Inquiry::Elicitation => nala_wasm::Inquiry::Elicitation,
            nala_mcp::Inquiry::Sampling => nala_wasm::Inquiry::Sampling,
            nala_mcp::Inquiry::Roots => nala_wasm::Inquiry::Roots,
        };
        Box::pin(async move {
            let reply = self.0.ask(key, kind, params.to_string()).await?;
            serde_json::from_str(&reply).map_err(|error| error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_servers_before_them() {
        assert_eq!(ours("git-hub", "list_issues"), "git-hub_list_issues");
        assert_eq!(theirs("git-hub", "git-hub_list_issues"), Some("list_issues"));
        assert_eq!(theirs("git", "git-hub_list_issues"), None);
        assert_eq!(theirs("git-hub", "git-hub"), None);
    }

    #[test]
    fn what_is_no_base64_is_an_error() {
        let result = CallToolResult::success(vec![ContentBlock::image("no base64!", "image/png")]);
        assert!(matches!(answer(result), Err(ToolError::Failed(why)) if why.contains("bytes that are none")));
        let good = CallToolResult::error(vec![ContentBlock::image("aGk=", "image/png"), ContentBlock::text("no")]);
        let good = answer(good).unwrap();
        assert!(good.is_error && good.content.len() == 2);
    }
}
