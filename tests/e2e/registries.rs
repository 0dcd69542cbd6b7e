//! Components that are elsewhere: the verbs, manifests and the operator's API, with a real
//! registry.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::metrics::eventually;
use nala_e2e::paths;
use nala_oci::Digest;
use serde_json::{Value, json};

use nala_e2e::api::ask;

#[path = "../../host/oci/tests/registry/mod.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod registry;

use registry::{Access, Registry};

/// A handler that does `body`. One that does nothing is told apart from one that ends in a
/// trap by what the client is told.
fn handler(body: &str, padding: usize) -> Vec<u8> {
    let text = format!(
        r#"(component
            (import "wasi:http/types@0.2.0" (instance $types
                (export "incoming-request" (type (sub resource)))
                (export "response-outparam" (type (sub resource)))))
            (alias export $types "incoming-request" (type $request))
            (alias export $types "response-outparam" (type $response))
            (core module $m (func (export "handle") (param i32 i32) {body}))
            (core instance $i (instantiate $m))
            (func $handle (param "request" (own $request)) (param "response-out" (own $response))
                (canon lift (core func $i "handle")))
            (instance $handler (export "handle" (func $handle)))
            (export "wasi:http/incoming-handler@0.2.0" (instance $handler))
            (@custom "padding" "{}"))"#,
        "x".repeat(padding)
    );
    wat::parse_str(text).unwrap()
}

fn silent() -> Vec<u8> {
    handler("", 0)
}

fn trapping() -> Vec<u8> {
    handler("unreachable", 0)
}

/// Somebody's folder: a home without credentials, and what they have fetched.
struct Somebody {
    folder: tempfile::TempDir,
}

impl Somebody {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(paths::host_binary());
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("NALA_FETCH_DIR", self.path("fetched"))
            .env("NALA_CACHE_DIR", paths::cache())
            .env("NALA_MODELS_DIR", paths::root().join("models"));
        for name in ["DOCKER_CONFIG", "NALA_REGISTRY", "SOURCE_DATE_EPOCH"] {
            command.env_remove(name);
        }
        command
    }

    /// What a verb says on standard output and standard error when it succeeds.
    fn does(&self, args: &[&str]) -> (String, String) {
        let (out, err, succeeded) = said(self.command(args).output().unwrap());
        assert!(succeeded, "{args:?}: {err}");
        (out.trim().to_owned(), err)
    }

    /// What it says when it does not.
    fn fails(&self, args: &[&str]) -> String {
        let (out, err, succeeded) = said(self.command(args).output().unwrap());
        assert!(!succeeded && !err.contains("panicked"), "{args:?}: {out}{err}");
        err
    }

    /// What one says that should serve and does not.
    fn refuses(&self, args: &[&str]) -> String {
        match Host::launch(&mut self.command(args)) {
            Ok(host) => panic!("{args:?} serves on {}", host.address),
            Err(refused) => {
                assert!(!refused.stderr.contains("panicked"), "{args:?}: {}", refused.stderr);
                refused.stderr
            }
        }
    }

    fn serves(&self, args: &[&str]) -> Host {
        Host::launch(&mut self.command(args)).unwrap_or_else(|refused| panic!("{args:?}: {}", refused.stderr))
    }
}

fn said(output: Output) -> (String, String, bool) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// What the component did that answers a path.
fn did(host: &Host, path: &str) -> String {
    let (_, body) = ask("GET", &host.url(path), "", "", &[]);
    body["error"]["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_component_is_pushed_pulled_and_run_and_then_needs_no_registry() {
    let (registry, me) = (Registry::start(Access::Everybody), Somebody::new());
    let tag = registry.reference("acme/shop:1").to_string();
    me.file("app.wasm", &silent());
    let (pinned, _) = me.does(&["push", "app.wasm", &tag]);
    assert!(pinned.starts_with(&format!("oci://{}/acme/shop@sha256:", registry.address)), "{pinned}");
    assert_eq!(me.does(&["push", "app.wasm", &tag]).0, pinned, "the same file has the same digest");

    let you = Somebody::new();
    assert_eq!(you.does(&["pull", &tag]).0, pinned);
    assert_eq!(fs::read(you.path("shop.wasm")).unwrap(), silent());
    let refused = you.fails(&["pull", &pinned]);
    assert!(refused.contains("shop.wasm is there already") && refused.contains("--force"), "{refused}");
    you.does(&["pull", &pinned, "--force"]);
    you.does(&["pull", &pinned, "-o", "other.wasm"]);
    assert_eq!(fs::read(you.path("other.wasm")).unwrap(), silent());

    let them = Somebody::new();
    let refused = them.refuses(&["run", &pinned, "--offline"]);
    assert!(refused.contains("is not kept on this machine"), "{refused}");
    let host = them.serves(&["run", &pinned]);
    assert_eq!(did(&host, "/"), "no_response");
    assert!(host.log().contains("Fetched oci://"), "{}", host.log());
    drop(host);
    drop(registry);
    let host = them.serves(&["run", &pinned]);
    assert_eq!(did(&host, "/"), "no_response");
    assert!(!host.log().contains("Fetched"), "{}", host.log());
    drop(host);
    // What was changed on the disk is not run.
    let digest = Digest::of(&silent());
    let kept = them.path("fetched").join(format!("components/{}.wasm", digest.hex()));
    fs::write(kept, trapping()).unwrap();
    let refused = them.refuses(&["run", &pinned]);
    assert!(refused.contains("cannot be reached"), "{refused}");
}

#[test]
fn a_tag_is_refused_with_what_it_is_now_unless_it_is_allowed() {
    let (registry, me) = (Registry::start(Access::Everybody), Somebody::new());
    let tag = registry.reference("acme/shop:1").to_string();
    me.file("one.wasm", &silent());
    me.file("two.wasm", &trapping());
    let (one, _) = me.does(&["push", "one.wasm", &tag]);
    let refused = me.refuses(&["run", &tag]);
    assert!(refused.contains(&format!("nala-host run {one}")) && refused.contains("--allow-tag"), "{refused}");
    assert_eq!(did(&me.serves(&["run", &tag, "--allow-tag"]), "/"), "no_response");
    let (two, _) = me.does(&["push", "two.wasm", &tag]);
    assert_ne!(one, two);
    assert_eq!(did(&me.serves(&["run", &tag, "--allow-tag"]), "/"), "guest_trapped");
    assert_eq!(did(&me.serves(&["run", &one]), "/"), "no_response", "what is pinned stays");
    // A digest that is not there, and one that is of something else.
    let gone = registry.reference(&format!("acme/shop@{}", Digest::of(b"x"))).to_string();
    let refused = me.refuses(&["run", &gone]);
    assert!(refused.contains("is not there"), "{refused}");
    let refused = me.refuses(&["run", "oci://acme/shop:1"]);
    assert!(refused.contains("does not begin with a host"), "{refused}");
}

#[test]
fn what_is_wrong_with_a_push_or_a_pull_is_told() {
    let (registry, me) = (Registry::start(Access::Password), Somebody::new());
    let tag = registry.reference("acme/shop:1").to_string();
    me.file("app.wasm", &silent());
    me.file("text.wasm", b"hello");
    for args in [&["push", "app.wasm", &tag][..], &["pull", &tag]] {
        let refused = me.fails(args);
        assert!(refused.contains(&format!("docker login {}", registry.address)), "{refused}");
    }
    let with = |command: &mut Command| {
        let address = registry.address.to_string();
        let command = command.env("NALA_REGISTRY", address).env("NALA_REGISTRY_USER", "nala");
        said(command.env("NALA_REGISTRY_PASSWORD", "open sesame").output().unwrap())
    };
    let (pinned, err, succeeded) = with(&mut me.command(&["push", "app.wasm", &tag]));
    assert!(succeeded && !err.contains("sesame"), "{err}");
    // As `docker login` keeps it: `nala:open sesame` by base64.
    fs::create_dir(me.path(".docker")).unwrap();
    let auth = json!({ "auths": { registry.address.to_string(): { "auth": "bmFsYTpvcGVuIHNlc2FtZQ==" } } });
    me.file(".docker/config.json", auth.to_string().as_bytes());
    assert_eq!(me.does(&["pull", &tag]).0, pinned.trim());

    let at_digest = format!("{}@{}", tag, Digest::of(b"x"));
    for (args, why) in [
        (&["push", "text.wasm", &tag][..], "it is something else"),
        (&["push", "none.wasm", &tag], "none.wasm cannot be read"),
        (&["push", "app.wasm", &at_digest], "name a tag and no digest"),
        (&["push", "app.wasm", "oci://127.0.0.1:1/x:1"], "127.0.0.1:1 cannot be reached"),
        (&["push", "app.wasm", "ghcr.io/acme/shop"], "does not begin with oci://"),
        (&["pull", "oci://registry.invalid/x:1"], "there is no host registry.invalid"),
    ] {
        let refused = me.fails(args);
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
}

/// An address that has one file.
fn address_of(file: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", file.len());
            let _ = stream.write_all(&[head.as_bytes(), &file].concat());
        }
    });
    format!("http://{address}/app.wasm")
}

/// A manifest of three components that are elsewhere.
fn manifest(url: &str, digest: &Digest, registry: &Registry, pinned: &str) -> String {
    format!(
        "spin_manifest_version = 2\n[application]\nname = \"elsewhere\"\n\
         [[trigger.http]]\nroute = \"/url\"\ncomponent = {{ source = {{ url = \"{url}\", digest = \"{digest}\" }} }}\n\
         [[trigger.http]]\nroute = \"/package\"\ncomponent = \"package\"\n\
         [[trigger.http]]\nroute = \"/pinned\"\ncomponent = \"pinned\"\n\
         [component.package]\nsource = {{ registry = \"{}\", package = \"acme:shop\", version = \"1.0.0\" }}\n\
         [component.pinned]\nsource = \"{pinned}\"\n",
        registry.address
    )
}

#[test]
fn a_manifest_names_components_that_are_elsewhere() {
    let (registry, me) = (Registry::start(Access::Everybody), Somebody::new());
    me.file("one.wasm", &silent());
    me.file("two.wasm", &trapping());
    let tag = registry.reference("acme/shop:1.0.0").to_string();
    let (pinned, _) = me.does(&["push", "one.wasm", &registry.reference("acme/other:1").to_string()]);
    me.does(&["push", "two.wasm", &tag]);
    let url = address_of(silent());
    let text = manifest(&url, &Digest::of(&silent()), &registry, &pinned);
    me.file("spin.toml", text.as_bytes());

    let (checked, _) = me.does(&["check", "spin.toml"]);
    assert!(checked.contains("no errors"), "{checked}");
    let host = me.serves(&["up", "spin.toml"]);
    let each = |host: &Host| ["/url", "/package", "/pinned"].map(|path| did(host, path));
    assert_eq!(each(&host), ["no_response", "guest_trapped", "no_response"]);
    drop(host);
    // A version that is another now is what it was when it was fetched first.
    me.does(&["push", "one.wasm", &tag]);
    assert_eq!(each(&me.serves(&["up", "spin.toml", "--offline"]))[1], "guest_trapped");

    // While it is watched, what another manifest names is fetched, too.
    let (other, _) = me.does(&["push", "two.wasm", &registry.reference("acme/other:2").to_string()]);
    let host = me.serves(&["up", "spin.toml", "--watch"]);
    assert_eq!(did(&host, "/pinned"), "no_response");
    me.file("spin.toml", text.replace(&pinned, &other).as_bytes());
    eventually("the change is served", Duration::from_secs(60), || did(&host, "/pinned") == "guest_trapped");
    drop(host);

    // Each that cannot be had is told with its place.
    let you = Somebody::new();
    let wrong = manifest(&url, &Digest::of(b"x"), &registry, &pinned).replace("1.0.0", "9.0.0");
    you.file("spin.toml", wrong.as_bytes());
    let output = you.command(&["check", "spin.toml", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told: Vec<_> = report["diagnostics"].as_array().unwrap().iter().collect();
    assert_eq!(told.len(), 2, "{report}");
    assert!(told[0]["message"].as_str().unwrap().contains("somebody changed it"), "{report}");
    assert!(told[1]["message"].as_str().unwrap().contains("acme/shop:9.0.0 is not there"), "{report}");
    assert_eq!((told[0]["line"].as_u64(), told[1]["line"].as_u64()), (Some(6), Some(14)), "{report}");
    let refused = you.refuses(&["up", "spin.toml"]);
    assert!(refused.contains("spin.toml:") && refused.contains("cannot be fetched"), "{refused}");
    you.file("spin.toml", wrong.replace(&pinned, &tag).as_bytes());
    let refused = you.refuses(&["up", "spin.toml"]);
    assert!(refused.contains("a tag can be moved"), "{refused}");
}

/// Asks the operator's API for a component of a tenant.
fn put(host: &Host, key: &str, oci: &str) -> (u16, String, Value) {
    let url = format!("http://{}/v1/tenants/acme/components", host.admin);
    let (status, body) = ask("POST", &url, key, "application/json", json!({ "oci": oci }).to_string().as_bytes());
    (status, body["error"]["code"].as_str().unwrap_or_default().to_owned(), body)
}

/// A host whose admins may pull from some registries, an admin's key and a tenant's.
fn deploys(me: &Somebody, registries: &str, trusted: Option<&Path>) -> (Host, String, String) {
    let ((admin, admin_stored), (acme, acme_stored)) = (key(), key());
    let config = format!(
        "[admin]\nkeys = [{admin_stored:?}]\nregistries = {registries}\n[tenant.acme]\nkeys = \
         [{acme_stored:?}]\nlimits.component_bytes = \"20KiB\"\n"
    );
    me.file("nala.toml", config.as_bytes());
    me.file("here.wasm", &silent());
    let manifest = "spin_manifest_version = 2\n[application]\nname = \"here\"\n[[trigger.http]]\nroute = \
                    \"/here\"\ncomponent = { source = \"here.wasm\" }\n";
    me.file("spin.toml", manifest.as_bytes());
    let state = me.path("state");
    let args = ["up", "spin.toml", "--config", "nala.toml", "--state-dir", state.to_str().unwrap()];
    let mut command = me.command(&args);
    // As it is read when the host starts.
    command.envs(trusted.map(|file| ("SSL_CERT_FILE", file)));
    let host = Host::launch(&mut command).unwrap_or_else(|refused| panic!("{}", refused.stderr));
    (host, admin, acme)
}

#[test]
fn an_operator_deploys_out_of_the_registries_that_are_listed() {
    let (registry, me) = (Registry::start(Access::Everybody), Somebody::new());
    let push = |name: &str, bytes: &[u8]| {
        me.file("pushed.wasm", bytes);
        me.does(&["push", "pushed.wasm", &registry.reference(&format!("acme/{name}:1")).to_string()]).0
    };
    let pinned = push("shop", &trapping());
    let large = push("large", &handler("", 30_000));
    let (host, admin, acme) = deploys(&me, &format!("[\"{}\"]", registry.address), None);

    let (status, _, body) = put(&host, &admin, pinned.strip_prefix("oci://").unwrap());
    assert_eq!((status, body["digest"].as_str()), (201, Some(Digest::of(&trapping()).as_str())), "{body}");
    let spin_toml = "spin_manifest_version = 2\n[application]\nname = \"shop\"\n[[trigger.http]]\nroute = \
                     \"/shop\"\ncomponent = \"shop\"\n[component.shop]\nsource = \"shop.wasm\"\n";
    let deployed = json!({ "spin_toml": spin_toml, "components": { "shop": body["digest"] } }).to_string();
    let url = format!("http://{}/v1/tenants/acme/apps/shop", host.admin);
    let (status, body) = ask("PUT", &url, &admin, "application/json", deployed.as_bytes());
    assert_eq!(status, 201, "{body}");
    let (_, body) = ask("GET", &host.url("/shop"), &acme, "", &[]);
    assert_eq!(body["error"]["code"], "guest_trapped");

    let (other, digest) = (Registry::start(Access::Everybody), Digest::of(b"x"));
    for (oci, expected) in [
        (registry.reference("acme/shop:1").to_string(), (400, "not_pinned")),
        ("shop".to_owned(), (400, "invalid_request")),
        (other.reference(&format!("acme/shop@{digest}")).to_string(), (403, "registry_not_listed")),
        (format!("169.254.169.254/x@{digest}"), (403, "registry_not_listed")),
        (registry.reference(&format!("acme/shop@{digest}")).to_string(), (422, "not_in_registry")),
        (large, (413, "component_too_large")),
    ] {
        let (status, code, body) = put(&host, &admin, &oci);
        assert_eq!((status, code.as_str()), expected, "{oci}: {body}");
    }
    assert_eq!(put(&host, &acme, &pinned).0, 401, "a tenant's key is no admin's");
    drop(registry);
    assert_eq!(put(&host, &admin, &pinned).1, "registry_failed");
}

#[test]
fn an_operator_who_lists_no_registry_pulls_from_none() {
    let (registry, me) = (Registry::start(Access::Everybody), Somebody::new());
    me.file("pushed.wasm", &silent());
    let (pinned, _) = me.does(&["push", "pushed.wasm", &registry.reference("acme/shop:1").to_string()]);
    let (host, admin, _) = deploys(&me, "[]", None);
    let (status, code, body) = put(&host, &admin, &pinned);
    assert_eq!((status, code.as_str()), (403, "registry_not_listed"), "{body}");
    drop(host);
    me.file("nala.toml", b"[admin]\nregistries = [\"https://ghcr.io\"]\n");
    let refused = me.refuses(&["up", "--config", "nala.toml"]);
    assert!(refused.contains("nala.toml:2:") && refused.contains("is no registry"), "{refused}");
}

pub(crate) fn pem(kind: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

#[test]
fn over_tls_a_registry_has_to_be_trusted_and_is_from_behind_the_walls() {
    let me = Somebody::new();
    // Leads to this machine, and is not known to: so TLS is spoken.
    let made = rcgen::generate_simple_self_signed(["0.0.0.0".to_owned()]).unwrap();
    let certificate = me.file("certificate.pem", pem("CERTIFICATE", made.cert.der()).as_bytes());
    let key = me.file("key.pem", pem("PRIVATE KEY", made.signing_key.serialized_der()).as_bytes());
    let registry = Registry::start(Access::Tls { certificate: certificate.clone(), key });
    let listed = format!("0.0.0.0:{}", registry.address.port());
    let tag = format!("oci://{listed}/acme/shop:1");
    me.file("app.wasm", &silent());
    let refused = me.fails(&["push", "app.wasm", &tag]);
    assert!(refused.contains("certificate"), "{refused}");
    let trusting = |args: &[&str]| said(me.command(args).env("SSL_CERT_FILE", &certificate).output().unwrap());
    let (pinned, err, succeeded) = trusting(&["push", "app.wasm", &tag]);
    assert!(succeeded, "{err}");
    let (pulled, err, succeeded) = trusting(&["pull", &tag]);
    assert!(succeeded, "{err}");
    assert_eq!(pulled, pinned);
    let (host, admin, _) = deploys(&me, &format!("[\"{listed}\"]"), Some(&certificate));
    let (status, _, body) = put(&host, &admin, pinned.trim());
    assert_eq!((status, body["digest"].as_str()), (201, Some(Digest::of(&silent()).as_str())), "{body}");
}

/// Bytes of a folder's files would be a second place where a secret could be; none is.
#[test]
fn what_is_kept_has_no_credentials() {
    let (registry, me) = (Registry::start(Access::Password), Somebody::new());
    me.file("app.wasm", &silent());
    let tag = registry.reference("acme/shop:1").to_string();
    for args in [&["push", "app.wasm", &tag][..], &["pull", &tag]] {
        let mut command = me.command(args);
        command.env("NALA_REGISTRY", registry.address.to_string()).env("NALA_REGISTRY_USER", "nala");
        let output = command.env("NALA_REGISTRY_PASSWORD", "open sesame").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut files = 0;
    let mut look = |folder: &Path| {
        for entry in fs::read_dir(folder).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("sesame"));
            files += 1;
        }
    };
    look(&me.path("fetched/components"));
    look(&me.path("fetched/manifests"));
    assert_eq!(files, 2);
}
