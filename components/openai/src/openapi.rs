//! `GET /openapi.json`: the routes of this component for programs, as OpenAPI 3.1.
//!
//! The document is `openapi.json` beside the sources, written by hand; tests compare it
//! with the routes and with the parameters that are read.

use nala_sdk::http::Response;

/// The document.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// Sends it.
pub(crate) fn document() -> Response {
    Response::new(200, "application/json", DOCUMENT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nala_sdk::http::Method;
    use serde_json::Value;

    use super::*;
    use crate::parameters::policy::Policy;
    use crate::routes::{Act, ROUTES};
    use crate::{anthropic, completions, embeddings, parameters, rerank, responses, tokens};

    fn read() -> Value {
        serde_json::from_str(DOCUMENT).unwrap()
    }

    fn names(object: &Value) -> BTreeSet<String> {
        object.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn every_route_is_described_with_its_method() {
        let document = read();
        for route in ROUTES {
            let item = &document["paths"][route.path];
            assert!(item.is_object(), "{} is not in openapi.json", route.path);
            let expected: BTreeSet<String> = ROUTES
                .iter()
                .filter(|other| other.path == route.path)
                .flat_map(|other| other.methods())
                .filter(|method| **method != Method::Head)
                .map(|method| method.to_string().to_lowercase())
                .collect();
            assert_eq!(names(item), expected, "{}", route.path);
            let posts = matches!(route.act, Act::Post(_));
            let body = expected.iter().any(|method| item[method]["requestBody"].is_object());
            assert_eq!(body, posts, "{}", route.path);
        }
    }

    #[test]
    fn what_is_sent_is_what_is_routed() {
        let sent: Value = serde_json::from_slice(&document().into_bytes().unwrap()).unwrap();
        let routed: BTreeSet<String> = ROUTES.iter().map(|route| route.path.to_owned()).collect();
        assert_eq!(names(&sent["paths"]), routed);
        assert_eq!(names(&sent["components"]["schemas"]), names(&read()["components"]["schemas"]));
    }

    #[test]
    fn schemas_have_the_parameters_that_are_read() {
        let none: &[(&str, Policy)] = &[];
        for (schema, read_here, other) in [
            ("ChatCompletionRequest", parameters::READ, parameters::OTHER),
            ("TemplateRequest", parameters::READ, parameters::OTHER),
            ("ResponsesRequest", responses::READ, responses::OTHER),
            ("MessagesRequest", anthropic::policy::READ, anthropic::policy::OTHER),
            ("CompletionRequest", completions::parameters::READ, completions::parameters::OTHER),
            ("EmbeddingRequest", embeddings::READ, embeddings::OTHER),
            ("RerankRequest", rerank::READ, none),
            ("TokenizeRequest", tokens::TOKENIZE, none),
            ("DetokenizeRequest", tokens::DETOKENIZE, none),
        ] {
            let known = read_here.concat().into_iter().chain(other.iter().map(|(name, _)| *name));
            let known: BTreeSet<String> = known.map(str::to_owned).collect();
            let schema_of = &read()["components"]["schemas"][schema];
            assert_eq!(names(&schema_of["properties"]), known, "{schema}");
            assert_eq!(schema_of["additionalProperties"], false, "{schema}");
        }
    }

    #[test]
    fn references_lead_somewhere() {
        fn walk(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| walk(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| walk(value, found)),
                _ => {}
            }
        }
        let document = read();
        let mut found = Vec::new();
        walk(&document, &mut found);
        assert!(found.len() > 100);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_answer_of_an_error_has_the_envelope() {
        let document = read();
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                for status in ["400", "404", "413", "415", "429", "500", "503"] {
                    let reference = operation["responses"][status]["$ref"].as_str().unwrap_or_default();
                    assert!(reference.starts_with("#/components/responses/"), "{path} {status}");
                }
            }
        }
    }
}
