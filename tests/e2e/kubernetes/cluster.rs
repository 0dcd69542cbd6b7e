//! An API server of a small cluster, which speaks as much of Kubernetes' protocol as its
//! tools need, by HTTP/1.1 with TLS or without.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// What is kept in the secret `db`, as the API has it.
pub(crate) const SECRET: &str = "aHVudGVyMg==";

/// What a request was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) what: String,
    pub(crate) authorization: Vec<String>,
}

struct State {
    token: String,
    replicas: u64,
    version: u64,
    seen: Vec<Seen>,
}

/// The server. It runs until the tests end.
pub(crate) struct Cluster {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
}

impl Cluster {
    /// With TLS, by an authority whose certificate is written to a file.
    pub(crate) fn secure(token: &str, ca_file: &Path) -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
        std::fs::write(ca_file, crate::registries::pem("CERTIFICATE", authority.der())).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        Self::start(token, Some(Arc::new(config)))
    }

    /// Without.
    pub(crate) fn plain(token: &str) -> Self {
        Self::start(token, None)
    }

    fn start(token: &str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = State { token: token.to_owned(), replicas: 2, version: 7, seen: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state, tls) = (stream.unwrap(), Arc::clone(&served), tls.clone());
                std::thread::spawn(move || match tls {
                    None => converse(stream, &state),
                    Some(tls) => converse(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream), &state),
                });
            }
        });
        Self { address, scheme, state }
    }

    /// By the name that its certificate has.
    pub(crate) fn origin(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.address.port())
    }

    /// Takes another token from now on.
    pub(crate) fn rotate(&self, token: &str) {
        self.state().token = token.to_owned();
    }

    /// What it was asked since it was last asked this.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    pub(crate) fn replicas(&self) -> u64 {
        self.state().replicas
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// A request as it came.
#[derive(Default)]
struct Asked {
    method: String,
    path: String,
    query: String,
    accept: String,
    content_type: String,
    authorization: Vec<String>,
    body: Vec<u8>,
}

/// Answers requests until the other side has no more, or breaks off.
fn converse(stream: impl Read + Write, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream) {
        let (status, body) = answer(&asked, &mut state.lock().unwrap());
        let body = match body {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let head = format!(
            "HTTP/1.1 {status} As It Is\r\ncontent-type: application/json\r\naudit-id: 1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let out = stream.get_mut();
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(body.as_bytes())).is_err() || out.flush().is_err()
        {
            return;
        }
    }
}

fn read(stream: &mut impl BufRead) -> Option<Asked> {
    let mut asked = Asked::default();
    let mut length = 0;
    let mut line = String::new();
    for n in 0.. {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        match (n, line.split_once(": ")) {
            (0, _) => {
                let mut parts = line.split(' ');
                asked.method = parts.next()?.to_owned();
                let target = parts.next()?;
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                (asked.path, asked.query) = (path.to_owned(), query.to_owned());
            }
            (_, Some((name, value))) => match name.to_lowercase().as_str() {
                "authorization" => asked.authorization.push(value.to_owned()),
                "accept" => asked.accept = value.to_owned(),
                "content-type" => asked.content_type = value.to_owned(),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            },
            (_, None) => break,
        }
    }
    asked.body = vec![0; length];
    stream.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

/// An object of the kind `Status`.
fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}),
    )
}

fn answer(asked: &Asked, state: &mut State) -> (u16, Value) {
    let what = format!("{} {}", asked.method, asked.path);
    state.seen.push(Seen { what: what.clone(), authorization: asked.authorization.clone() });
    if asked.authorization != [format!("Bearer {}", state.token)] {
        return status(401, "Unauthorized", "Unauthorized");
    }
    match what.as_str() {
        "GET /api/v1/namespaces/shop/pods" if asked.accept.contains("as=Table") => (200, pods(&asked.query)),
        "GET /api/v1/namespaces/shop/secrets/db" => {
            let meta = json!({"name": "db", "namespace": "shop"});
            (200, json!({"kind": "Secret", "apiVersion": "v1", "metadata": meta, "data": {"password": SECRET}}))
        }
        "GET /api/v1/namespaces/shop/events" => (
            200,
            json!({"kind": "EventList", "items": [
                {"type": "Warning", "reason": "FailedMount", "message": "no such secret", "count": 3,
                 "lastTimestamp": "2026-01-01T00:00:00Z"},
            ]}),
        ),
        "GET /api/v1/namespaces/shop/pods/web-1/log" => (200, Value::String("listening\n".to_owned())),
        "GET /apis/apps/v1/namespaces/shop/deployments/web/scale" => (200, scale(state)),
        "PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale" => patch(asked, state),
        "GET /api/v1/nodes" => {
            let message = "nodes is forbidden: User \"system:serviceaccount:nala:kubernetes\" cannot list resource \
                           \"nodes\" in API group \"\" at the cluster scope";
            status(403, "Forbidden", message)
        }
        _ => status(404, "NotFound", "the server could not find the requested resource"),
    }
}

/// Two pods, one at a time if that is asked for.
fn pods(query: &str) -> Value {
    let row =
        |name: &str| json!({"cells": [name, "1/1", "Running", "10.0.0.1"], "object": {"metadata": {"name": name}}});
    let is_one = query.contains("limit=1&") || query.ends_with("limit=1");
    let (rows, meta) = match (is_one, query.contains("continue=second")) {
        (true, false) => (vec![row("web-1")], json!({"continue": "second", "remainingItemCount": 1})),
        (true, true) => (vec![row("web-2")], json!({})),
        (false, _) => (vec![row("web-1"), row("web-2")], json!({})),
    };
    let columns: Vec<Value> = [("Name", 0), ("Ready", 0), ("Status", 0), ("IP", 1)]
        .map(|(name, priority)| json!({"name": name, "type": "string", "priority": priority}))
        .into();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": columns, "rows": rows})
}

fn scale(state: &State) -> Value {
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": state.version.to_string()},
        "spec": {"replicas": state.replicas}, "status": {"replicas": 2},
    })
}

fn patch(asked: &Asked, state: &mut State) -> (u16, Value) {
    if asked.content_type != "application/merge-patch+json" {
        return status(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
    }
    let patch: Value = serde_json::from_slice(&asked.body).unwrap();
    if patch["metadata"]["resourceVersion"].as_str() != Some(state.version.to_string().as_str()) {
        return status(409, "Conflict", "the object has been modified");
    }
    state.replicas = patch["spec"]["replicas"].as_u64().unwrap();
    state.version += 1;
    (200, scale(state))
}
