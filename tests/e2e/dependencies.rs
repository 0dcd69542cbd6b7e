//! Applications whose components are composed with their dependencies.

use std::fs;
use std::path::Path;
use std::process::Command;

use nala_e2e::host::Host;
use nala_e2e::{guests, paths};
use serde_json::json;

use crate::deploying::{prepare, serve};
use nala_e2e::api::ask;

fn get(host: &Host, path: &str) -> String {
    let request = ureq::get(host.url(path)).config().http_status_as_error(false).build();
    request.call().expect("the host answers").into_body().read_to_string().unwrap()
}

/// A component that asks its dependency, and what it is granted; `dependency` describes
/// that.
fn manifest(folder: &Path, dependency: &str) {
    for guest in ["composed", "capabilities"] {
        fs::copy(guests::guest("host/wasm/guests", guest), folder.join(format!("{guest}.wasm"))).unwrap();
    }
    fs::write(folder.join("hello.txt"), "hello").unwrap();
    let text = format!(
        r#"
        spin_manifest_version = 2
        [application]
        name = "composed"
        [[trigger.http]]
        route = "/..."
        component = "front"
        [component.front]
        source = "composed.wasm"
        environment = {{ MODE = "test" }}
        files = ["hello.txt"]
        key_value_stores = ["default"]
        variables = {{ token = "s3cret" }}
        [component.front.dependencies]
        {dependency}
        [component.library]
        source = "capabilities.wasm"
    "#
    );
    fs::write(folder.join("spin.toml"), text).unwrap();
}

fn up(folder: &Path) -> Host {
    let manifest = folder.join("spin.toml");
    Host::start(["up".as_ref(), manifest.as_os_str()])
}

/// What `check` says, and whether it is content.
pub(crate) fn check(folder: &Path) -> (bool, String) {
    let mut command = Command::new(paths::host_binary());
    command.args(["check", "--no-cache"]).arg(folder.join("spin.toml"));
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_example_counts_by_its_dependency() {
    guests::guest("components", "words");
    guests::guest("components", "word-count");
    let manifest = paths::root().join("components/examples/word-count/spin.toml");
    let host = Host::start(["up".as_ref(), manifest.as_os_str()]);
    let response = ureq::post(host.url("/")).send("how many words are these").unwrap();
    assert_eq!(response.into_body().read_to_string().unwrap(), "5\n");
}

#[test]
fn a_dependency_has_what_the_manifest_lets_it_inherit() {
    let folder = tempfile::tempdir().unwrap();
    for (dependency, inherits) in [
        ("\"test:capabilities\" = { path = \"capabilities.wasm\" }", [false; 4]),
        ("\"test:capabilities/ask\" = { component = \"library\" }", [false; 4]),
        (
            "\"test:capabilities\" = { component = \"library\", inherit_configuration = [\"files\", \"variables\"] }",
            [false, true, false, true],
        ),
        ("\"test:capabilities\" = { path = \"capabilities.wasm\", inherit_configuration = true }", [true; 4]),
    ] {
        manifest(folder.path(), dependency);
        let (sound, said) = check(folder.path());
        assert!(sound, "{dependency}: {said}");
        let host = up(folder.path());
        assert!(get(&host, "/own/environment").contains(r#"("MODE", "test")"#));
        assert_eq!(get(&host, "/own/key-value?default"), "Ok(())");
        let told = [
            get(&host, "/environment").contains("MODE"),
            get(&host, "/whole?/hello.txt") == "Ok(5)",
            get(&host, "/key-value?default").contains("one"),
            get(&host, "/variable?token").contains("s3cret"),
        ];
        assert_eq!(told, inherits, "{dependency}");
    }
}

#[test]
fn what_is_wrong_with_a_dependency_is_told_where_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let digest = "0".repeat(64);
    for (dependency, said) in [
        ("\"test:others\" = { path = \"capabilities.wasm\" }".to_owned(), "`test:capabilities/ask`"),
        ("\"test:capabilities\" = { path = \"composed.wasm\" }".to_owned(), "which it does not inherit"),
        (
            "\"test:capabilities/ask\" = { path = \"capabilities.wasm\", export = \"none\" }".to_owned(),
            "does not export `none`",
        ),
        ("\"test:capabilities\" = { path = \"hello.txt\" }".to_owned(), "cannot be composed"),
        ("\"test:capabilities\" = { path = \"none.wasm\" }".to_owned(), "none.wasm"),
        ("\"test:capabilities\" = \"1.0.0\"".to_owned(), "not known which registry"),
        (
            format!("\"test:capabilities\" = {{ url = \"https://x.example/x.wasm\", digest = \"sha256:{digest}\" }}"),
            "cannot be fetched",
        ),
    ] {
        manifest(folder.path(), &dependency);
        let (sound, text) = check(folder.path());
        assert!(!sound && text.contains("spin.toml:15:") && text.contains(said), "{dependency}: {text}");
        let refused = Host::refused(["up".as_ref(), folder.path().join("spin.toml").as_os_str()]);
        assert!(refused.stderr.contains(said), "{dependency}: {}", refused.stderr);
    }
    // What asks for models is not served without them, though only its dependency is asked.
    manifest(folder.path(), "\"test:capabilities\" = { path = \"ask.wasm\" }");
    fs::copy(guests::ask(), folder.path().join("ask.wasm")).unwrap();
    let (sound, text) = check(folder.path());
    assert!(!sound && text.contains("inherit_configuration = [\"ai_models\"]"), "{text}");
}

/// The same component, so much larger.
fn padded(component: &[u8], bytes: usize) -> Vec<u8> {
    // A section of the sort 0 with a name of no bytes; sizes have 7 bits a byte.
    let size =
        [1, 2, 3, 4].map(|part| ((bytes + 1) >> (7 * (part - 1)) & 0x7f) as u8 | if part < 4 { 0x80 } else { 0 });
    [component, &[0], &size, &vec![0; bytes + 1]].concat()
}

#[test]
fn what_is_deployed_is_composed_of_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let keys = prepare(folder.path());
    let host = serve(folder.path());
    let url = |path: &str| format!("http://{}/v1/tenants/acme{path}", host.admin);
    let put = |bytes: &[u8]| {
        let (status, put) = ask("POST", &url("/components"), &keys.admin, "application/wasm", bytes);
        assert_eq!(status, 201, "{put}");
        put["digest"].as_str().unwrap().to_owned()
    };
    let wasm = |name: &'static str| fs::read(guests::guest("host/wasm/guests", name)).unwrap();
    let (front, library) = (wasm("composed"), wasm("capabilities"));
    let deploy = |dependency: &str, front: &str, library: &str| {
        let spin_toml = format!(
            "spin_manifest_version = 2\n[application]\nname = \"asks\"\n[[trigger.http]]\nroute = \"/...\"\n\
             component = \"front\"\n[component.front]\nsource = \"front.wasm\"\nenvironment = {{ MODE = \"test\" }}\n\
             [component.front.dependencies]\n\"test:capabilities\" = {{ {dependency} }}\n\
             [component.library]\nsource = \"library.wasm\"\n"
        );
        let body = json!({ "spin_toml": spin_toml, "components": { "front": front, "library": library } });
        ask("PUT", &url("/apps/asks"), &keys.admin, "application/json", body.to_string().as_bytes())
    };
    let (front_digest, library_digest) = (put(&front), put(&library));
    let (status, deployed) = deploy("component = \"library\"", &front_digest, &library_digest);
    assert_eq!(status, 201, "{deployed}");
    // What it imports is what all parts import, without what they answer each other.
    let imports = deployed["components"]["front"]["facts"]["imports"].to_string();
    assert!(imports.contains("wasi:cli/environment") && imports.contains("wasi:logging/logging"), "{imports}");
    assert!(!imports.contains("test:capabilities"), "{imports}");
    let says = |host: &Host, path: &str| ask("GET", &host.url(path), &keys.acme, "", &[]).1.to_string();
    assert!(says(&host, "/own/environment").contains("MODE"));
    assert_eq!(says(&host, "/environment"), "[]");

    // What is wrong changes nothing.
    let (status, refused) = deploy("path = \"/etc/passwd\"", &front_digest, &library_digest);
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(status == 422 && text.contains("component = \"ID\""), "{refused}");
    let (status, refused) = deploy("component = \"library\", export = \"none\"", &front_digest, &library_digest);
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(status == 422 && text.contains("does not export `none`"), "{refused}");
    // Each may be so large, and both together not.
    let half = 5 << 19;
    let (front_digest, library_digest) = (put(&padded(&front, half)), put(&padded(&library, half)));
    let (status, refused) = deploy("component = \"library\"", &front_digest, &library_digest);
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(status == 422 && text.contains("may have at most 4194304"), "{refused}");
    assert_eq!(says(&host, "/environment"), "[]");

    // Composed again after a kill.
    drop(host);
    let host = serve(folder.path());
    assert!(says(&host, "/own/environment").contains("MODE"));
    assert_eq!(says(&host, "/environment"), "[]");
}
