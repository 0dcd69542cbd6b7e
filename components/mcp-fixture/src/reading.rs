//! Resources and prompts.

use nala_sdk::library::{Asset, Catalogue, Completion, Filled, Message, Pattern, Prompt, Role, Subject};
use nala_sdk::tools::{Body, Content, Contents, Error};
use serde_json::json;

use crate::asking;
use crate::media::{PNG, picture};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";

pub(crate) fn catalogue() -> Catalogue {
    let described = |uri: &str, name: &str, mime_type: &str| Asset {
        description: Some("For the conformance suite".to_owned()),
        mime_type: Some(mime_type.to_owned()),
        ..Asset::new(uri, name)
    };
    let prompt = |name: &str| Prompt { description: Some("For the conformance suite".to_owned()), ..Prompt::new(name) };
    let pattern = Pattern {
        uri_template: TEMPLATE.to_owned(),
        name: "Template".to_owned(),
        title: None,
        description: None,
        mime_type: Some("application/json".to_owned()),
    };
    Catalogue {
        assets: vec![
            described(TEXT, "Static text", "text/plain"),
            described(BINARY, "Static binary", "image/png"),
            described(WATCHED, "Watched", "text/plain"),
        ],
        patterns: vec![pattern],
        prompts: vec![
            prompt("test_simple_prompt"),
            prompt("test_prompt_with_arguments")
                .taking("arg1", "First test argument")
                .taking("arg2", "Second test argument"),
            prompt("test_prompt_with_embedded_resource").taking("resourceUri", "URI of the resource to embed"),
            prompt("test_prompt_with_image"),
            prompt("test_input_required_result_prompt"),
        ],
    }
}

pub(crate) fn read(uri: &str) -> Result<Vec<Contents>, Error> {
    let of = |mime_type: &str, body| Contents { uri: uri.to_owned(), mime_type: Some(mime_type.to_owned()), body };
    let contents = match uri {
        TEXT => Contents::text(uri, "This is the content of the static text resource."),
        WATCHED => Contents::text(uri, "This never changes."),
        BINARY => of("image/png", Body::Bytes(PNG.to_vec())),
        other => {
            let id = other.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| Error::UnknownTool(format!("there is no resource {other:?}")))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            of("application/json", Body::Text(data.to_string()))
        }
    };
    Ok(vec![contents])
}

pub(crate) fn fill(prompt: &str, arguments: &[(String, String)]) -> Result<Filled, Error> {
    let argument = |name: &str| {
        let found = arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        found.ok_or_else(|| Error::InvalidArguments(format!("`{name}` is missing")))
    };
    let said = |content| Message { role: Role::User, content };
    let messages = match prompt {
        "test_simple_prompt" => vec![Message::user("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![Message::user(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let contents = Contents::text(argument("resourceUri")?, "Embedded resource content for testing.");
            vec![said(Content::Resource(contents)), Message::user("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => vec![said(picture()), Message::user("Please analyze the image above.")],
        "test_input_required_result_prompt" => {
            let question = asking::text("user_context", "What context should the prompt use?", "context");
            let reply = asking::ask(&[question])?;
            vec![Message::user(format!("Context: {}", serde_json::Value::from(reply)))]
        }
        other => return Err(Error::UnknownTool(format!("there is no prompt {other:?}"))),
    };
    Ok(Filled { description: None, messages })
}

pub(crate) fn complete(_of: &Subject, _name: &str, beginning: &str) -> Result<Completion, Error> {
    let values = ["paris", "park", "party"].into_iter().filter(|value| value.starts_with(beginning));
    Ok(Completion { values: values.map(str::to_owned).collect(), total: None, has_more: false })
}
