use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"spin_manifest_version = 2

[application]
name = "nala"
version = "0.1.0"
description = "The OpenAI interface"
authors = ["A <a@example.com>"]

[application.tool.nala.limits]
memory = "32MiB"
wall = "1m"

[application.tool.other]
whatever = [1, { x = 2 }]

[[trigger.http]]
route = "/v1/..."
component = "openai"

[component.openai]
source = "target/openai.wasm"
description = "d"
ai_models = ["m"]
allowed_outbound_hosts = []
key_value_stores = []
environment = {}

[component.openai.build]
command = "cargo build"
workdir = "components"
watch = ["src/**/*.rs"]

[component.openai.tool.nala]
renderer = "chat-template"

[component.openai.tool.nala.limits]
cpu = "500ms"
wall = "2s"

[component.chat-template]
source = "/abs/chat.wasm"
"#;

fn parse(text: &str) -> Result<Application, Error> {
    Application::parse(text, Path::new("/app"))
}

fn invalid(text: &str) -> Diagnostic {
    match parse(text) {
        Err(Error::Invalid(diagnostic)) => *diagnostic,
        other => panic!("{other:?}"),
    }
}

use crate::diagnostic::Diagnostic;

#[test]
fn a_manifest_is_read_whole() {
    let application = parse(GOOD).unwrap();
    assert_eq!(application.name, "nala");
    assert_eq!(application.version.as_deref(), Some("0.1.0"));
    assert!(application.warnings.is_empty(), "{:?}", application.warnings);
    let openai = application.component("openai").unwrap();
    assert_eq!(openai.source, Path::new("/app/target/openai.wasm"));
    assert_eq!(openai.ai_models, ["m"]);
    assert_eq!(openai.renderer.as_deref(), Some("chat-template"));
    let build = openai.build.as_ref().unwrap();
    assert_eq!(build.commands, ["cargo build"]);
    assert_eq!(build.workdir, Path::new("/app/components"));
    assert_eq!(
        openai.limits,
        Limits {
            memory_bytes: Some(32 << 20),
            cpu: Some(Duration::from_millis(500)),
            wall: Some(Duration::from_secs(2)),
        }
    );
    let chat = application.component("chat-template").unwrap();
    assert_eq!(chat.source, Path::new("/abs/chat.wasm"));
    assert_eq!(chat.limits.wall, Some(Duration::from_secs(60)));
    assert_eq!(chat.limits.cpu, None);
    let routes = application.routes();
    assert_eq!(routes.find("/v1/models").unwrap().0, "openai");
    assert!(routes.find("/other").is_none());
}

/// The good manifest with a part replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn every_key_that_cannot_be_honoured_is_refused_at_its_place() {
    let place = "ai_models = [\"m\"]";
    for (key, value) in [
        ("allowed_http_hosts", "[\"a.example\"]"),
        ("dependencies", "{ \"a:b\" = \"1\" }"),
        ("dependencies_inherit_configuration", "true"),
        ("exclude_files", "[\"x\"]"),
        ("files", "[\"x\"]"),
        ("sqlite_databases", "[\"default\"]"),
        ("variables", "{ x = \"y\" }"),
    ] {
        let error = invalid(&changed(place, &format!("{key} = {value}")));
        assert_eq!(error.message, format!("`{key}` is not supported yet"));
        assert_eq!((error.line, error.snippet.starts_with(key)), (23, true), "{error}");
        assert!(!error.help.is_empty());
    }
    for (from, to, key) in [
        ("hosts = []", "hosts = [\"https://x\"]", "allowed_outbound_hosts"),
        ("stores = []", "stores = [\"default\"]", "key_value_stores"),
        ("environment = {}", "environment = { A = \"b\" }", "environment"),
        ("[application.tool.other]", "[variables]\nx = { default = \"\" }\n[application.tool.other]", "variables"),
        (
            "[application.tool.other]",
            "[application.trigger.redis]\naddress = \"\"\n[application.tool.other]",
            "application.trigger",
        ),
        ("[[trigger.http]]", "[[trigger.redis]]\nchannel = \"c\"\n[[trigger.http]]", "trigger.redis"),
        ("[[trigger.http]]", "[[trigger.http]]\ncomponents = { a = \"b\" }", "components"),
    ] {
        let error = invalid(&changed(from, to));
        assert_eq!(error.message, format!("`{key}` is not supported yet"), "{error}");
    }
}

#[test]
fn mistakes_are_named_with_place_and_way_out() {
    for (from, to, message, line) in [
        ("= 2\n", "= \"1\"\n", "only version 2", 1),
        ("name = \"nala\"", "nane = \"nala\"", "unknown field `nane`", 4),
        ("name = \"nala\"", "name = 1", "invalid type", 4),
        ("name = \"nala\"", "name = \"\"", "`name` is empty", 4),
        ("memory = \"32MiB\"", "memory = \"32\"", "is no size", 10),
        ("wall = \"1m\"", "wall = \"0s\"", "is no duration", 11),
        ("wall = \"1m\"", "wahl = \"1m\"", "unknown field `wahl`", 11),
        ("\"/v1/...\"", "\"v1\"", "begins with `/`", 17),
        ("\"/v1/...\"", "{ private = true }", "private", 17),
        ("\"/v1/...\"", "\"/v1/*\"", "write `/...`", 17),
        ("\"/v1/...\"", "\"/%zz\"", "two hexadecimal digits", 17),
        ("component = \"openai\"", "component = \"opnai\"", "no component `opnai`", 18),
        ("component = \"openai\"", "component = { source = \"x\" }", "inside of a trigger", 18),
        ("component = \"openai\"", "component = \"openai\"\nexecutor = { type = \"wagi\" }", "wagi", 19),
        ("\"target/openai.wasm\"", "{ url = \"https://x\", digest = \"y\" }", "use a path", 21),
        ("\"target/openai.wasm\"", "{ registry = \"r\", package = \"p\", version = \"1\" }", "use a path", 21),
        ("\"target/openai.wasm\"", "7", "must be the path", 21),
        ("ai_models", "ai_modells", "unknown field `ai_modells`", 23),
        ("command = \"cargo build\"", "kommand = \"x\"", "unknown field `kommand`", 29),
        ("renderer = \"chat-template\"", "renderer = \"nobody\"", "no component `nobody`", 34),
        ("renderer = \"chat-template\"", "renderer = \"openai\"", "its own renderer", 34),
        (
            "[component.chat-template]",
            "[component.\"a b\"]\nsource = \"x\"\n[component.chat-template]",
            "identifier",
            40,
        ),
        ("source = \"/abs/chat.wasm\"", "source = ", "", 41),
    ] {
        let error = invalid(&changed(from, to));
        assert!(error.message.contains(message), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}

#[test]
fn renderers_that_need_each_other_are_refused_at_their_place() {
    let error = invalid(&format!("{GOOD}tool.nala.renderer = \"openai\"\n"));
    assert!(error.message.contains("`chat-template` -> `openai` -> `chat-template`"), "{error}");
    assert_eq!(error.line, 42, "{error}");
    // The one that is in no circle itself is fine on its way into none.
    let chain = format!("{GOOD}tool.nala.renderer = \"last\"\n[component.last]\nsource = \"l\"\n");
    assert!(parse(&chain).is_ok());
}

#[test]
fn a_component_knows_where_it_is_described() {
    let place = &parse(GOOD).unwrap().component("openai").unwrap().place.clone();
    assert_eq!(place, "spin.toml:20: component `openai` cannot be served");
}

#[test]
fn the_message_shows_the_line_and_the_fix() {
    let error = invalid(&changed("component = \"openai\"", "component = \"opnai\""));
    let expected = "spin.toml:18:13: there is no component `opnai`\n   |\n18 | component = \"opnai\"\n   |             ^\n   \
                    = help: add a table [component.opnai], or name one of `chat-template`, `openai`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn double_routes_no_trigger_and_unused_components_are_noticed() {
    let twice = "[[trigger.http]]\nroute = \"/v1/.../\"\ncomponent = \"openai\"\n[[trigger.http]]";
    let error = invalid(&changed("[[trigger.http]]", twice));
    assert!(error.message.contains("matches the same paths"), "{error}");

    let none = "spin_manifest_version = 2\n[application]\nname = \"x\"\n[component.a]\nsource = \"a\"\n";
    assert!(invalid(none).message.contains("no HTTP trigger"));

    let unused = parse(&changed("renderer = \"chat-template\"", "")).unwrap().warnings;
    assert_eq!(unused, [Warning::UnusedComponent("chat-template".to_owned())]);
}

#[test]
fn an_example_as_spin_new_writes_it_is_served() {
    let text = r#"#:schema https://schemas.spinframework.dev/spin/manifest-v2/latest.json
spin_manifest_version = 2

[application]
name = "hello"
version = "0.1.0"
authors = ["A"]
description = ""

[[trigger.http]]
route = "/..."
component = "hello"

[component.hello]
source = "target/wasm32-wasip1/release/hello.wasm"
allowed_outbound_hosts = []
targets = ["spin-up:3.2"]
[component.hello.build]
command = ["cargo build --target wasm32-wasip1 --release", "true"]
watch = ["src/**/*.rs", "Cargo.toml"]
"#;
    let application = parse(text).unwrap();
    assert_eq!(application.component("hello").unwrap().build.as_ref().unwrap().commands.len(), 2);
}

#[test]
fn a_file_is_read_from_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spin.toml");
    let missing = Application::read(&path).unwrap_err().to_string();
    assert!(missing.contains("give the path of a spin.toml"), "{missing}");
    std::fs::write(&path, GOOD).unwrap();
    let application = Application::read(&path).unwrap();
    let source = &application.component("openai").unwrap().source;
    assert_eq!(*source, dir.path().join("target/openai.wasm"));
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(cut in any::<prop::sample::Index>(), with in "[\\[\\]{}=\".a-z\n é]{0,12}", len in 0_usize..20) {
        let start = cut.index(GOOD.len());
        let end = (start + len).min(GOOD.len());
        let text = [&GOOD[..start], &with, &GOOD[end..]].concat();
        if let Err(error) = parse(&text) {
            let _ = error.to_string();
        }
    }
}
