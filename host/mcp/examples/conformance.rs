//! A client for the conformance suite of the Model Context Protocol: does with a server what
//! each scenario expects of a client. `cargo xtask conformance mcp` has the suite start it,
//! with the server's address as its argument and the scenario in the environment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
use nala_egress::{
    AllowList, ConnectionLimit, Egress, EgressMetrics, Gate, GateConfig, Owner, SystemResolver, Timeouts,
};
use nala_mcp::{
    Abilities, Access, Asked, CallToolResult, Endpoint, Grant, Hear, Inquiry, Login, Remote, Server, ServerError,
    Settings, Severity, Tokens, Tool, Who, login,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

type Failure = Box<dyn std::error::Error>;

/// How often a server may ask for more rights before it is given up.
const LOGINS: usize = 2;

/// What the suite tells a client beside the address.
#[derive(Debug, Default, Deserialize)]
struct Context {
    client_id: Option<String>,
    client_secret: Option<String>,
    #[serde(default, alias = "toolCalls")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("info").init();
    let url = Url::parse(&std::env::args().nth(1).ok_or("name the server's address")?)?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let context = context.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
    let client = Client { url, context, egress: egress()?, folder: tempfile::tempdir()? };
    match scenario.strip_prefix("auth/") {
        Some(scenario) => client.authorized(scenario).await,
        None if scenario == ASKS => {
            let server = client.server(Access::None);
            // The suite's server knows one connection alone, and that for tools is another.
            Ok(client.call(&server, "test_client_elicitation_defaults", Map::new(), able()).await.map(drop)?)
        }
        None => client.calls(&client.server(Access::None), &mut |_| None).await,
    }
}

/// The scenario whose tool asks back.
const ASKS: &str = "elicitation-sep1034-client-defaults";

/// What this client can be asked.
fn able() -> Abilities {
    Abilities { elicit_form: true, sample: true, roots: true, ..Abilities::default() }
}

/// A way to servers of this machine.
fn egress() -> Result<Egress, Failure> {
    let (resolver, admit) = (Arc::new(SystemResolver::default()), Arc::new(ConnectionLimit::new(64, 64)));
    let gate = Gate::new(GateConfig::default(), resolver, admit, EgressMetrics::default())?;
    let allow = AllowList::parse(&["http://localhost:*", "http://127.0.0.1:*", "https://*"].map(str::to_owned))?;
    Ok(gate.egress(Owner::new("", "conformance"), allow))
}

struct Client {
    url: Url,
    context: Context,
    egress: Egress,
    folder: tempfile::TempDir,
}

impl Client {
    fn server(&self, access: Access) -> Arc<Server> {
        Server::new(Settings {
            name: "suite".to_owned(),
            endpoint: Endpoint::Remote(Remote { url: self.url.clone(), headers: Vec::new(), access }),
            tools: None,
            timeout: Duration::from_secs(20),
            message_bytes: 1 << 20,
        })
    }

    fn who(&self) -> Who {
        Who { tenant: "suite".into(), egress: Some(self.egress.clone()) }
    }

    async fn call(
        &self,
        server: &Server,
        tool: &str,
        arguments: Map<String, Value>,
        abilities: Abilities,
    ) -> Result<CallToolResult, ServerError> {
        let asked = Asked { tool: tool.to_owned(), arguments, within: Duration::from_secs(20) };
        server.call(&self.who(), asked, abilities, Arc::new(Person)).await
    }

    /// Lists the tools and calls those that the scenario names, or all of them. Where a call
    /// is refused for want of rights, `more` may get them.
    async fn calls(
        &self,
        server: &Arc<Server>,
        more: &mut dyn FnMut(Option<String>) -> Option<BoxFuture<'static, Result<(), Failure>>>,
    ) -> Result<(), Failure> {
        while let Err(error) = server.start(self.who()).await {
            let ServerError::Unauthorized { challenge, .. } = error else { return Err(error.into()) };
            more(challenge).ok_or("the server refuses its list")?.await?;
        }
        let tools = server.tools();
        let asked: Vec<(String, Map<String, Value>)> = match self.context.tool_calls.as_slice() {
            [] => tools.values().map(|tool| (tool.name.to_string(), arguments(tool))).collect(),
            named => named.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect(),
        };
        // Each of the suite's servers without state may ask.
        let is_asked = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").is_ok_and(|version| version == "2026-07-28");
        let abilities = if is_asked { able() } else { Abilities::default() };
        for (tool, arguments) in asked {
            loop {
                match self.call(server, &tool, arguments.clone(), abilities).await {
                    Ok(_) => break,
                    Err(ServerError::Unauthorized { challenge, .. }) => match more(challenge) {
                        Some(login) => login.await?,
                        None => return Err("the server refuses the call".into()),
                    },
                    Err(error) => {
                        tracing::info!(%error, tool, "a call was refused");
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same, logged in.
    async fn authorized(&self, scenario: &str) -> Result<(), Failure> {
        let Context { client_id, client_secret, .. } = &self.context;
        if let (true, Some(id), Some(secret)) = (scenario.starts_with("client-credentials"), client_id, client_secret) {
            let grant = Grant { client_id: id.clone(), client_secret: secret.clone(), scopes: Vec::new() };
            return self.calls(&self.server(Access::Client(grant)), &mut |_| None).await;
        }
        let tokens = Arc::new(Tokens::new(self.folder.path().join("tokens.json")));
        let registered = client_id.clone().map(|id| (id, client_secret.clone()));
        log_in(self.url.clone(), self.egress.clone(), registered.clone(), Arc::clone(&tokens), None).await?;
        let mut left = LOGINS;
        let (url, egress) = (self.url.clone(), self.egress.clone());
        let server = self.server(Access::Login(Arc::clone(&tokens)));
        let mut more = |challenge: Option<String>| {
            left = left.checked_sub(1)?;
            let (url, egress, tokens) = (url.clone(), egress.clone(), Arc::clone(&tokens));
            let registered = registered.clone();
            let login: BoxFuture<'static, Result<(), Failure>> =
                Box::pin(async move { log_in(url, egress, registered, tokens, challenge).await });
            Some(login)
        };
        self.calls(&server, &mut more).await
    }
}

async fn log_in(
    url: Url,
    egress: Egress,
    registered: Option<(String, Option<String>)>,
    tokens: Arc<Tokens>,
    challenge: Option<String>,
) -> Result<(), Failure> {
    let asked = Login {
        redirect: "http://localhost:3000/callback".to_owned(),
        client_name: "Nala".to_owned(),
        registered,
        metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        scopes: Vec::new(),
        challenge,
    };
    let browser = egress.clone();
    Ok(login(&url, &egress, asked, &tokens, |page| visit(browser, page)).await?)
}

/// A browser whose user agrees to everything: where the page sends it.
async fn visit(egress: Egress, page: Url) -> Result<String, String> {
    let request = http::Request::get(page.as_str()).body(Full::new(Bytes::new())).map_err(|error| error.to_string())?;
    let response = egress.send(request, Timeouts::UNSET).await.map_err(|error| error.to_string())?;
    let location = response.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| format!("the page says {}", response.status()))
}

/// Whoever can be asked: takes what a form has in it already.
struct Person;

impl Hear for Person {
    fn progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {}

    fn log(&self, _severity: Severity, _logger: Option<String>, _data: Value) {}

    fn ask(&self, _key: String, inquiry: Inquiry, params: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            Ok(match inquiry {
                Inquiry::Elicitation => {
                    let fields = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
                    let content: BTreeMap<&String, Value> = fields
                        .into_iter()
                        .flatten()
                        .filter_map(|(name, field)| Some((name, field.get("default")?.clone())))
                        .collect();
                    json!({ "action": "accept", "content": content })
                }
                Inquiry::Sampling => json!({
                    "role": "assistant",
                    "content": { "type": "text", "text": "It is as it is." },
                    "model": "nala",
                    "stopReason": "endTurn",
                }),
                Inquiry::Roots => json!({ "roots": [{ "uri": "file:///srv", "name": "srv" }] }),
            })
        })
    }
}

/// Something for each field that has to be there.
fn arguments(tool: &Tool) -> Map<String, Value> {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = tool.input_schema.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten().filter(|(name, _)| required.contains(&name.as_str()));
    fields
        .map(|(name, field)| {
            let value = match field.get("type").and_then(Value::as_str) {
                Some("number" | "integer") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("test"),
            };
            (name.clone(), value)
        })
        .collect()
}
