//! Functions of a component that are called as tools.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;

use nala_wasm::{Content, Grant, Limits, Provider, Runtime, RuntimeConfig, Source, ToolError};
use serde_json::{Value, json};

use crate::common::guest;

fn provider() -> Arc<Provider> {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let compiled = runtime.compile("plain", Source::File(&guest("plain"))).unwrap();
    let grant = Grant { limits: Limits::tool(), ..Grant::default() };
    Arc::new(runtime.load_tools(&compiled, grant, None).unwrap())
}

async fn call(provider: &Arc<Provider>, tool: &str, arguments: &Value) -> Value {
    let answer = provider.call(tool, arguments.to_string(), |_| {}).await.unwrap();
    assert!(!answer.is_error, "{tool}: {answer:?}");
    let structured: Value = serde_json::from_str(answer.structured.as_deref().unwrap_or("{}")).unwrap();
    structured.get("result").cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_all_types_come_back_as_they_went() {
    let provider = provider();
    let (most, least) = (u64::MAX.to_string(), i64::MIN.to_string());
    for (tool, name, value) in [
        ("kinds_bytes", "data", json!("AAEC/w==")),
        ("kinds_bytes", "data", json!("")),
        ("kinds_paint", "color", json!("light-blue")),
        ("kinds_grant", "rights", json!(["export", "read"])),
        ("kinds_grant", "rights", json!([])),
        ("kinds_shapes", "all", json!(["dot", { "circle": 1.5 }, { "polygon": [[-1, 2], [3, -4]] }])),
        ("kinds_shapes", "all", json!([])),
        ("kinds_outcome", "outcome", json!({ "ok": 7 })),
        ("kinds_outcome", "outcome", json!({ "err": "ß" })),
        (
            "kinds_people",
            "all",
            json!([{ "name": "Ada", "age": 36, "nick": { "some": "a" } }, { "name": "" }, { "name": "B", "nick": { "some": null } }]),
        ),
    ] {
        let mut expected = value.clone();
        if let (Some(names), "kinds_grant") = (expected.as_array_mut(), tool) {
            // In the order of the type.
            names.sort_by_key(|name| *name == json!("export"));
        }
        assert_eq!(call(&provider, tool, &json!({ name: value })).await, expected, "{tool}");
    }
    let integers = call(&provider, "kinds_integers", &json!({ "a": -128, "b": 65535.0, "c": least, "d": most })).await;
    assert_eq!(integers, json!([-128, 65535, least, most]), "nothing is lost");
    let digits = format!(r#"{{"a": 0, "b": 0, "c": {least}, "d": {most}}}"#);
    let integers = call(&provider, "kinds_integers", &serde_json::from_str(&digits).unwrap()).await;
    assert_eq!(integers, json!([0, 0, least, most]), "as numbers as well");
    assert_eq!(
        call(&provider, "kinds_floats", &json!({ "a": 0.1, "b": "-Infinity" })).await,
        json!([0.1, "-Infinity"])
    );
    assert_eq!(
        call(&provider, "kinds_texts", &json!({ "a": "ß", "b": "\u{1f600}", "c": true })).await,
        json!(["ß", "\u{1f600}", true])
    );
    assert_eq!(call(&provider, "add", &json!({ "a": 37, "b": 43 })).await, json!(80));
    assert_eq!(
        call(&provider, "kinds_divide", &json!({ "a": 7, "b": 2 })).await,
        json!(3),
        "what is well is the result alone"
    );
    for tool in [("kinds_forget", json!({ "text": "a" })), ("kinds_check", json!({ "good": true }))] {
        assert_eq!(call(&provider, tool.0, &tool.1).await, Value::Null);
    }
    let failed = provider.call("kinds_divide", json!({ "a": 1, "b": 0 }).to_string(), |_| {}).await.unwrap();
    assert!(failed.is_error && matches!(&failed.content[..], [Content::Text(why)] if why == "by zero"), "{failed:?}");
    assert!(provider.call("kinds_check", json!({ "good": false }).to_string(), |_| {}).await.unwrap().is_error);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_where() {
    let provider = provider();
    for (tool, arguments, said) in [
        ("add", json!({ "a": 1 }), "/b is missing"),
        ("add", json!({ "a": 1, "b": 2, "c": 3 }), "/c is not known"),
        ("add", json!({ "a": -1, "b": 2 }), "/a is out of range: -1"),
        ("add", json!({ "a": 1.5, "b": 2 }), "/a has to be an integer"),
        ("add", json!({ "a": 4_294_967_296_u64, "b": 2 }), "out of range"),
        ("add", json!({ "a": true, "b": 2 }), "/a has to be an integer"),
        ("kinds_integers", json!({ "a": 1, "b": 1, "c": 1, "d": "18446744073709551616" }), "/d is out of range"),
        ("kinds_bytes", json!({ "data": "A" }), "/data has to be in base64"),
        ("kinds_bytes", json!({ "data": [1] }), "/data has to be a text in base64"),
        ("kinds_paint", json!({ "color": "green" }), "one of red, light-blue"),
        ("kinds_grant", json!({ "rights": ["own"] }), "an array of read, write, export"),
        (
            "kinds_shapes",
            json!({ "all": ["dot", "ellipse"] }),
            "/all/1 has to be one of the cases dot, circle, polygon",
        ),
        ("kinds_shapes", json!({ "all": [{ "dot": 1 }] }), "alone"),
        ("kinds_shapes", json!({ "all": ["circle"] }), "which has a value"),
        ("kinds_shapes", json!({ "all": [{ "polygon": [[1, 2, 3]] }] }), "/all/0/polygon/0 has to be an array of 2"),
        ("kinds_people", json!({ "all": [{ "age": 1 }] }), "/all/0/name is missing"),
        ("kinds_people", json!({ "all": [{ "name": "a", "nick": "b" }] }), "/all/0/nick has to be null or an object"),
        ("kinds_outcome", json!({ "outcome": { "no": 1 } }), "\"ok\" or \"err\""),
        ("kinds_texts", json!({ "a": "ab", "b": "", "c": true }), "/a has to be one character"),
        ("kinds_floats", json!({ "a": "nan", "b": 1 }), "/a has to be a number"),
    ] {
        let Err(ToolError::InvalidArguments(why)) = provider.call(tool, arguments.to_string(), |_| {}).await else {
            panic!("{tool} {arguments}")
        };
        assert!(why.contains(said), "{tool} {arguments}: {why}");
    }
}

#[test]
fn schemas_say_what_fits_and_functions_of_handles_are_no_tools() {
    let provider = provider();
    let tool = |name: &str| provider.tools().iter().find(|tool| tool.name == name);
    assert!(tool("kinds_open").is_none());
    let add = tool("add").unwrap();
    let schema: Value = serde_json::from_str(&add.input_schema).unwrap();
    let number = json!({ "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32 });
    assert_eq!(
        schema,
        json!({ "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"], "additionalProperties": false })
    );
    let people: Value = serde_json::from_str(&tool("kinds_people").unwrap().input_schema).unwrap();
    assert_eq!(people.pointer("/properties/all/items/required"), Some(&json!(["name"])));
    assert_eq!(people.pointer("/properties/all/items/properties/age/anyOf/1/type"), Some(&json!("null")));
    let divided: Value = serde_json::from_str(tool("kinds_divide").unwrap().output_schema.as_deref().unwrap()).unwrap();
    assert_eq!(divided.pointer("/properties/result/type"), Some(&json!(["integer", "string"])));
    assert_eq!(tool("kinds_forget").unwrap().output_schema, None);
    assert!(tool("kinds_bytes").unwrap().description.contains("test:plain/kinds@1.2.3#bytes"));
}
