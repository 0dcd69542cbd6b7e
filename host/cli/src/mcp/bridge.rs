//! Between standard input and output and the component, which speaks HTTP.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use nala_wasm::App;
use serde_json::json;
use tokio::task::{AbortHandle, JoinSet};

use super::message::{Events, Message};

/// What is answered at a time.
const MOST_REQUESTS: usize = 256;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// The header that names the version of the protocol.
const VERSION: &str = "mcp-protocol-version";

/// Takes messages to the component and its answers back.
pub(super) struct Bridge {
    inner: Arc<Inner>,
    /// What is being answered.
    running: JoinSet<()>,
    /// How a request of it is ended, by its id.
    requests: BTreeMap<String, AbortHandle>,
}

struct Inner {
    app: App,
    /// The session of a client that has one.
    session: Mutex<Option<String>>,
}

impl Bridge {
    pub(super) fn new(app: App) -> Self {
        let inner = Arc::new(Inner { app, session: Mutex::default() });
        Self { inner, running: JoinSet::new(), requests: BTreeMap::new() }
    }

    /// Has a message answered. A session begins before anything else of it is read; all
    /// other messages are answered at a time.
    pub(super) async fn take(&mut self, line: &[u8]) {
        let message = Message::read(line);
        if let Some(request) = &message.cancels {
            if let Some(request) = self.requests.remove(request) {
                request.abort();
            }
            return;
        }
        let inner = Arc::clone(&self.inner);
        let body = Bytes::copy_from_slice(line);
        if message.method.as_deref() == Some("initialize") {
            return inner.answer(&message, body).await;
        }
        while self.running.try_join_next().is_some() {}
        // A client that reads nothing is not read from either.
        while self.running.len() >= MOST_REQUESTS {
            self.running.join_next().await;
        }
        self.requests.retain(|_, request| !request.is_finished());
        let id = message.id.clone().filter(|_| message.method.is_some());
        let task = self.running.spawn(async move { inner.answer(&message, body).await });
        self.requests.extend(id.map(|id| (id, task)));
    }

    /// Tells a client of a message that was not read.
    pub(super) fn refuse(&self, why: &str) {
        let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": why } });
        write(error.to_string().as_bytes());
    }

    /// Waits for what is being answered.
    pub(super) async fn finish(mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

impl Inner {
    /// Asks the component, and writes what it says.
    async fn answer(&self, message: &Message, body: Bytes) {
        if let Err(why) = self.pass(message, body).await {
            let id = message.id.as_ref().filter(|_| message.method.is_some());
            match id.and_then(|id| serde_json::from_str::<serde_json::Value>(id).ok()) {
                Some(id) => {
                    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": why } });
                    write(error.to_string().as_bytes());
                }
                None => tracing::warn!(error = why, "a message came to nothing"),
            }
        }
    }

    async fn pass(&self, message: &Message, body: Bytes) -> Result<(), String> {
        let mut request = Request::post("http://localhost/mcp").header("content-type", "application/json");
        if let Some(version) = &message.version {
            request = request.header(VERSION, version);
        } else if let Some(session) = &*self.session.lock().unwrap_or_else(PoisonError::into_inner) {
            request = request.header(SESSION, session);
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let response = self.app.handle(request).await.map_err(|error| error.to_string())?;
        let (head, mut body) = response.into_parts();
        if let Some(session) = head.headers.get(SESSION).and_then(|session| session.to_str().ok()) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.to_owned());
        }
        let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let mut events = Events::default();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| error.to_string())?;
                if let Ok(part) = frame.into_data() {
                    events.take(&part).iter().for_each(|message| write(message));
                }
            }
            return Ok(());
        }
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        match kind.starts_with("application/json") {
            true => write(&body),
            false if head.status == StatusCode::ACCEPTED => {}
            false => return Err(String::from_utf8_lossy(&body).into_owned()),
        }
        Ok(())
    }
}

/// Writes a message as a line. A client that is gone is noticed when its input ends.
fn write(message: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(message).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "standard output cannot be written");
    }
}
