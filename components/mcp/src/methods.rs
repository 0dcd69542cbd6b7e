//! What can be asked.

use nala_sdk::http::Response;
use nala_sdk::library::{Catalogue, Subject};
use nala_sdk::tools::{self, Tool};
use serde_json::{Map, Value, json};

use crate::era::{self, Client, Era, MODERN, SESSION};
use crate::finish::{Finish, Keep};
use crate::parameters;
use crate::run;
use crate::settings::Settings;
use crate::wire::{self, Call, Failure};
use crate::write;

/// What the components behind this one have.
pub(crate) struct Offer {
    tools: Vec<Tool>,
    catalogue: Catalogue,
}

impl Offer {
    /// What the manifest grants this component.
    pub(crate) fn granted() -> Self {
        Self { tools: tools::list(), catalogue: tools::library() }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn has_resources(&self) -> bool {
        !self.catalogue.assets.is_empty() || !self.catalogue.patterns.is_empty()
    }

    fn has_prompts(&self) -> bool {
        !self.catalogue.prompts.is_empty()
    }

    fn capabilities(&self, era: &Era) -> Value {
        let mut all = Map::from_iter([("logging".to_owned(), json!({}))]);
        if !self.tools.is_empty() {
            all.insert("tools".to_owned(), json!({}));
        }
        if self.has_resources() {
            // They are what they are until something is deployed: who subscribes is told
            // of all changes, of which there are none.
            let subscribe = matches!(era, Era::Legacy { .. });
            all.insert("resources".to_owned(), if subscribe { json!({ "subscribe": true }) } else { json!({}) });
        }
        if self.has_prompts() {
            all.insert("prompts".to_owned(), json!({}));
        }
        if self.has_prompts() || !self.catalogue.patterns.is_empty() {
            all.insert("completions".to_owned(), json!({}));
        }
        all.into()
    }
}

/// Begins a session of the older protocol.
pub(crate) fn initialize(call: &Call, offer: &Offer, settings: &Settings) -> Result<Response, Failure> {
    let (session, version) = era::begin(call)?;
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": offer.capabilities(&Era::Legacy { session: None }),
        "serverInfo": settings.info(),
    });
    instruct(&mut result, settings);
    Ok(wire::whole(&wire::result(&call.id, &result)).with_header(SESSION, session))
}

/// Answers a request.
pub(crate) fn answer(call: Call, client: Client, offer: &Offer, settings: &Settings) -> Result<Response, Failure> {
    let finish = Finish::new(&call, &client, settings);
    let (result, keep) = match (call.method.as_str(), &client.era) {
        ("server/discover", Era::Modern) => (discover(offer, settings), Keep::List),
        ("ping", Era::Legacy { .. }) => (json!({}), Keep::No),
        ("logging/setLevel", Era::Legacy { .. }) => {
            let level = parameters::text(&call.params, "level")?;
            write::weight(level).ok_or_else(|| Failure::invalid_params(format!("there is no log level {level:?}")))?;
            (json!({}), Keep::No)
        }
        ("resources/subscribe" | "resources/unsubscribe", Era::Legacy { .. }) if offer.has_resources() => {
            parameters::text(&call.params, "uri")?;
            (json!({}), Keep::No)
        }
        _ => match listed(&call, offer)? {
            Some(list) => (list, Keep::List),
            None => {
                // In a session, a status of 404 would say that it is gone.
                let status = if client.era == Era::Modern { 404 } else { 200 };
                let request = asked(&call, offer).map_err(|failure| match failure.status {
                    404 => failure.with_status(status),
                    _ => failure,
                })?;
                return run::respond(call, client, finish, &request);
            }
        },
    };
    Ok(wire::whole(&wire::result(&call.id, &finish.complete(result, keep))))
}

fn discover(offer: &Offer, settings: &Settings) -> Value {
    let mut result = json!({
        "supportedVersions": [MODERN],
        "capabilities": offer.capabilities(&Era::Modern),
    });
    instruct(&mut result, settings);
    result
}

fn instruct(result: &mut Value, settings: &Settings) {
    if let (Value::Object(result), Some(instructions)) = (result, &settings.instructions) {
        result.insert("instructions".to_owned(), instructions.as_str().into());
    }
}

/// A list that is asked for.
fn listed(call: &Call, offer: &Offer) -> Result<Option<Value>, Failure> {
    let Catalogue { assets, patterns, prompts } = &offer.catalogue;
    let (key, all): (&str, Vec<Value>) = match call.method.as_str() {
        "tools/list" if !offer.tools.is_empty() => ("tools", offer.tools.iter().map(write::tool).collect()),
        "resources/list" if offer.has_resources() => ("resources", assets.iter().map(write::asset).collect()),
        "resources/templates/list" if offer.has_resources() => {
            ("resourceTemplates", patterns.iter().map(write::pattern).collect())
        }
        "prompts/list" if offer.has_prompts() => ("prompts", prompts.iter().map(write::prompt).collect()),
        _ => return Ok(None),
    };
    // All is in the first page.
    if call.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Failure::invalid_params("there is no such `cursor`: all is in the first page"));
    }
    Ok(Some(json!({ key: all })))
}

/// What a component is asked.
fn asked(call: &Call, offer: &Offer) -> Result<tools::Request, Failure> {
    let params = &call.params;
    match call.method.as_str() {
        "tools/call" if !offer.tools.is_empty() => {
            let arguments = match params.get("arguments") {
                None => "{}".to_owned(),
                Some(arguments @ Value::Object(_)) => arguments.to_string(),
                Some(_) => return Err(Failure::invalid_params("`arguments` is an object")),
            };
            Ok(tools::Request::Call((parameters::text(params, "name")?.to_owned(), arguments)))
        }
        "resources/read" if offer.has_resources() => {
            Ok(tools::Request::Read(parameters::text(params, "uri")?.to_owned()))
        }
        "prompts/get" if offer.has_prompts() => {
            let name = parameters::text(params, "name")?;
            let arguments = parameters::texts(params, "arguments")?;
            let prompt = offer.catalogue.prompts.iter().find(|prompt| prompt.name == name);
            let lacks = |name: &str| !arguments.iter().any(|(given, _)| given == name);
            let needed = prompt.into_iter().flat_map(|prompt| &prompt.parameters);
            if let Some(missing) = needed.filter(|one| one.required).find(|one| lacks(&one.name)) {
                return Err(Failure::invalid_params(format!("the prompt needs the argument `{}`", missing.name)));
            }
            Ok(tools::Request::Fill((name.to_owned(), arguments)))
        }
        "completion/complete" if offer.has_prompts() || !offer.catalogue.patterns.is_empty() => {
            let of = parameters::object(params, "ref")?;
            let argument = parameters::object(params, "argument")?;
            let subject = match of.get("type").and_then(Value::as_str) {
                Some("ref/prompt") => Subject::Prompt(parameters::text(of, "name")?.to_owned()),
                Some("ref/resource") => Subject::Pattern(parameters::text(of, "uri")?.to_owned()),
                _ => return Err(Failure::invalid_params("`ref` is a `ref/prompt` or a `ref/resource`")),
            };
            let (name, value) = (parameters::text(argument, "name")?, parameters::text(argument, "value")?);
            Ok(tools::Request::Complete((subject, name.to_owned(), value.to_owned())))
        }
        other => Err(Failure::no_method(other)),
    }
}
