//! What is asked of the operator's API.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use nala_deploy::{AppName, Digest, TenantName, VersionNumber};
use nala_http::HostError;
use serde::Deserialize;

/// What all of it stands under.
const BASE: &str = "/v1/";

/// Something that is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `GET /v1/usage`
    Usage,
    /// `GET /v1/tenants`
    Tenants,
    /// `GET /v1/tenants/T/apps`
    List(TenantName),
    /// `POST /v1/tenants/T/components`, with a component or what names one
    Put(TenantName),
    /// `PUT /v1/tenants/T/apps/A`
    Deploy(TenantName, AppName),
    /// `GET /v1/tenants/T/apps/A`
    Inspect(TenantName, AppName),
    /// `POST /v1/tenants/T/apps/A/rollback`
    RollBack(TenantName, AppName),
    /// `DELETE /v1/tenants/T/apps/A`
    Remove(TenantName, AppName),
}

impl Asked {
    /// Reads a request's line. None: it is not for this API.
    pub(super) fn of(method: &Method, uri: &Uri) -> Option<Result<Self, HostError>> {
        let path = uri.path().strip_prefix(BASE)?;
        let parts: Vec<&str> = path.split('/').collect();
        Some(Self::read(method, &parts))
    }

    fn read(method: &Method, parts: &[&str]) -> Result<Self, HostError> {
        let (get, post) = (method == Method::GET || method == Method::HEAD, method == Method::POST);
        match parts {
            ["usage"] if get => Ok(Self::Usage),
            ["tenants"] if get => Ok(Self::Tenants),
            ["tenants", of, "apps"] if get => Ok(Self::List(tenant(of)?)),
            ["tenants", of, "components"] if post => Ok(Self::Put(tenant(of)?)),
            ["tenants", of, "apps", name] if method == Method::PUT => Ok(Self::Deploy(tenant(of)?, app(name)?)),
            ["tenants", of, "apps", name] if get => Ok(Self::Inspect(tenant(of)?, app(name)?)),
            ["tenants", of, "apps", name] if method == Method::DELETE => Ok(Self::Remove(tenant(of)?, app(name)?)),
            ["tenants", of, "apps", name, "rollback"] if post => Ok(Self::RollBack(tenant(of)?, app(name)?)),
            ["usage" | "tenants"]
            | ["tenants", _, "apps" | "components"]
            | ["tenants", _, "apps", _]
            | ["tenants", _, "apps", _, "rollback"] => {
                let text = "This path is asked with another method; see docs/deploying.md.";
                Err(HostError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text))
            }
            _ => {
                let text = "There is nothing under this path; see docs/deploying.md.";
                Err(HostError::new(StatusCode::NOT_FOUND, "not_found", text))
            }
        }
    }

    /// Whose things it is about.
    pub(super) fn tenant(&self) -> Option<&TenantName> {
        match self {
            Self::Usage | Self::Tenants => None,
            Self::List(tenant)
            | Self::Put(tenant)
            | Self::Deploy(tenant, _)
            | Self::Inspect(tenant, _)
            | Self::RollBack(tenant, _)
            | Self::Remove(tenant, _) => Some(tenant),
        }
    }
}

fn tenant(text: &str) -> Result<TenantName, HostError> {
    text.parse().map_err(|error| HostError::new(StatusCode::BAD_REQUEST, "invalid_name", format!("{error}.")))
}

fn app(text: &str) -> Result<AppName, HostError> {
    text.parse().map_err(|error| HostError::new(StatusCode::BAD_REQUEST, "invalid_name", format!("{error}.")))
}

const JSON: &str = "application/json";

/// The type of a body, without its parameters.
fn kind(parts: &Parts) -> &str {
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// Whether a body is a document, and not what it is about.
pub(super) fn is_json(parts: &Parts) -> bool {
    kind(parts) == JSON
}

/// An application that was sent.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) spin_toml: String,
    pub(super) components: BTreeMap<String, Uploaded>,
    pub(super) note: String,
}

/// A component of it.
#[derive(Debug)]
pub(super) enum Uploaded {
    /// One that was put before.
    Digest(Digest),
    /// One that was sent with it.
    Bytes(Vec<u8>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    spin_toml: String,
    components: BTreeMap<String, String>,
    #[serde(default)]
    note: String,
}

impl Upload {
    /// Reads what was sent: a component alone, which answers all paths, or a manifest
    /// as JSON.
    pub(super) fn of(parts: &Parts, app: &AppName, body: &[u8]) -> Result<Self, HostError> {
        match kind(parts) {
            "application/wasm" => Ok(Self::alone(app, body)),
            JSON => Self::described(body),
            other => {
                let text = format!(
                    "The content type is `{}`: send a component as application/wasm, or a manifest with digests as \
                     application/json.",
                    other.escape_debug()
                );
                Err(HostError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", text))
            }
        }
    }

    fn alone(app: &AppName, body: &[u8]) -> Self {
        // An application's name is a word of `a-z0-9-`, and so needs no escapes.
        let spin_toml = format!(
            "spin_manifest_version = 2\n[application]\nname = \"{app}\"\n[[trigger.http]]\nroute = \
             \"/...\"\ncomponent = \"app\"\n[component.app]\nsource = \"app.wasm\"\n"
        );
        let components = BTreeMap::from([("app".to_owned(), Uploaded::Bytes(body.to_vec()))]);
        Self { spin_toml, components, note: String::new() }
    }

    fn described(body: &[u8]) -> Result<Self, HostError> {
        let wrong = |text: String| HostError::new(StatusCode::BAD_REQUEST, "invalid_request", text);
        let document: Document = serde_json::from_slice(body).map_err(|error| {
            let shape = r#"{"spin_toml": "…", "components": {"ID": "sha256:…"}, "note": "…"}"#;
            wrong(format!("The body is no description of an application: {error}; it looks like {shape}."))
        })?;
        let mut components = BTreeMap::new();
        for (id, digest) in document.components {
            let digest = digest.parse().map_err(|error| wrong(format!("The component {id:?}: {error}.")))?;
            components.insert(id, Uploaded::Digest(digest));
        }
        Ok(Self { spin_toml: document.spin_toml, components, note: document.note })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RollBack {
    to: VersionNumber,
}

/// The version to go back to.
pub(super) fn version(body: &[u8]) -> Result<VersionNumber, HostError> {
    let asked: RollBack = serde_json::from_slice(body).map_err(|error| {
        let text = format!("The body names no version: {error}; it looks like {{\"to\": 3}}.");
        HostError::new(StatusCode::BAD_REQUEST, "invalid_request", text)
    })?;
    Ok(asked.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str) -> Option<Result<Asked, u16>> {
        let asked = Asked::of(&method, &path.parse().unwrap())?;
        Some(asked.map_err(|error| error.status().as_u16()))
    }

    #[test]
    fn paths_and_methods_say_what_is_asked() {
        let (acme, shop) = ("acme".parse().unwrap(), "shop".parse().unwrap());
        assert_eq!(asked(Method::GET, "/metrics"), None);
        assert_eq!(asked(Method::GET, "/v1/usage"), Some(Ok(Asked::Usage)));
        assert_eq!(asked(Method::PUT, "/v1/tenants/acme/apps/shop"), Some(Ok(Asked::Deploy(acme, shop))));
        assert_eq!(asked(Method::PATCH, "/v1/tenants/acme/apps/shop"), Some(Err(405)));
        assert_eq!(asked(Method::GET, "/v1/tenants/acme/apps/shop/x"), Some(Err(404)));
        for name in ["..", "%2e%2e", "A", "a_b", ""] {
            assert_eq!(asked(Method::PUT, &format!("/v1/tenants/{name}/apps/shop")), Some(Err(400)), "{name}");
        }
    }
}
