use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::source::{Builtin, Source};
use crate::{Clock, Limits, Renderer, Severity, json, plain};

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
    Application::parse(text, Path::new("/app"), None)
}

fn all(text: &str) -> Vec<Diagnostic> {
    match parse(text) {
        Err(Error::Invalid(diagnostics)) => diagnostics.iter().cloned().collect(),
        other => panic!("{text}: {other:?}"),
    }
}

fn invalid(text: &str) -> Diagnostic {
    all(text).into_iter().find(|one| one.severity == Severity::Error).unwrap()
}

/// The good manifest with a part replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

/// A small manifest with `triggers` and `components`.
fn small(triggers: &str, components: &str) -> String {
    format!("spin_manifest_version = 2\n[application]\nname = \"x\"\n{triggers}\n{components}")
}

const ROUTE: &str = "[[trigger.http]]\nroute = \"/...\"\n";

#[test]
fn a_manifest_is_read_whole() {
    let application = parse(GOOD).unwrap();
    assert_eq!(application.name, "nala");
    assert_eq!(application.version.as_deref(), Some("0.1.0"));
    assert!(application.warnings.is_empty(), "{:?}", application.warnings);
    let openai = application.component("openai").unwrap();
    assert_eq!(openai.source.path(), Some(Path::new("/app/target/openai.wasm")));
    assert_eq!(openai.ai_models, ["m"]);
    assert_eq!(openai.renderer, Some(Renderer::Component("chat-template".to_owned())));
    let build = openai.build.as_ref().unwrap();
    assert_eq!(build.commands, ["cargo build"]);
    assert_eq!(build.workdir, Path::new("/app/components"));
    assert_eq!(
        openai.limits,
        Limits {
            memory_bytes: Some(32 << 20),
            cpu: Some(Duration::from_millis(500)),
            wall: Some(Duration::from_secs(2)),
            ..Limits::default()
        }
    );
    let chat = application.component("chat-template").unwrap();
    assert_eq!(chat.source.path(), Some(Path::new("/abs/chat.wasm")));
    assert_eq!(chat.limits.wall, Some(Duration::from_secs(60)));
    assert_eq!(chat.limits.cpu, None);
    let routes = application.routes();
    assert_eq!(routes.find("/v1/models").unwrap().0.component(), Some("openai"));
    assert!(routes.find("/other").is_none());
}

#[test]
fn mistakes_are_named_with_place_and_way_out() {
    for (from, to, message, line) in [
        ("= 2\n", "= \"1\"\n", "only version 2", 1),
        ("spin_manifest_version = 2\n", "\n", "has no `spin_manifest_version`", 1),
        ("name = \"nala\"", "nane = \"nala\"", "has no `name`", 3),
        ("version = \"0.1.0\"", "vershun = \"0.1.0\"", "unknown key `vershun`", 5),
        ("name = \"nala\"", "name = 1", "`name` must be a string, but here is an integer", 4),
        ("name = \"nala\"", "name = \"\"", "`name` is empty", 4),
        ("name = \"nala\"", "name = \"nala\"\ntargets = [1]", "must be a table", 5),
        ("name = \"nala\"", "name = \"nala\"\ntrigger.http.base = \"/x\"", "`base` is of older manifests", 5),
        ("name = \"nala\"", "name = \"nala\"\ntrigger.redis.address = \"x\"", "type `redis` are not supported", 5),
        ("memory = \"32MiB\"", "memory = \"32\"", "is no size", 10),
        ("memory = \"32MiB\"", "memory = 32", "as a string", 10),
        ("wall = \"1m\"", "wall = \"0s\"", "is no duration", 11),
        ("wall = \"1m\"", "wahl = \"1m\"", "unknown key `wahl`", 11),
        ("[application.tool.other]\n", "[application.tool]\nother = 1\n", "`tool.other` must be a table", 14),
        ("[[trigger.http]]", "[[trigger.redis]]\nchannel = \"c\"\n[[trigger.http]]", "type `redis` are not", 16),
        ("[[trigger.http]]", "[[trigger.htp]]\nroute = \"c\"\n[[trigger.http]]", "type `htp` are not", 16),
        ("[[trigger.http]]", "[trigger.http]", "must be a list of tables", 16),
        ("[[trigger.http]]", "[[trigger.http]]\ncomponents = { a = \"b\" }", "has one component", 17),
        ("[[trigger.http]]", "[[trigger.http]]\nmethods = []", "unknown key `methods`", 17),
        ("\"/v1/...\"", "\"v1\"", "begins with `/`", 17),
        ("\"/v1/...\"", "{ private = false }", "has a path", 17),
        ("\"/v1/...\"", "{ privat = true }", "has no `private`", 17),
        ("\"/v1/...\"", "7", "must be a path or a table", 17),
        ("\"/v1/...\"", "\"/v1/*\"", "write `/...`", 17),
        ("\"/v1/...\"", "\"/%zz\"", "two hexadecimal digits", 17),
        ("component = \"openai\"", "component = \"opnai\"", "no component `opnai`", 18),
        ("component = \"openai\"", "component = { sorce = \"x\" }", "has no `source`", 18),
        ("component = \"openai\"", "", "nobody answers", 16),
        ("component = \"openai\"", "component = \"openai\"\nstatic_response = {}", "only one can answer", 19),
        ("component = \"openai\"", "component = \"openai\"\nexecutor = { type = \"wagi\" }", "wagi", 19),
        ("component = \"openai\"", "component = \"openai\"\nexecutor = { type = \"x\" }", "no executor `x`", 19),
        ("component = \"openai\"", "component = \"openai\"\nexecutor = \"http\"", "must be a table", 19),
        ("\"target/openai.wasm\"", "{ url = \"https://x\" }", "no `digest`", 21),
        ("\"target/openai.wasm\"", "{ url = \"ftp://x\", digest = \"y\" }", "by `ftp`", 21),
        ("\"target/openai.wasm\"", "{ registry = \"r\", package = \"p\", version = \"1.0.0\" }", "is no package", 21),
        ("\"target/openai.wasm\"", "{ package = \"a:p\", version = \"1\" }", "is no version", 21),
        ("\"target/openai.wasm\"", "{ path = \"p\" }", "has no `package`", 21),
        ("\"target/openai.wasm\"", "7", "must be the path", 21),
        ("\"target/openai.wasm\"", "\" \"", "`source` is empty", 21),
        ("ai_models", "ai_modells", "unknown key `ai_modells`", 23),
        ("[\"m\"]", "\"m\"", "`ai_models` must be a list", 23),
        ("hosts = []", "hosts = [\"insecure:allow-all\"]", "of older manifests", 24),
        ("hosts = []", "hosts = [\"\"]", "cannot be empty", 24),
        ("stores = []", "stores = [\"b@d\"]", "cannot be the name of a store", 25),
        ("stores = []", "stores = []\nsqlite_databases = [\"default\"]", "no SQLite", 26),
        ("environment = {}", "environment = { \"A=B\" = \"\" }", "environment variable", 26),
        ("environment = {}", "environment = { A = 1 }", "must be a string", 26),
        ("command = \"cargo build\"", "kommand = \"x\"", "has no `command`", 28),
        ("command = \"cargo build\"", "command = 1", "a string or a list", 29),
        ("renderer = \"chat-template\"", "renderer = \"nobody\"", "no component `nobody`", 34),
        ("renderer = \"chat-template\"", "renderer = \"nala:other\"", "no renderer `nala:other`", 34),
        ("renderer = \"chat-template\"", "renderer = \"openai\"", "its own renderer", 34),
        ("renderer = \"chat-template\"", "clock = \"fast\"", "no clock `fast`", 34),
        ("renderer = \"chat-template\"", "log = \"x\"", "unknown key `log`", 34),
        ("[component.chat-template]", "[component.a_b]\nsource = \"x\"\n[component.chat-template]", "identifier", 40),
        ("source = \"/abs/chat.wasm\"", "source = ", "", 41),
        ("source = \"/abs/chat.wasm\"", "source = \"x\"\nprofile.p.workdir = \"w\"", "unknown key `workdir`", 42),
        ("source = \"/abs/chat.wasm\"", "source = \"x\"\nprofile.p.build = {}", "has no `command`", 42),
        ("source = \"/abs/chat.wasm\"", "source = \"x\"\nprofile.p = 1", "must be a table", 42),
    ] {
        let error = invalid(&changed(from, to));
        assert!(error.message.contains(message), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_file() {
    let text = changed("memory = \"32MiB\"", "memory = \"32\"\nsesions = 1")
        .replacen("\"/v1/...\"", "\"v1\"", 1)
        .replacen("ai_models", "ai_modells", 1)
        .replacen("\"nala\"", "\"\"", 1);
    let found = all(&text);
    let lines: Vec<usize> = found.iter().map(|one| one.line).collect();
    assert_eq!(lines, [4, 10, 11, 18, 24], "{}", plain(&found));
    assert!(found.iter().all(|one| one.severity == Severity::Error));
    assert_eq!(found[2].help, "did you mean `sessions`?");
    let syntax = all(&changed("name = \"nala\"", "name = ").replacen("route = ", "route ", 1));
    assert_eq!(syntax.iter().map(|one| one.line).collect::<Vec<_>>()[0], 4, "{}", plain(&syntax));
}

#[test]
fn diagnostics_are_for_people_and_programs() {
    let found = all(&changed("component = \"openai\"", "component = \"opnai\""));
    let expected = "spin.toml:18:13: there is no component `opnai`\n   |\n18 | component = \"opnai\"\n   |             ^\n   \
                    = help: add a table [component.opnai], or name one of `chat-template`, `openai`";
    assert_eq!(plain(&found), expected);
    let parsed: serde_json::Value = serde_json::from_str(&json(&found)).unwrap();
    assert_eq!(parsed[0]["severity"], "error");
    assert_eq!((&parsed[0]["line"], &parsed[0]["column"]), (&18.into(), &13.into()));
    assert_eq!(parsed[0]["snippet"], "component = \"opnai\"");
    // A manifest does not command the terminal that its errors are shown on.
    let error = invalid(&changed("component = \"openai\"", "component = \"\\u001b[2J\""));
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

#[test]
fn renderers_that_need_each_other_are_refused_at_their_place() {
    let error = invalid(&format!("{GOOD}tool.nala.renderer = \"openai\"\n"));
    assert!(error.message.contains("`openai` -> `chat-template`"), "{error}");
    // The one that is in no circle itself is fine on its way into none.
    let chain = format!("{GOOD}tool.nala.renderer = \"last\"\n[component.last]\nsource = \"l\"\n");
    assert!(parse(&chain).is_ok());
    let builtin = parse(&changed("renderer = \"chat-template\"", "renderer = \"nala:chat-template\"")).unwrap();
    assert_eq!(builtin.component("openai").unwrap().renderer, Some(Renderer::ChatTemplate));
}

#[test]
fn tools_are_components_that_never_come_back_to_who_may_call_them() {
    let with = |first: &str, rest: &str| {
        changed("renderer = \"chat-template\"", &format!("renderer = \"chat-template\"\ntools = {first}")) + rest
    };
    let two = "[component.clock]\nsource = \"c\"\n[component.sums]\nsource = \"s\"\n";
    let application = parse(&with("[\"sums\", \"clock\"]", two)).unwrap();
    assert_eq!(application.component("openai").unwrap().tools, ["sums", "clock"], "in their order");
    assert_eq!(application.tools(), BTreeSet::from(["clock", "sums"]));
    assert!(application.warnings.is_empty(), "they are used: {:?}", application.warnings);
    for (tools, rest, said) in [
        ("[\"nobody\"]", "", "no component `nobody`"),
        ("[\"openai\"]", "", "cannot be its own tool"),
        ("[\"chat-template\"]", "tool.nala.tools = [\"openai\"]\n", "could come to call itself"),
        ("[\"clock\"]", "[component.clock]\nsource = \"c\"\ntool.nala.tools = [\"openai\"]\n", "come to call itself"),
        ("[\"chat-template\", \"chat-template\"]", "", "named twice"),
        ("[\"A b\"]", "", "cannot be a component"),
        ("\"clock\"", "", "a list"),
    ] {
        let error = invalid(&with(tools, rest));
        assert!(error.message.contains(said), "{tools}: {error}");
    }
    // A circle further on is theirs whose it is.
    let far = "tool.nala.tools = [\"b\"]\n[component.b]\nsource = \"b\"\ntool.nala.tools = [\"c\"]\n\
               [component.c]\nsource = \"c\"\ntool.nala.tools = [\"b\"]\n";
    // Many uses are checked in no more time than they take to be read.
    let many = |n: usize| (0..n).map(|at| format!("\"c{at}\"")).collect::<Vec<_>>().join(", ");
    let each = |at: usize| format!("[component.c{at}]\nsource = \"c\"\ntool.nala.tools = [{}]\n", many(at));
    let crowd: String = (0..300).map(each).collect();
    assert!(parse(&with(&format!("[{}]", many(300)), &crowd)).is_ok());
    let found = all(&with("[\"chat-template\"]", far));
    assert!(found.len() == 2 && found.iter().all(|one| one.message.contains("call itself")), "{found:?}");
}

#[test]
fn a_component_knows_where_it_is_described() {
    let place = &parse(GOOD).unwrap().component("openai").unwrap().place.clone();
    assert_eq!(place, "spin.toml:20: component `openai` cannot be served");
}

#[test]
fn double_routes_no_trigger_and_unused_components_are_noticed() {
    let twice = "[[trigger.http]]\nroute = \"/v1/.../\"\ncomponent = \"openai\"\n[[trigger.http]]";
    let error = invalid(&changed("[[trigger.http]]", twice));
    assert!(error.message.contains("matches the same paths"), "{error}");

    assert!(invalid(&small("", "[component.a]\nsource = \"a\"")).message.contains("no HTTP trigger"));
    let private = small("[[trigger.http]]\nroute.private = true\ncomponent = \"a\"", "[component.a]\nsource = \"a\"");
    assert!(invalid(&private).message.contains("no HTTP trigger with a path"));

    let unused = parse(&changed("renderer = \"chat-template\"", "")).unwrap().warnings;
    assert_eq!(unused.len(), 1);
    assert_eq!((unused[0].severity, unused[0].line), (Severity::Warning, 40));
    assert!(unused[0].to_string().contains("warning: component `chat-template` is never used"), "{}", unused[0]);
}

#[test]
fn private_static_and_inline_triggers_are_told_apart() {
    let application = parse(&small(
        r#"[trigger]
http = [
  { route = "/a/...", component = "named", executor = { type = "spin" } },
  { route = { private = true }, component = "hidden", id = "h" },
  { route = "/a/health", static_response = { status_code = 204, headers = { X-Up = "yes" } } },
  { route = "/b", component = { source = "b.wasm", ai_models = ["m"] }, id = "the-b" },
  { route = "/c", component = { source = "c.wasm" }, id = "not kebab" },
]
"#,
        "[component.named]\nsource = \"n\"\n[component.hidden]\nsource = \"h\"",
    ))
    .unwrap();
    let ids: Vec<&str> = application.triggers.iter().map(|trigger| trigger.id.as_str()).collect();
    assert_eq!(ids, ["named-http-trigger", "h", "http-trigger1", "the-b", "not kebab"]);
    let routes = application.routes();
    assert_eq!(routes.iter().count(), 4);
    assert_eq!(routes.find("/a/x").unwrap().0.component(), Some("named"));
    let Answer::Static(response) = routes.find("/a/health").unwrap().0 else { panic!() };
    assert_eq!((response.status.as_u16(), response.headers["x-up"].to_str().unwrap()), (204, "yes"));
    assert_eq!(routes.find("/b").unwrap().0.component(), Some("the-b-component"));
    assert_eq!(routes.find("/c").unwrap().0.component(), Some("inline-component1"));
    assert_eq!(application.component("the-b-component").unwrap().ai_models, ["m"]);
    assert_eq!(application.triggers[1].route, TriggerRoute::Private);
    let reachable = application.reachable();
    assert_eq!(reachable.into_iter().collect::<Vec<_>>(), ["hidden", "inline-component1", "named", "the-b-component"]);
}

#[test]
fn static_responses_are_checked() {
    for (response, message) in [
        ("{ status_code = 99 }", "99 is no status"),
        ("{ status_code = 101 }", "101 is no status"),
        ("{ status_code = 204, body = \"x\" }", "has no body"),
        ("{ headers = { \"a b\" = \"x\" } }", "cannot be the name of a header"),
        ("{ headers = { a = \"x\\r\\nb: c\" } }", "is no header's"),
        ("{ headers = { Content-Length = \"1\" } }", "the server's to set"),
        ("{ headers = { a = \"1\", A = \"2\" } }", "there twice"),
        ("{ status = 200 }", "unknown key `status`"),
        ("{ body = 1 }", "must be a string"),
    ] {
        let error = invalid(&small(&format!("{ROUTE}static_response = {response}"), ""));
        assert!(error.message.contains(message), "{response}: {error}");
    }
    let private = "[[trigger.http]]\nroute = { private = true }\nstatic_response = { body = \"\" }";
    assert!(invalid(&small(private, "")).message.contains("private trigger"));
    let middleware = format!("{ROUTE}static_response = {{}}\ndependencies.middleware = [{{ path = \"m.wasm\" }}]");
    assert!(invalid(&small(&middleware, "")).message.contains("a static response goes through no middleware"));
    let ids = format!(
        "{ROUTE}id = \"a\"\nstatic_response = {{}}\n[[trigger.http]]\nroute = \"/\"\nid = \"a\"\nstatic_response = {{}}"
    );
    assert!(invalid(&small(&ids, "")).message.contains("two triggers have the `id` `a`"));
}

#[test]
fn sources_elsewhere_are_typed() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let remote = format!("{{ url = \"https://example.com/a.wasm\", digest = \"{digest}\" }}");
    let application = parse(&changed("\"target/openai.wasm\"", &remote)).unwrap();
    let source = &application.component("openai").unwrap().source;
    let Source::Url(download) = source else { panic!("{source:?}") };
    assert_eq!(download.digest.to_string(), digest);
    assert_eq!(source.path(), None);
    let package = "{ registry = \"ttl.sh\", package = \"user:test\", version = \"1.0.0\" }";
    let application = parse(&changed("\"target/openai.wasm\"", package)).unwrap();
    let source = &application.component("openai").unwrap().source;
    assert_eq!(source.to_string(), "user:test@1.0.0 of ttl.sh");
    let package = "{ package = \"user:test\", version = \"1.0.0\" }";
    let application = parse(&changed("\"target/openai.wasm\"", package)).unwrap();
    assert_eq!(application.component("openai").unwrap().source.to_string(), "user:test@1.0.0 of the default registry");
}

#[test]
fn what_is_in_a_registry_is_named_by_its_digest() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    for pinned in [format!("oci://r.example/shop@{digest}"), format!("oci://r.example/shop:1@{digest}")] {
        let application = parse(&changed("\"target/openai.wasm\"", &format!("\"{pinned}\""))).unwrap();
        let source = &application.component("openai").unwrap().source;
        assert!(matches!(source, Source::Oci(_)), "{source:?}");
        assert_eq!((source.to_string(), source.path()), (pinned, None));
    }
    for (wrong, why) in [
        ("oci://r.example/shop:1", "a tag can be moved"),
        ("oci://r.example/shop", "nala-host pull oci://r.example/shop`"),
        ("oci://r.example/shop@sha256:12", "is not pinned: a digest is"),
    ] {
        let diagnostic = invalid(&changed("\"target/openai.wasm\"", &format!("\"{wrong}\"")));
        assert!(diagnostic.to_string().contains(why), "{diagnostic}");
        assert_eq!(diagnostic.line, 21, "{diagnostic}");
    }
}

#[test]
fn what_the_host_carries_is_named_by_its_name() {
    let application = parse(&changed("\"target/openai.wasm\"", "\"nala:mcp\"")).unwrap();
    let source = &application.component("openai").unwrap().source;
    assert_eq!((source, source.to_string().as_str()), (&Source::Builtin(Builtin::Mcp), "nala:mcp"));
    let diagnostic = invalid(&changed("\"target/openai.wasm\"", "\"nala:mpc\""));
    assert!(diagnostic.to_string().contains("carries no component `nala:mpc`"), "{diagnostic}");
}

#[test]
fn hosts_are_kept_with_their_places() {
    let hosts = "hosts = [\"https://{{ host }}:8443\", \"http://*.spin.internal\"]";
    let text =
        changed("hosts = []", hosts).replacen("[application]", "variables.host.default = \"h\"\n[application]", 1);
    let application = parse(&text).unwrap();
    let allowed = &application.component("openai").unwrap().allowed_outbound_hosts;
    let values = application.values(&|_| None).unwrap();
    let resolved: Vec<String> =
        allowed.iter().map(|host| values.resolve(&host.template).unwrap().expose().to_owned()).collect();
    assert_eq!(resolved, ["https://h:8443", "http://*.spin.internal"]);
    assert_eq!(allowed[1].place.to_string(), "spin.toml:25:54");
    let error = allowed[1].place.error("no", "yes");
    assert!(error.to_string().starts_with("spin.toml:25:54: no\n"), "{error}");
}

#[test]
fn old_hosts_become_new_ones() {
    let hosts = |list: &str| {
        let application = parse(&changed("allowed_outbound_hosts = []", &format!("allowed_http_hosts = {list}")))?;
        let allowed = &application.component("openai").unwrap().allowed_outbound_hosts;
        let texts = allowed.iter().map(|host| host.template.to_string()).collect::<Vec<_>>();
        Ok::<_, Error>((texts, application.warnings.len()))
    };
    for (list, expected) in [
        ("[]", vec![]),
        ("[\"a.example\"]", vec!["http://a.example", "https://a.example"]),
        ("[\"https://a.example:81/\"]", vec!["http://a.example:81", "https://a.example:81"]),
        ("[\"[::1]:8080\"]", vec!["http://[::1]:8080", "https://[::1]:8080"]),
        ("[\"self\"]", vec!["http://self"]),
        ("[\"b.example\", \"insecure:allow-all\"]", vec!["http://*:*", "https://*:*", "http://self"]),
    ] {
        let (texts, warnings) = hosts(list).unwrap();
        assert_eq!(texts, expected, "{list}");
        assert_eq!(warnings, usize::from(list != "[]"));
    }
    for list in ["[\"\"]", "[\"a/b\"]", "[\"ftp://a\"]", "[\"{{ x }}\"]", "[\"a?b\"]", "[\"u@a\"]", "[1]", "\"a\""] {
        assert!(hosts(list).is_err(), "{list}");
    }
    let both = changed("hosts = []", "hosts = [\"https://b\"]\nallowed_http_hosts = [\"a\"]");
    let error = invalid(&both);
    assert!(error.message.contains("cannot be there together"), "{error}");
    assert!(error.help.contains("[\"http://a\", \"https://a\"]"), "{error}");
}

#[test]
fn profiles_change_the_components_that_have_them() {
    let text = r#"spin_manifest_version = 2
[application]
name = "x"
[[trigger.http]]
route = "/a"
component = "a"
[[trigger.http]]
route = "/b"
component = { source = "b.wasm", profile.debug.build.command = ["b", "c"] }
[component.a]
source = "a.wasm"
environment = { A = "1", B = "2" }
dependencies = { "x:y" = "1", z = { path = "z" } }
build = { command = "make", workdir = "w", watch = ["*.c"] }
[component.a.profile.debug]
source = "debug.wasm"
environment = { B = "3", C = "4" }
dependencies = { "x:y" = { path = "local" } }
build.command = "make debug"
[component.a.profile.other]
"#;
    let read = |profile| Application::parse(text, Path::new("/app"), profile);
    let plain = read(None).unwrap();
    let other = read(Some("other")).unwrap();
    assert_eq!(plain.components, other.components);
    let a = plain.component("a").unwrap();
    assert_eq!(a.source.path(), Some(Path::new("/app/a.wasm")));
    assert_eq!(plain.component("inline-component1"), None);

    let debug = read(Some("debug")).unwrap();
    let a = debug.component("a").unwrap();
    assert_eq!(a.source.path(), Some(Path::new("/app/debug.wasm")));
    assert_eq!(a.source_place.line, 16);
    let environment: Vec<(&str, &str)> = a.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(environment, [("A", "1"), ("B", "3"), ("C", "4")]);
    assert_eq!(a.dependencies.len(), 2);
    let build = a.build.as_ref().unwrap();
    assert_eq!((build.commands[0].as_str(), build.watch.len()), ("make debug", 1));
    assert_eq!(build.workdir, Path::new("/app/w"));
    let b = debug.component("http-trigger1-component").unwrap();
    assert_eq!(b.build.as_ref().unwrap().commands, ["b", "c"]);
    assert_eq!(b.build.as_ref().unwrap().workdir, Path::new("/app"));

    let error = read(Some("debgu")).unwrap_err().to_string();
    assert!(error.contains("no component has the profile `debgu`"), "{error}");
    assert!(error.contains("`debug`, `other`"), "{error}");
    // A mistake in a profile is one, whichever is chosen.
    assert!(Application::parse(&text.replace("debug.wasm\"", "\""), Path::new(""), None).is_err());
}

#[test]
fn every_limit_is_read_and_over_the_applications() {
    let limits = r#"tool.nala.clock = "coarse"
tool.nala.telemetry = true
[component.chat-template.tool.nala.limits]
memory = "1MiB"
cpu = "1s"
wall = "2s"
sessions = 0
kv_cells = 4_096
instances = 3
queued = 0
generations = 5
queued_generations = 6
handles = 7
call_bytes = "8kB"
grammar_bytes = "9kB"
header_bytes = "10kB"
log_bytes = "11kB"
host_bytes = "12kB"
tokens_in_per_minute = 13
tokens_out_per_minute = 14
saved_sessions = 15
outbound_connections = 16
key_value_bytes = "17kB"
tensor_bytes = "1MiB"
table_elements = 18
core_instances = 0x13
"#;
    let application = parse(&format!("{GOOD}{limits}")).unwrap();
    let chat = application.component("chat-template").unwrap();
    assert_eq!((chat.clock, chat.telemetry), (Some(Clock::Coarse), true));
    let expected = Limits {
        memory_bytes: Some(1 << 20),
        cpu: Some(Duration::from_secs(1)),
        wall: Some(Duration::from_secs(2)),
        sessions: Some(0),
        kv_cells: Some(4096),
        instances: Some(3),
        queued: Some(0),
        generations: Some(5),
        queued_generations: Some(6),
        handles: Some(7),
        call_bytes: Some(8_000),
        grammar_bytes: Some(9_000),
        header_bytes: Some(10_000),
        log_bytes: Some(11_000),
        host_bytes: Some(12_000),
        tokens_in_per_minute: Some(13),
        tokens_out_per_minute: Some(14),
        saved_sessions: Some(15),
        outbound_connections: Some(16),
        key_value_bytes: Some(17_000),
        tensor_bytes: Some(1 << 20),
        table_elements: Some(18),
        core_instances: Some(19),
    };
    assert_eq!(chat.limits, expected);
    assert_eq!(Limits::default().or(expected), expected);
    for (from, to, message) in [
        ("instances = 3", "instances = 0", "`instances` cannot be 0"),
        ("sessions = 0", "sessions = -1", "`sessions` cannot be -1"),
        ("handles = 7", "handles = 4294967296", "cannot be 4294967296"),
        ("kv_cells = 4_096", "kv_cells = 99999999999999999999", "too large"),
        ("generations = 5", "generations = \"5\"", "must be an integer"),
        ("generations = 5", "generations = 5.0", "must be an integer"),
        ("call_bytes = \"8kB\"", "call_bytes = \"4GiB\"", "below 4GiB"),
        ("log_bytes = \"11kB\"", "log_bytes = 11", "as a string"),
        ("host_bytes", "hostbytes", "unknown key `hostbytes`"),
    ] {
        let error = invalid(&format!("{GOOD}{}", limits.replacen(from, to, 1)));
        assert!(error.message.contains(message), "{to}: {error}");
    }
}

#[test]
fn a_manifest_is_checked_with_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spin.toml");
    let text = small(
        &format!("{ROUTE}component = \"a\""),
        "[component.a]\nsource = \"a.wasm\"\nfiles = [\"nothing\"]\nbuild.command = \"make a\"\n[component.b]\nsource = \"spin.toml\"",
    );
    std::fs::write(&path, &text).unwrap();
    let checked = Application::check(&path, None).unwrap();
    assert!(checked.application.is_some() && !checked.is_sound());
    let shown = plain(&checked.diagnostics);
    for part in [
        "component `b` is never used",
        "there is no file",
        "help: build it: (cd ",
        "&& make a)",
        "there is no `nothing`",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    std::fs::write(dir.path().join("a.wasm"), "").unwrap();
    std::fs::write(dir.path().join("nothing"), "").unwrap();
    let checked = Application::check(&path, None).unwrap();
    assert!(checked.is_sound() && checked.diagnostics.len() == 1, "{}", plain(&checked.diagnostics));
    std::fs::write(&path, text.replacen("route", "rout", 1)).unwrap();
    let checked = Application::check(&path, None).unwrap();
    assert!(checked.application.is_none() && checked.diagnostics.len() == 2, "{}", plain(&checked.diagnostics));
    assert!(matches!(Application::check(dir.path(), None), Err(Error::Read { .. })));
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
targets = ["spin-up:3.2", { url = "https://example.com/e.toml" }, { path = "e.toml" }]

[application.trigger.http]
base = "/"

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
    let missing = Application::read(&path, None).unwrap_err().to_string();
    assert!(missing.contains("give the path of a spin.toml"), "{missing}");
    std::fs::write(&path, GOOD).unwrap();
    let application = Application::read(&path, None).unwrap();
    let source = application.component("openai").unwrap().source.path().unwrap();
    assert_eq!(source, dir.path().join("target/openai.wasm"));
}

/// A manifest with every key.
const FULL: &str = include_str!("full_manifest.toml");

#[test]
fn every_key_is_read() {
    let application = parse(FULL).unwrap();
    assert_eq!(application.triggers.len(), 4);
    assert_eq!(application.components.len(), 4);
}

/// Any TOML value, to stand where another one is expected.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("true".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("[[1], { a = [] }]".to_owned()),
        "-?[0-9]{1,20}(\\.[0-9])?",
        "\"[a-z{}/:@.*\\[é-]{0,12}\"",
        "\\{ [a-z_]{1,8} = \"[a-z{}/:@.*]{0,8}\" \\}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_text_causes_a_panic(cut in any::<prop::sample::Index>(), with in "[\\[\\]{}=\".a-z\n é]{0,12}", len in 0_usize..20) {
        let start = FULL.floor_char_boundary(cut.index(FULL.len()));
        let end = FULL.floor_char_boundary((start + len).min(FULL.len()));
        let text = [&FULL[..start], &with, &FULL[end..]].concat();
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// Whatever stands behind a key, it is read or an error points at it.
    #[test]
    fn no_value_causes_a_panic(key in any::<prop::sample::Index>(), value in value()) {
        let lines: Vec<&str> = FULL.lines().collect();
        let keys: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(" = ")).collect();
        let at = keys[key.index(keys.len())];
        let line = format!("{} = {value}", lines[at].split_once(" = ").unwrap().0);
        let text: Vec<&str> = lines.iter().enumerate().map(|(n, old)| if n == at { line.as_str() } else { old }).collect();
        if let Err(Error::Invalid(found)) = parse(&text.join("\n")) {
            for one in found.iter() {
                prop_assert!(one.line >= 1 && one.line <= lines.len() && !one.message.is_empty());
            }
        }
    }

    /// A key that nobody knows is refused in every table but those of other
    /// programs and those with free names.
    #[test]
    fn no_key_is_ignored(at in any::<prop::sample::Index>()) {
        let lines: Vec<&str> = FULL.lines().collect();
        let strict = |line: &str| {
            line.starts_with('[') && !["variables", "environment", "dependencies", "headers", "tool.other", "trigger.http.h"].iter().any(|free| line.contains(free))
        };
        let tables: Vec<usize> = (0..lines.len()).filter(|at| strict(lines[*at])).collect();
        let at = tables[at.index(tables.len())];
        let mut lines = lines;
        lines.insert(at + 1, "zzz = 1");
        let text = lines.join("\n");
        let found = all(&text);
        prop_assert!(found.iter().any(|one| one.message.contains("zzz") || one.line == at + 2), "{}", plain(&found));
    }
}
