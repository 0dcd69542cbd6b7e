//! The API server, as far as tools need it.

use serde_json::Value;
use url::Url;

use crate::settings::Settings;
use crate::trouble::{self, Fault};

/// What is asked for where a table is wanted; servers that have none give the list.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const JSON: &str = "application/json";
const ANY: &str = "*/*";

/// What is done with what is at a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Get,
    /// Changed by a merge patch (RFC 7386).
    Merge(Vec<u8>),
}

/// What is asked of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) doing: Doing,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether there was more of the body than is read.
    pub(crate) is_cut: bool,
}

/// A way to the server.
pub(crate) trait Server {
    /// Sends a request, following nothing.
    fn send(&self, request: &Request) -> Result<Reply, Fault>;
}

/// The API server, and what the operator permits of it.
pub(crate) struct Api<'a> {
    server: &'a dyn Server,
    pub(crate) settings: Settings,
}

/// Names and values of a query, which are encoded when they are sent.
pub(crate) type Query<'a> = [(&'a str, String)];

impl<'a> Api<'a> {
    pub(crate) fn new(server: &'a dyn Server, settings: Settings) -> Self {
        Self { server, settings }
    }

    /// An object.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn get(&self, path: &str, query: &Query<'_>) -> Result<Value, String> {
        json(&self.send(Doing::Get, path, query, JSON)?)
    }

    /// A list as a table.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn table(&self, path: &str, query: &Query<'_>) -> Result<Value, String> {
        json(&self.send(Doing::Get, path, query, TABLE)?)
    }

    /// A text, and whether there is more of it.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn text(&self, path: &str, query: &Query<'_>) -> Result<Reply, String> {
        self.send(Doing::Get, path, query, ANY)
    }

    /// Changes an object, and gives it as it is then.
    ///
    /// # Errors
    /// Why it was not changed, in words.
    pub(crate) fn merge(&self, path: &str, patch: &Value) -> Result<Value, String> {
        json(&self.send(Doing::Merge(patch.to_string().into_bytes()), path, &[], JSON)?)
    }

    fn send(&self, doing: Doing, path: &str, query: &Query<'_>, accept: &'static str) -> Result<Reply, String> {
        let api = &self.settings.api;
        let mut url = api.clone();
        url.set_path(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = Request { doing, url, accept };
        let reply = self.server.send(&request).map_err(|fault| fault.explain(api))?;
        match reply.status {
            200..300 => Ok(reply),
            code => Err(trouble::status(code, &reply.body, api)),
        }
    }
}

fn json(reply: &Reply) -> Result<Value, String> {
    if reply.is_cut {
        let most = reply.body.len();
        return Err(format!(
            "the answer of the API server has more than {most} bytes; ask for less, such as by `limit`"
        ));
    }
    serde_json::from_slice(&reply.body).map_err(|error| format!("the API server's answer cannot be read: {error}"))
}
