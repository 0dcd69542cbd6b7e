//! Triggers whose requests go through middleware.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nala_e2e::api::ask;
use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::metrics::eventually;
use nala_e2e::raw::Raw;
use serde_json::json;

use crate::dependencies::check;
use crate::deploying::{prepare, serve};

/// The same component with middleware under `/loud`, and without under `/`.
fn manifest(middleware: &str) -> String {
    format!(
        r#"
        spin_manifest_version = 2
        [application]
        name = "loud"
        [[trigger.http]]
        route = "/..."
        component = "hello"
        [[trigger.http]]
        route = "/loud/..."
        component = "hello"
        dependencies.middleware = [{middleware}]
        [component.hello]
        source = "hello.wasm"
        environment = {{ MODE = "test", OTHER = "too" }}
        [component.loud]
        source = "loud.wasm"
    "#
    )
}

fn write(folder: &Path, middleware: &str) {
    for (guest, file) in [("hello-async", "hello.wasm"), ("loud", "loud.wasm"), ("hello", "old.wasm")] {
        fs::copy(guests::guest("host/wasm/guests", guest), folder.join(file)).unwrap();
    }
    fs::write(folder.join("spin.toml"), manifest(middleware)).unwrap();
}

/// The answer, and how much of the environment each middleware has seen.
fn get(host: &Host, path: &str) -> (String, Vec<String>) {
    let response = ureq::get(host.url(path)).call().unwrap();
    let seen = response.headers().get_all("x-environment").iter();
    let seen = seen.map(|value| value.to_str().unwrap().to_owned()).collect();
    (response.into_body().read_to_string().unwrap(), seen)
}

#[test]
fn requests_go_through_middleware_with_what_it_inherits() {
    let folder = tempfile::tempdir().unwrap();
    for (middleware, seen) in [
        ("{ component = \"loud\" }", "0"),
        ("{ path = \"loud.wasm\", inherit_configuration = [\"environment\"] }", "2"),
        ("{ component = \"loud\", inherit_configuration = true }, { path = \"loud.wasm\" }", "2"),
    ] {
        write(folder.path(), middleware);
        let (sound, said) = check(folder.path());
        assert!(sound, "{middleware}: {said}");
        let host = Host::start(["up".as_ref(), folder.path().join("spin.toml").as_os_str()]);
        assert_eq!(get(&host, "/"), ("Hello from WASI 0.3\n".to_owned(), vec![]));
        assert_eq!(get(&host, "/loud/here"), ("HELLO FROM WASI 0.3\n".to_owned(), vec![seen.to_owned()]));
    }
}

#[test]
fn what_is_wrong_with_middleware_is_told_where_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (middleware, said) in [
        ("{ path = \"old.wasm\" }", "old.wasm` hands no requests on"),
        ("{ path = \"hello.wasm\" }", "hello.wasm` hands no requests on"),
        ("{ path = \"spin.toml\" }", "cannot be composed"),
        ("{ path = \"nowhere.wasm\" }", "there is no file"),
        ("{ path = \".\" }", "there is no file"),
        ("{ component = \"none\" }", "there is no component `none`"),
        (
            "{ registry = \"127.0.0.1:1\", package = \"a:b\", version = \"1\" }",
            "the middleware `a:b` cannot be fetched",
        ),
    ] {
        write(folder.path(), middleware);
        let (sound, text) = check(folder.path());
        assert!(!sound && text.contains(said) && text.contains("spin.toml:11:"), "{middleware}: {text}");
    }
    // The one behind is of another release of WASI.
    write(folder.path(), "{ component = \"loud\" }");
    let text = fs::read_to_string(folder.path().join("spin.toml")).unwrap().replace("hello.wasm", "old.wasm");
    fs::write(folder.path().join("spin.toml"), text).unwrap();
    let (sound, text) = check(folder.path());
    assert!(!sound && text.contains("`hello` does not answer") && text.contains("same release of WASI"), "{text}");
}

#[test]
fn a_component_has_one_account_whatever_trigger_its_requests_come_by() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "{ component = \"loud\" }");
    fs::copy(guests::guest("host/wasm/guests", "capabilities-async"), folder.path().join("hello.wasm")).unwrap();
    let limits = "[component.hello.tool.nala.limits]\ninstances = 1\nqueued = 0\n";
    let text = fs::read_to_string(folder.path().join("spin.toml")).unwrap() + limits;
    fs::write(folder.path().join("spin.toml"), text).unwrap();
    let host = Host::start(["up".as_ref(), folder.path().join("spin.toml").as_os_str()]);
    let ask = |path: &str| match ureq::get(host.url(path)).call() {
        Ok(response) => response.status().as_u16(),
        Err(ureq::Error::StatusCode(status)) => status,
        Err(error) => panic!("{error}"),
    };
    let address = &host.address;
    let head = format!("GET /waits?1000000000 HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let first = Raw::send(address, head.as_bytes());
    eventually("the first request", Duration::from_secs(30), || {
        host.metrics().text().lines().any(|line| line == "nala_wasm_instances 1")
    });
    assert_eq!(["/waits?1", "/loud/waits?1"].map(ask), [429, 429]);
    first.hang_up();
    eventually("the end of the first request", Duration::from_secs(30), || ask("/loud/waits?1") == 200);
}

#[test]
fn an_application_that_is_sent_has_the_middleware_that_is_sent_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let keys = prepare(folder.path());
    let host = serve(folder.path());
    let url = |path: &str| format!("http://{}/v1/tenants/acme{path}", host.admin);
    let [hello, loud] = ["hello-async", "loud"].map(|guest| {
        let wasm = fs::read(guests::guest("host/wasm/guests", guest)).unwrap();
        let (status, put) = ask("POST", &url("/components"), &keys.admin, "application/wasm", &wasm);
        assert_eq!(status, 201, "{put}");
        put["digest"].as_str().unwrap().to_owned()
    });
    let deploy = |middleware: &str| {
        let body = json!({ "spin_toml": manifest(middleware), "components": { "hello": hello, "loud": loud } });
        ask("PUT", &url("/apps/loud"), &keys.admin, "application/json", body.to_string().as_bytes())
    };
    let says = |host: &Host, path: &str| {
        let request = ureq::get(host.url(path)).header("x-api-key", &keys.acme);
        request.call().unwrap().into_body().read_to_string().unwrap()
    };
    let (status, refused) = deploy("{ path = \"loud.wasm\" }");
    assert!(status == 422 && refused.to_string().contains("only what was sent with it"), "{refused}");
    let (status, deployed) = deploy("{ component = \"loud\" }");
    assert_eq!(status, 201, "{deployed}");
    // The record has what is asked for on the account of the component behind.
    let imports = |id: &str| deployed["components"][id]["facts"]["imports"].to_string();
    for import in ["wasi:http/handler@", "wasi:random/insecure-seed@"] {
        assert!(imports("loud").contains(import), "{deployed}");
    }
    assert!(imports("hello").contains("wasi:random/insecure-seed@"), "{deployed}");
    assert_eq!(says(&host, "/loud/"), "HELLO FROM WASI 0.3\n");
    assert_eq!(says(&host, "/"), "Hello from WASI 0.3\n");
    // Composed again after a kill.
    drop(host);
    assert_eq!(says(&serve(folder.path()), "/loud/"), "HELLO FROM WASI 0.3\n");
}
