//! Credentials that the host adds to requests, with the tool for Kubernetes and with
//! guests that tell all that they see.

mod cluster;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nala_e2e::host::{Host, Refused};
use nala_e2e::keys::key;
use nala_e2e::metrics::eventually;
use nala_e2e::{guests, paths};
use serde_json::Value;
use tempfile::TempDir;

use self::cluster::{Cluster, SECRET};

/// An application beside a token as a pod has it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(token: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(this.path("account")).unwrap();
        fs::copy(guests::guest("components", "tool_kubernetes"), this.path("tool_kubernetes.wasm")).unwrap();
        for guest in ["caller", "capabilities"] {
            let wasm = guests::guest("host/wasm/guests", guest);
            fs::copy(wasm, this.path(&format!("{guest}.wasm"))).unwrap();
        }
        this.renew(token);
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exchanges the token as volumes of Kubernetes do: a link to a folder is replaced.
    fn renew(&self, token: &str) {
        let account = self.path("account");
        let number = fs::read_dir(&account).unwrap().count();
        let folder = account.join(format!("..{number}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("token"), token).unwrap();
        std::os::unix::fs::symlink(folder.file_name().unwrap(), account.join("..new")).unwrap();
        fs::rename(account.join("..new"), account.join("..data")).unwrap();
        if !account.join("token").exists() {
            std::os::unix::fs::symlink("..data/token", account.join("token")).unwrap();
        }
    }

    /// Writes the manifest: a caller of tools, the tool, a guest that is named for
    /// credentials, and one that is not.
    fn manifest(&self, origins: &[&str]) {
        let hosts = format!("{origins:?}");
        let api = origins[0];
        let text = format!(
            r#"
            spin_manifest_version = 2
            [application]
            name = "desk"
            [[trigger.http]]
            route = "/..."
            component = "caller"
            [[trigger.http]]
            route = "/named/..."
            component = "named"
            [[trigger.http]]
            route = "/stranger/..."
            component = "stranger"
            [component.caller]
            source = "caller.wasm"
            [component.caller.tool.nala]
            tools = ["kubernetes"]
            [component.kubernetes]
            source = "tool_kubernetes.wasm"
            allowed_outbound_hosts = {hosts}
            [component.kubernetes.environment]
            KUBERNETES_API = "{api}"
            KUBERNETES_NAMESPACES = "shop"
            KUBERNETES_CLUSTER = "read"
            KUBERNETES_SCALE = "1..5"
            [component.named]
            source = "capabilities.wasm"
            allowed_outbound_hosts = {hosts}
            [component.stranger]
            source = "capabilities.wasm"
            allowed_outbound_hosts = {hosts}
            "#
        );
        fs::write(self.path("spin.toml"), text).unwrap();
    }

    fn config(&self, text: &str) {
        fs::write(self.path("nala.toml"), text).unwrap();
    }

    fn up(&self, more: &[&str]) -> Result<Host, Refused> {
        let (manifest, config) = (self.path("spin.toml"), self.path("nala.toml"));
        let line = ["up".as_ref(), manifest.as_os_str(), "--config".as_ref(), config.as_os_str()];
        Host::try_start(line.into_iter().chain(more.iter().map(|argument| argument.as_ref())))
    }
}

fn get(host: &Host, path: &str, key: &str) -> (u16, String) {
    let request = ureq::get(host.url(path)).config().http_status_as_error(false).build();
    let request = if key.is_empty() { request } else { request.header("x-api-key", key) };
    let response = request.call().expect("the host answers");
    (response.status().as_u16(), response.into_body().read_to_string().unwrap())
}

/// What a tool answers, as its caller sees it.
fn called(host: &Host, tool: &str, arguments: &str) -> String {
    get(host, &format!("/call?{tool}&{}", arguments.replace('"', "%22").replace(' ', "%20")), "").1
}

/// A bearer token for a cluster, for the tool and the guest that is named.
fn credential(cluster: &Cluster, rest: &str) -> String {
    let origin = cluster.origin();
    format!(
        "[[egress.credentials]]\norigin = \"{origin}\"\ncomponents = [\"kubernetes\", \"named\"]\n\
         bearer_file = \"account/token\"\n{rest}\n"
    )
}

#[test]
fn a_model_looks_at_a_cluster_and_scales_and_nobody_sees_the_token() {
    let bench = Bench::new("t0ken-of-the-account\n");
    let cluster = Cluster::secure("t0ken-of-the-account", &bench.path("account/ca.crt"));
    let plain = Cluster::plain("t0ken-of-the-account");
    bench.manifest(&[&cluster.origin(), &plain.origin()]);
    bench.config(&(credential(&cluster, "ca_file = \"account/ca.crt\"") + &credential(&plain, "")));
    let host = bench.up(&[]).unwrap();

    let pods = called(&host, "list_resources", r#"{"kind": "pods", "limit": 1}"#);
    assert!(pods.contains(r#"[[\"web-1\",\"1/1\",\"Running\"]]"#) && pods.contains(r#"\"remaining\":1"#), "{pods}");
    let rest = called(&host, "list_resources", r#"{"kind": "pods", "limit": 1, "continue": "second"}"#);
    assert!(rest.contains("web-2") && !rest.contains("web-1") && !rest.contains("continue"), "{rest}");
    let secret = called(&host, "describe_resource", r#"{"kind": "secret", "name": "db"}"#);
    assert!(secret.contains(r#"\"keys\":[\"password\"]"#) && secret.contains("FailedMount"), "{secret}");
    assert!(!secret.contains(SECRET), "{secret}");
    assert!(called(&host, "read_logs", r#"{"pod": "web-1"}"#).contains("listening"));
    let scaled = called(&host, "scale_deployment", r#"{"name": "web", "replicas": 4}"#);
    assert!(scaled.contains(r#"\"before\":2,\"replicas\":4"#), "{scaled}");
    assert_eq!(cluster.replicas(), 4);
    for (tool, arguments, told) in [
        ("list_resources", r#"{"kind": "nodes"}"#, "nodes is forbidden"),
        ("describe_resource", r#"{"kind": "pod", "name": "none"}"#, "(404)"),
        ("list_resources", r#"{"kind": "pods", "namespace": "kube-system"}"#, "not granted"),
        ("scale_deployment", r#"{"name": "web", "replicas": 6}"#, "permits 1 to 5"),
    ] {
        let answer = called(&host, tool, arguments);
        assert!(answer.contains(told) && answer.contains("is-error: true"), "{answer}");
    }
    assert_eq!(cluster.replicas(), 4);
    let seen = cluster.seen();
    assert!(seen.iter().any(|seen| seen.what.starts_with("PATCH ")), "{seen:?}");
    for seen in seen {
        assert_eq!(seen.authorization, ["Bearer t0ken-of-the-account"], "{}", seen.what);
    }

    // Guests that tell all that they see: one whose requests are given a credential in
    // place of what it makes up, and one that is given none.
    let mut told = String::new();
    for (guest, origin, status) in [
        ("named", cluster.origin(), "200 "),
        ("named", plain.origin(), "200 "),
        ("stranger", plain.origin(), "401 "),
        // Not even who is trusted there is known to it.
        ("stranger", cluster.origin(), "TlsCertificateError"),
    ] {
        let answer = get(&host, &format!("/{guest}/seen?{origin}/api/v1/namespaces/shop/events"), "").1;
        assert!(answer.contains(status), "{guest} {origin}: {answer}");
        told += &answer;
    }
    let of_stranger = plain.seen().pop().unwrap();
    assert_eq!(of_stranger.authorization, ["Bearer made-up"]);
    let token = bench.path("account/token");
    for what in ["environment", "variables", "files?folders", &format!("whole?{}", token.display())] {
        told += &get(&host, &format!("/named/{what}"), "").1;
    }
    told += &(pods + &rest + &secret + &scaled + &host.log());
    assert!(!told.contains("t0ken") && !told.contains(SECRET), "{told}");

    // A token that is renewed, by a host behind its walls.
    bench.renew("r0tated");
    let refused = called(&host, "list_resources", r#"{"kind": "pods"}"#);
    assert!(refused.contains("does not know who asks (401)"), "{refused}");
    cluster.rotate("r0tated");
    let pods = called(&host, "list_resources", r#"{"kind": "pods"}"#);
    assert!(pods.contains("web-2"), "{pods}");
    // And one that is gone: the guest learns that, the operator why.
    bench.renew("two\nlines");
    let broken = called(&host, "list_resources", r#"{"kind": "pods"}"#);
    assert!(broken.contains("the host cannot use the credential"), "{broken}");
    assert!(host.log().contains("account/token has a line break"), "{}", host.log());
}

#[test]
fn a_credential_that_cannot_be_used_is_told_at_the_start() {
    let bench = Bench::new("t0ken");
    let cluster = Cluster::plain("t0ken");
    bench.manifest(&[&cluster.origin()]);
    let good = credential(&cluster, "");
    for (from, to, told) in [
        ("account/token", "account/none", "account/none cannot be read"),
        ("account/token", "account/empty", "account/empty is empty"),
        ("bearer_file = \"account/token\"", "bearer_env = \"NALA_TEST_NO_SUCH\"", "NALA_TEST_NO_SUCH is not set"),
        ("http://localhost", "http://cluster.example", "without TLS"),
        ("http://localhost", "http://a.spin.internal", "no credentials"),
        ("\"kubernetes\", \"named\"", "", "for no component"),
    ] {
        fs::write(bench.path("account/empty"), "\n").unwrap();
        bench.config(&good.replacen(from, to, 1));
        let refused = bench.up(&[]).err().unwrap_or_else(|| panic!("{to} is taken"));
        assert!(refused.stderr.contains(told), "{to}: {}", refused.stderr);
    }
    // What is named and not there is probably misspelt.
    bench.config(&good.replacen("\"named\"", "\"nmaed\"", 1));
    let host = bench.up(&[]).unwrap();
    assert!(host.log().contains("no component `nmaed`"), "{}", host.log());
}

#[test]
fn a_tenant_is_given_its_own_wherever_it_is_served() {
    let bench = Bench::new("t0ken");
    let cluster = Cluster::plain("t0ken");
    bench.manifest(&[&cluster.origin()]);
    let ((mine, mine_stored), (guest, guest_stored)) = (key(), key());
    bench.config(&format!(
        "[class.apart]\nprocess = \"own\"\n[tenant.mine]\nkeys = [{mine_stored:?}]\n\
         [tenant.guest]\nclass = \"apart\"\nkeys = [{guest_stored:?}]\n{}",
        credential(&cluster, "tenants = [\"guest\"]")
    ));
    let host = bench.up(&[]).unwrap();
    let path = format!("/named/fetch?{}/api/v1/namespaces/shop/events", cluster.origin());
    // By the process of the class, behind walls of its own.
    eventually("the class's process answers", Duration::from_secs(60), || get(&host, &path, &guest).0 != 503);
    let (status, answer) = get(&host, &path, &guest);
    assert!(status == 200 && answer.starts_with("200 "), "{status} {answer}");
    let (status, answer) = get(&host, &path, &mine);
    assert!(status == 200 && answer.starts_with("401 "), "{status} {answer}");
    bench.renew("r0tated");
    cluster.rotate("r0tated");
    assert!(get(&host, &path, &guest).1.starts_with("200 "));
}

#[test]
fn tools_are_tried_by_hand_with_the_operators_file() {
    let bench = Bench::new("t0ken");
    let cluster = Cluster::secure("t0ken", &bench.path("account/ca.crt"));
    bench.manifest(&[&cluster.origin()]);
    bench.config(&credential(&cluster, "ca_file = \"account/ca.crt\""));
    let call = |more: &[&str], folder: &Path| {
        let mut command = Command::new(paths::host_binary());
        command.args(["tool", "call", "list_resources", r#"{"kind": "pods"}"#, "--format", "json"]).args(more);
        command.current_dir(folder).output().unwrap()
    };
    let output = call(&["--config", "nala.toml"], bench.folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["structuredContent"]["rows"][0][0], "web-1", "{answer}");
    let without = call(&[], bench.folder.path());
    assert!(!without.status.success() && String::from_utf8_lossy(&without.stdout).contains("trusted"));
}
