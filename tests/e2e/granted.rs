//! What a manifest grants, in the whole host: variables, files, stores, other components.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use nala_e2e::guests;
use nala_e2e::host::{Host, Refused};
use nala_e2e::keys::key;

/// Two copies of a component that tries what it is granted, one of them private.
fn manifest(folder: &Path) {
    let wasm = guests::guest("host/wasm/guests", "capabilities");
    fs::copy(wasm, folder.join("capabilities.wasm")).unwrap();
    fs::create_dir(folder.join("texts")).unwrap();
    fs::write(folder.join("texts/hello.txt"), "hello").unwrap();
    fs::write(folder.join("secret.txt"), "not granted").unwrap();
    let text = r#"
        spin_manifest_version = 2
        [application]
        name = "granted"
        [variables]
        greeting = { default = "good morning" }
        token = { required = true, secret = true }
        [[trigger.http]]
        route = "/..."
        component = "front"
        [[trigger.http]]
        route = { private = true }
        component = "back"
        [[trigger.http]]
        route = "/health"
        static_response = { status_code = 200, body = "well" }
        [component.front]
        source = "capabilities.wasm"
        environment = { MODE = "test" }
        files = ["texts/*.txt"]
        key_value_stores = ["default"]
        allowed_outbound_hosts = ["http://back.spin.internal"]
        [component.front.variables]
        hello = "{{ greeting }}, {{ token }}"
        [component.front.tool.nala.limits]
        instances = 2
        [component.back]
        source = "capabilities.wasm"
    "#;
    fs::write(folder.join("spin.toml"), text).unwrap();
}

fn up(folder: &Path, more: &[&str]) -> Result<Host, Refused> {
    let manifest = folder.join("spin.toml");
    let more = more.iter().map(|argument| argument.as_ref());
    Host::try_start(["up".as_ref(), manifest.as_os_str()].into_iter().chain(more))
}

fn get(host: &Host, path: &str, key: &str) -> (u16, String) {
    let request = ureq::get(host.url(path)).config().http_status_as_error(false).build();
    let response = request.header("authorization", format!("Bearer {key}")).call().expect("the host answers");
    let status = response.status().as_u16();
    (status, response.into_body().read_to_string().unwrap())
}

#[test]
fn a_manifest_grants_what_it_says_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    manifest(folder.path());
    let refused = up(folder.path(), &[]).err().expect("a variable has no value");
    assert!(refused.stderr.contains("token") && refused.stderr.contains("SPIN_VARIABLE_TOKEN"), "{}", refused.stderr);

    let host = up(folder.path(), &["--variable", "token=hunter2"]).unwrap();
    let says = |path: &str| get(&host, path, "").1;
    assert_eq!(says("/health"), "well");
    assert!(says("/environment").contains(r#"("MODE", "test")"#));
    assert!(says("/variable?hello").contains("good morning, hunter2"), "{}", says("/variable?hello"));
    assert!(!host.log().contains("hunter2"), "a secret is never logged");
    assert!(says("/whole?/texts/hello.txt").contains("Ok(5)"), "{}", says("/whole?/texts/hello.txt"));
    for path in ["/secret.txt", "secret.txt", "../secret.txt", "/etc/passwd", "/texts/../../secret.txt"] {
        assert!(says(&format!("/whole?{path}")).contains("Err("), "{path}");
    }
    // The private component is reached by the other one only, and is granted nothing.
    let fetched = says("/fetch?http://back.spin.internal/environment");
    assert!(fetched.contains("200") && fetched.contains("[]"), "{fetched}");
    let fetched = says("/fetch?http://front.spin.internal/environment");
    assert!(!fetched.contains("200"), "not in its list: {fetched}");
    let fetched = says("/fetch?http://127.0.0.1:1/");
    assert!(!fetched.contains("200"), "{fetched}");
}

#[test]
fn the_operator_has_the_last_word_on_addresses() {
    let folder = tempfile::tempdir().unwrap();
    manifest(folder.path());
    // Answers all that ask it. The manifest grants the address itself.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _read = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwell").unwrap();
        }
    });
    let text = fs::read_to_string(folder.path().join("spin.toml")).unwrap();
    fs::write(folder.path().join("spin.toml"), text.replace("http://back.spin.internal", &address)).unwrap();
    let config = folder.path().join("nala.toml");
    let fetched = |egress: &str| {
        fs::write(&config, egress).unwrap();
        let host = up(folder.path(), &["--variable", "token=x", "--config", config.to_str().unwrap()])?;
        let answer = ureq::get(host.url(&format!("/fetch?{address}/"))).call().unwrap();
        Ok::<_, Refused>(answer.into_body().read_to_string().unwrap())
    };
    let told = |result: Result<String, Refused>| result.unwrap_or_else(|refused| refused.stderr);
    let reached = told(fetched(""));
    assert!(reached.contains("well"), "{reached}");
    let refused = told(fetched("[egress]\nrefused = [\"127.0.0.0/8\"]\n"));
    assert!(refused.contains("Prohibited"), "{refused}");
    let wrong = told(fetched("[egress]\nprivate = [\"8.8.8.8\"]\n"));
    assert!(wrong.contains("[egress]") && wrong.contains("8.8.8.8"), "{wrong}");
}

#[test]
fn tenants_share_an_application_and_no_data() {
    let folder = tempfile::tempdir().unwrap();
    manifest(folder.path());
    let ((a, a_stored), (b, b_stored)) = (key(), key());
    let config = format!("[tenant.a]\nkeys = [{a_stored:?}]\n[tenant.b]\nkeys = [{b_stored:?}]\n");
    fs::write(folder.path().join("nala.toml"), config).unwrap();
    let (config, state) = (folder.path().join("nala.toml"), folder.path().join("state"));
    let arguments =
        ["--variable", "token=x", "--config", config.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    let host = up(folder.path(), &arguments).unwrap();
    let keys = |host: &Host, key: &str| get(host, "/key-value?default", key).1;
    assert_eq!(get(&host, "/health", "").0, 401);
    // Leaves the key `s` behind; the other path leaves nothing.
    assert!(get(&host, "/key-value-swap?default", &a).1.contains("new"));
    assert!(keys(&host, &a).contains(r#"["a", "s"]"#), "{}", keys(&host, &a));
    assert!(keys(&host, &b).contains(r#"["a"]"#), "{}", keys(&host, &b));
    assert!(get(&host, "/key-value?other", &a).1.contains("AccessDenied"), "{}", get(&host, "/key-value?other", &a).1);
    // Acknowledged, and so there after a kill.
    drop(host);
    let host = up(folder.path(), &arguments).unwrap();
    assert!(keys(&host, &a).contains(r#"["a", "s"]"#), "{}", keys(&host, &a));
    assert!(keys(&host, &b).contains(r#"["a"]"#), "{}", keys(&host, &b));
}
