use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::api::{Doing, Reply, Request};
use crate::trouble::Fault;

/// A server that answers from a table, by method, path and query, and keeps what it was
/// asked.
#[derive(Default)]
struct Fake {
    answers: BTreeMap<String, Result<(u16, Vec<u8>), Fault>>,
    asked: RefCell<Vec<Request>>,
}

impl Fake {
    fn with(mut self, what: &str, status: u16, answer: &Value) -> Self {
        self.answers.insert(what.to_owned(), Ok((status, answer.to_string().into_bytes())));
        self
    }

    fn with_text(mut self, what: &str, text: &str) -> Self {
        self.answers.insert(what.to_owned(), Ok((200, text.as_bytes().to_vec())));
        self
    }

    fn failing(mut self, what: &str, fault: Fault) -> Self {
        self.answers.insert(what.to_owned(), Err(fault));
        self
    }

    fn paths(&self) -> Vec<String> {
        self.asked.borrow().iter().map(spelled).collect()
    }
}

fn spelled(request: &Request) -> String {
    let method = if request.doing == Doing::Get { "GET" } else { "PATCH" };
    let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{method} {}{query}", request.url.path())
}

impl Server for Fake {
    fn send(&self, request: &Request) -> Result<Reply, Fault> {
        self.asked.borrow_mut().push(request.clone());
        let (status, body) = match self.answers.get(&spelled(request)) {
            Some(answer) => answer.clone()?,
            None => (404, json!({"kind": "Status", "message": "not found", "code": 404}).to_string().into_bytes()),
        };
        Ok(Reply { status, body, is_cut: false })
    }
}

/// A namespace, replicas from 1 to 5, and nodes.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "KUBERNETES_API" => "https://cluster.example:6443",
        "KUBERNETES_NAMESPACES" => "shop",
        "KUBERNETES_CLUSTER" => "read",
        "KUBERNETES_SCALE" => "1..5",
        _ => return None,
    };
    Some(value.to_owned())
}

fn everywhere(name: &str) -> Option<String> {
    if name == "KUBERNETES_NAMESPACES" { Some("*".to_owned()) } else { environment(name) }
}

#[track_caller]
fn done(server: &Fake, name: &str, arguments: &Value) -> Value {
    let answer = called(server, &environment, name, &arguments.to_string()).unwrap();
    assert!(!answer.is_error, "{name} {arguments}: {answer:?}");
    serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
}

#[track_caller]
fn fails(server: &Fake, name: &str, arguments: &Value) -> String {
    fails_with(server, &environment, name, arguments)
}

#[track_caller]
fn fails_with(server: &Fake, environment: &dyn Fn(&str) -> Option<String>, name: &str, arguments: &Value) -> String {
    let answer = called(server, environment, name, &arguments.to_string()).unwrap();
    assert!(answer.is_error, "{name} {arguments}: {answer:?}");
    let [nala_sdk::tools::Content::Text(why)] = answer.content.as_slice() else { panic!("{answer:?}") };
    why.clone()
}

const PODS: &str = "GET /api/v1/namespaces/shop/pods?limit=100&includeObject=Metadata";

fn pods() -> Value {
    json!({
        "kind": "Table",
        "metadata": {"continue": "next==", "remainingItemCount": 7},
        "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Restarts", "priority": 0}, {"name": "IP", "priority": 1}],
        "rows": [
            {"cells": ["web-1", 3, "10.0.0.1"], "object": {"metadata": {"name": "web-1", "namespace": "shop"}}},
            {"cells": ["web-2", null, "10.0.0.2"], "object": {"metadata": {"name": "web-2", "namespace": "shop"}}},
        ],
    })
}

#[test]
fn the_schemas_are_json_and_the_hints_are_right() {
    let all = tools();
    let names: Vec<_> = all.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["list_resources", "describe_resource", "read_logs", "scale_deployment"]);
    for tool in &all {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let input = read(&tool.input_schema);
        assert_eq!(input["additionalProperties"], false);
        assert!(input["properties"]["namespace"]["description"].as_str().unwrap().starts_with(NAMESPACE));
        read(tool.output_schema.as_deref().unwrap());
        let is_scaling = tool.name == "scale_deployment";
        let hints = &tool.annotations;
        assert_eq!((hints.read_only, hints.open_world), (Some(!is_scaling), Some(true)), "{}", tool.name);
        let (destructive, idempotent) = (is_scaling.then_some(true), is_scaling.then_some(true));
        assert_eq!((hints.destructive, hints.idempotent), (destructive, idempotent), "{}", tool.name);
    }
}

#[test]
fn arguments_that_cannot_be_read_are_told_before_anything_is_asked() {
    let server = Fake::default();
    for (name, arguments) in [
        ("list_resources", "{}"),
        ("list_resources", r#"{"kind": 1}"#),
        ("list_resources", r#"{"kind": "pods", "limit": -1}"#),
        ("describe_resource", r#"{"kind": "pods"}"#),
        ("scale_deployment", r#"{"name": "web", "replicas": "2"}"#),
        ("scale_deployment", r#"{"name": "web", "replicas": -1}"#),
        ("scale_deployment", r#"{"name": "web", "replicas": 1.5}"#),
    ] {
        let answer = called(&server, &environment, name, arguments);
        assert!(matches!(answer, Err(Error::InvalidArguments(_))), "{name} {arguments}");
    }
    assert!(matches!(called(&server, &environment, "delete", "{}"), Err(Error::UnknownTool(_))));
    assert!(server.paths().is_empty());
}

#[test]
fn a_list_is_the_servers_table_in_parts() {
    let next = "GET /api/v1/namespaces/shop/pods?limit=2&includeObject=Metadata&labelSelector=app+in+%28a%2Cb%29\
                %26limit%3D9&continue=next%3D%3D";
    let server = Fake::default().with(PODS, 200, &pods()).with(next, 200, &json!({"kind": "Table", "rows": []}));
    let first = done(&server, "list_resources", &json!({"kind": "po"}));
    assert_eq!(first["columns"], json!(["Name", "Restarts"]));
    assert_eq!(first["rows"], json!([["web-1", "3"], ["web-2", ""]]));
    assert_eq!((&first["continue"], &first["remaining"]), (&json!("next=="), &json!(7)));
    assert_eq!(server.asked.borrow()[0].accept.split(';').nth(1), Some("as=Table"));
    // A selector is a value, and no part of the query.
    let more = json!({"kind": "pods", "limit": 2, "continue": "next==", "label_selector": "app in (a,b)&limit=9"});
    let second = done(&server, "list_resources", &more);
    assert_eq!((&second["rows"], second.get("continue")), (&json!([]), None));
    assert_eq!(server.paths()[1], next);
}

#[test]
fn a_server_without_tables_is_told_by_names() {
    let list = json!({"kind": "SecretList", "items": [
        {"metadata": {"name": "db", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"password": "aHVudGVyMg=="}},
    ]});
    let server = Fake::default().with(&PODS.replace("pods", "secrets"), 200, &list);
    let told = done(&server, "list_resources", &json!({"kind": "secrets"}));
    assert_eq!(told["rows"], json!([["db", "2026-01-01T00:00:00Z"]]));
    assert!(!told.to_string().contains("aHVudGVyMg=="), "{told}");
}

#[test]
fn all_namespaces_are_a_column() {
    let server = Fake::default().with("GET /api/v1/pods?limit=100&includeObject=Metadata", 200, &pods());
    let answer = called(&server, &everywhere, "list_resources", r#"{"kind": "pods"}"#).unwrap();
    let told: Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
    assert_eq!(told["columns"], json!(["Namespace", "Name", "Restarts"]));
    assert_eq!(told["rows"][0], json!(["shop", "web-1", "3"]));
}

#[test]
fn what_is_not_granted_is_not_asked_for() {
    let server = Fake::default();
    let nobody = |_: &str| None;
    let only_names = |name: &str| (name == "KUBERNETES_NAMESPACES").then(|| "shop, staging".to_owned());
    let scale = json!({"name": "web", "namespace": "shop", "replicas": 2});
    for (environment, name, arguments, why) in [
        (
            &nobody as &dyn Fn(&str) -> Option<String>,
            "list_resources",
            json!({"kind": "pods"}),
            "no namespace is granted",
        ),
        (&only_names, "list_resources", json!({"kind": "nodes"}), "KUBERNETES_CLUSTER"),
        (&only_names, "describe_resource", json!({"kind": "node", "name": "a"}), "KUBERNETES_CLUSTER"),
        (&only_names, "list_resources", json!({"kind": "pods"}), "name a namespace"),
        (&only_names, "list_resources", json!({"kind": "pods", "namespace": "kube-system"}), "not granted"),
        (&only_names, "read_logs", json!({"pod": "a", "namespace": "kube-system"}), "not granted"),
        (&only_names, "scale_deployment", scale, "may only look"),
        (&environment, "scale_deployment", json!({"name": "web", "replicas": 0}), "permits 1 to 5"),
        (&environment, "scale_deployment", json!({"name": "web", "replicas": 6}), "permits 1 to 5"),
        (&environment, "scale_deployment", json!({"name": "web", "namespace": "x", "replicas": 2}), "not granted"),
        (&environment, "describe_resource", json!({"kind": "pods", "name": "../secrets/db"}), "can be no name"),
        (&environment, "describe_resource", json!({"kind": "pods", "name": "a?x=y"}), "can be no name"),
        (&environment, "read_logs", json!({"pod": "web/../../secrets"}), "can be no name"),
        (&environment, "read_logs", json!({"pod": "web", "container": "a&b"}), "can be no name"),
        (&environment, "list_resources", json!({"kind": "pods/../secrets"}), "is no kind"),
        (&everywhere, "describe_resource", json!({"kind": "pods", "name": "web"}), "name the namespace"),
    ] {
        let told = fails_with(&server, environment, name, &arguments);
        assert!(told.contains(why), "{name} {arguments}: {told}");
    }
    assert!(server.paths().is_empty(), "{:?}", server.paths());
}

#[test]
fn a_description_has_the_object_and_what_has_happened_to_it() {
    let events = "GET /api/v1/namespaces/shop/events?fieldSelector=involvedObject.name%3Dweb%2CinvolvedObject.kind%3DPod\
                  &limit=200";
    let pod = json!({"kind": "Pod", "metadata": {"name": "web", "managedFields": [1]}, "status": {"phase": "Failed"}});
    let happened = json!({"items": [
        {"type": "Normal", "reason": "Pulled", "message": "image", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1},
        {"type": "Warning", "reason": "BackOff", "message": "again", "lastTimestamp": "2026-01-02T00:00:00Z", "count": 9},
    ]});
    let path = "GET /api/v1/namespaces/shop/pods/web";
    let server = Fake::default().with(path, 200, &pod).with(events, 200, &happened);
    let told = done(&server, "describe_resource", &json!({"kind": "pod", "name": "web"}));
    assert_eq!(told["object"], json!({"kind": "Pod", "metadata": {"name": "web"}, "status": {"phase": "Failed"}}));
    assert_eq!((&told["events"][0]["reason"], &told["events"][0]["count"]), (&json!("BackOff"), &json!(9)));
    // Events that may not be read are no reason not to tell the rest.
    let denied = json!({"kind": "Status", "message": "events is forbidden"});
    let server = Fake::default().with(path, 200, &pod).with(events, 403, &denied);
    let told = done(&server, "describe_resource", &json!({"kind": "pod", "name": "web", "namespace": "shop"}));
    assert!(told["note"].as_str().unwrap().contains("events is forbidden"), "{told}");
}

#[test]
fn a_secret_is_described_by_its_keys_whatever_it_says_that_it_is() {
    for kind in [json!("Secret"), json!("ConfigMap"), Value::Null] {
        let secret = json!({"kind": kind, "metadata": {"name": "db"}, "data": {"password": "aHVudGVyMg=="}});
        let server = Fake::default().with("GET /api/v1/namespaces/shop/secrets/db", 200, &secret);
        let told = done(&server, "describe_resource", &json!({"kind": "secret", "name": "db"}));
        assert_eq!(told["object"]["keys"], json!(["password"]));
        assert!(!told.to_string().contains("aHVudGVyMg=="), "{told}");
    }
}

#[test]
fn a_long_object_is_cut_until_it_can_be_told() {
    let path = "GET /api/v1/namespaces/shop/configmaps/big";
    let data: BTreeMap<String, String> = (0..40).map(|n| (format!("k{n}"), "é".repeat(10_000))).collect();
    let server =
        Fake::default().with(path, 200, &json!({"kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}));
    let told = done(&server, "describe_resource", &json!({"kind": "cm", "name": "big"}));
    assert!(told["object"]["data"]["k0"].as_str().unwrap().ends_with("(20000 bytes in all)"));
    let many: Vec<u32> = (0..100_000).collect();
    let server =
        Fake::default().with(path, 200, &json!({"kind": "ConfigMap", "metadata": {"name": "big"}, "many": many}));
    let told = done(&server, "describe_resource", &json!({"kind": "cm", "name": "big"}));
    assert_eq!((&told["left_out"], &told["object"]["metadata"]["name"]), (&json!(["many"]), &json!("big")));
}

#[test]
fn logs_are_their_last_lines() {
    let path = "GET /api/v1/namespaces/shop/pods/web/log?tailLines=1000&limitBytes=1048576&container=app&sinceSeconds=60\
                &previous=true";
    let lines: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let server = Fake::default().with_text(path, &lines);
    let asked = json!({"pod": "web", "container": "app", "lines": 5000, "since_seconds": 60, "previous": true});
    let told = done(&server, "read_logs", &asked);
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("line ") && text.ends_with("line 9999\n"), "{text}");
    assert_eq!((text.len() <= 32 << 10, &told["cut"]), (true, &json!(true)));
    let server =
        Fake::default().with_text("GET /api/v1/namespaces/shop/pods/web/log?tailLines=100&limitBytes=1048576", "é\n");
    let told = done(&server, "read_logs", &json!({"pod": "web"}));
    assert_eq!(told, json!({"pod": "web", "namespace": "shop", "text": "é\n", "cut": false}));
}

const SCALE: &str = "/apis/apps/v1/namespaces/shop/deployments/web/scale";

fn scaled(replicas: u32) -> Value {
    json!({"kind": "Scale", "metadata": {"resourceVersion": "41"}, "spec": {"replicas": replicas}, "status": {"replicas": 2}})
}

#[test]
fn a_deployment_is_scaled_from_what_was_seen() {
    let server =
        Fake::default().with(&format!("GET {SCALE}"), 200, &scaled(2)).with(&format!("PATCH {SCALE}"), 200, &scaled(4));
    let told = done(&server, "scale_deployment", &json!({"name": "web", "replicas": 4}));
    assert_eq!(told, json!({"name": "web", "namespace": "shop", "before": 2, "replicas": 4, "running": 2}));
    let Doing::Merge(patch) = server.asked.borrow()[1].doing.clone() else { panic!() };
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch, json!({"spec": {"replicas": 4}, "metadata": {"resourceVersion": "41"}}));
    // What is so already is not changed.
    let told = done(&server, "scale_deployment", &json!({"name": "web", "replicas": 2}));
    assert_eq!((&told["before"], server.paths().len()), (&json!(2), 3));
    let conflict = json!({"kind": "Status", "message": "the object has been modified", "code": 409});
    let server =
        Fake::default().with(&format!("GET {SCALE}"), 200, &scaled(2)).with(&format!("PATCH {SCALE}"), 409, &conflict);
    let told = fails(&server, "scale_deployment", &json!({"name": "web", "replicas": 4}));
    assert!(told.contains("(409): the object has been modified"), "{told}");
    let server = Fake::default().with(&format!("GET {SCALE}"), 200, &json!({"kind": "Deployment", "spec": {}}));
    assert!(fails(&server, "scale_deployment", &json!({"name": "web", "replicas": 4})).contains("nothing of replicas"));
}

#[test]
fn what_the_server_says_is_told_with_what_to_do() {
    let status = |message: &str| json!({"kind": "Status", "status": "Failure", "message": message});
    for (code, fix) in [
        (302, "not followed"),
        (400, "does not understand"),
        (401, "[[egress.credentials]] in nala.toml"),
        (403, "grant it by a role"),
        (404, "list_resources"),
        (409, "Look at it again"),
        (410, "without `continue`"),
        (422, "does not take"),
        (429, "later"),
        (503, "later"),
        (418, "status 418"),
    ] {
        let server = Fake::default().with(PODS, code, &status("as it \u{1b}[31msays"));
        let told = fails(&server, "list_resources", &json!({"kind": "pods"}));
        assert!(told.contains(fix) && !told.contains('\u{1b}'), "{code}: {told}");
        assert!(code == 302 || told.contains("as it "), "{code}: {told}");
    }
    for (fault, fix) in [
        (Fault::HostNotAllowed, "allowed_outbound_hosts = [\"https://cluster.example:6443\"]"),
        (Fault::AddressNotAllowed, "[[egress.credentials]]"),
        (Fault::CredentialUnusable, "in the host's log"),
        (Fault::Failed("it cannot be reached".to_owned()), "because it cannot be reached"),
    ] {
        let told = fails(&Fake::default().failing(PODS, fault), "list_resources", &json!({"kind": "pods"}));
        assert!(told.contains(fix), "{told}");
    }
    let server = Fake::default().with_text(PODS, "<html>");
    assert!(fails(&server, "list_resources", &json!({"kind": "pods"})).contains("cannot be read"));
}
