//! The operator's API, on the operator's listener, for those with an admin key.

mod answers;
mod asked;
mod pulls;

use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use nala_class::Door;
use nala_deploy::{AppName, Component, Manifest, TenantName, Version};
use nala_http::{AdminHandler, Handler, HostError, RequestBody, ResponseBody};
use nala_tenant::{ClassName, Rejected, Tenant, Totals, json_lines};

use self::answers::{inspected, json, listed, problem};
use self::asked::{Asked, Upload};
pub(crate) use self::pulls::Registries;
use super::compose::Bounds;
use super::{Deployments, compile_time, limits};
use crate::application::Described;
use crate::classes::Classes;
use crate::tenancy::{AdminKeys, Tenancy, bearer};

/// In which the host in front tells a class's process who asks: the public part of a key.
const OPERATOR: HeaderName = HeaderName::from_static("x-nala-operator");

/// Who may manage the host.
pub(crate) enum Gate {
    /// Those with one of these keys.
    Keys(AdminKeys),
    /// The host in front of this one, which nobody else reaches: it has seen the key, and
    /// keeps it to itself.
    Front,
}

/// Probes and metrics for everybody who reaches the listener, the rest for those with
/// a key.
pub(crate) struct Managed {
    open: AdminHandler,
    gate: Gate,
    registries: Option<Registries>,
    tenancy: Tenancy,
    /// Who is asked about tenants that are not served in this process.
    classes: Classes,
    deployments: std::sync::OnceLock<Arc<Deployments>>,
}

impl Managed {
    pub(crate) fn new(
        open: AdminHandler,
        gate: Gate,
        registries: Option<Registries>,
        tenancy: Tenancy,
        classes: Classes,
    ) -> Self {
        Self { open, gate, registries, tenancy, classes, deployments: std::sync::OnceLock::new() }
    }

    /// From now on applications can be deployed.
    pub(crate) fn manage(&self, deployments: Arc<Deployments>) {
        let _second = self.deployments.set(deployments);
    }

    /// Who asks: the public part of their key.
    fn authorised(&self, parts: &Parts) -> Result<String, HostError> {
        let keys = match &self.gate {
            Gate::Keys(keys) => keys,
            Gate::Front => {
                let by = parts.headers.get(OPERATOR).and_then(|value| value.to_str().ok());
                return Ok(by.unwrap_or_default().to_owned());
            }
        };
        if keys.is_empty() {
            let text = "Nobody may manage this host: declare a key under [admin] in its nala.toml.";
            return Err(HostError::new(StatusCode::FORBIDDEN, "no_admin_key", text));
        }
        let refused = |code: &'static str, text: &str| HostError::new(StatusCode::UNAUTHORIZED, code, text);
        let value = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some(key) = bearer(value) else {
            return Err(refused("missing_admin_key", "Send an admin key as `Authorization: Bearer nala_…`."));
        };
        match keys.check(key, SystemTime::now()) {
            // `nala_ID_SECRET`: the ID is public.
            Ok(()) => Ok(key.split('_').nth(1).unwrap_or_default().to_owned()),
            Err(Rejected::Expired) => Err(refused("expired_admin_key", "This admin key has expired.")),
            Err(Rejected::Unknown) => Err(refused("invalid_admin_key", "This admin key is not known.")),
        }
    }
}

impl Managed {
    fn deployments(&self) -> Result<Arc<Deployments>, HostError> {
        self.deployments.get().cloned().ok_or_else(|| {
            let text = "Applications can be deployed when the host has started, has tenants (--config) and a folder \
                        for what is kept (--state-dir).";
            HostError::new(StatusCode::SERVICE_UNAVAILABLE, "not_managed", text)
        })
    }

    /// Has the process of a class answer what is asked of one of its tenants. It is told
    /// who asks, and neither the key nor what registries are shown.
    async fn forward(
        &self,
        class: &ClassName,
        asked: &Asked,
        mut parts: Parts,
        body: RequestBody,
        by: &str,
    ) -> Result<Response<ResponseBody>, HostError> {
        parts.headers.remove(AUTHORIZATION);
        parts.headers.remove(OPERATOR);
        if let Ok(by) = HeaderValue::from_str(by) {
            parts.headers.insert(OPERATOR, by);
        }
        if let Asked::Put(name) = asked
            && asked::is_json(&parts)
        {
            let most = limits(&*tenant(&*self.deployments()?, name)?).component_bytes;
            let component = pulls::named(self.registries.as_ref(), &gather(body, 1 << 20).await?, most).await?;
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/wasm"));
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(component.len()));
            let request = Request::from_parts(parts, Full::new(component));
            return self.classes.forward(class, Door::Operator, request).await;
        }
        self.classes.forward(class, Door::Operator, Request::from_parts(parts, body)).await
    }

    /// Probes and metrics, with what the processes of classes say of themselves.
    async fn probed(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            _ if self.classes.is_empty() || !is_read => self.open.handle(request).await,
            "/readyz" => {
                // A class that is away keeps nobody else from being served.
                let phase = self.open.phase().as_str();
                let status = self.open.handle(request).await?.status();
                json(status, &serde_json::json!({ "status": phase, "classes": self.classes.phases().await }))
            }
            "/metrics" => Ok(AdminHandler::answer(self.classes.metrics(&self.open.exposition()?).await)),
            _ => self.open.handle(request).await,
        }
    }
}

impl Handler for Managed {
    async fn handle(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, HostError> {
        let Some(asked) = Asked::of(request.method(), request.uri()) else {
            return self.probed(request).await;
        };
        let (parts, body) = request.into_parts();
        let by = self.authorised(&parts)?;
        if let Ok(asked) = &asked
            && let Some(tenant) = asked.tenant()
            && let Some(class) = self.tenancy.class_of(tenant.as_str())
        {
            return self.forward(&class, asked, parts, body, &by).await;
        }
        let deployments = self.deployments()?;
        let asked = asked?;
        if asked == Asked::Usage && !self.classes.is_empty() {
            let totals = deployments.directory.totals();
            return Ok(usage(&self.classes.add_usage(totals, &self.tenancy).await?));
        }
        let most = match asked.tenant() {
            Some(name) => limits(&*tenant(&deployments, name)?).component_bytes,
            None => 0,
        };
        let body = match parts.method {
            Method::GET | Method::HEAD => bytes::Bytes::new(),
            // What is larger than a component is nothing that could be deployed.
            _ => gather(body, most.max(1 << 20)).await?,
        };
        let body = match asked {
            Asked::Put(_) if asked::is_json(&parts) => pulls::named(self.registries.as_ref(), &body, most).await?,
            _ => body,
        };
        // The disk is waited for, and the compiler.
        let work = tokio::task::spawn_blocking(move || answer(&deployments, asked, &parts, &body, &by));
        work.await.unwrap_or_else(|_ended| {
            Err(HostError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "The work ended unexpectedly."))
        })
    }
}

/// What was used, a line for each component of each tenant.
fn usage(totals: &Totals) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(json_lines(totals, 0, unix_s())));
    let lines = http::HeaderValue::from_static("application/jsonl");
    response.headers_mut().insert(http::header::CONTENT_TYPE, lines);
    response
}

async fn gather(body: RequestBody, most: u64) -> Result<bytes::Bytes, HostError> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let whole = http_body_util::Limited::new(body, most).collect().await;
    whole.map(http_body_util::Collected::to_bytes).map_err(|error| {
        HostError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "component_too_large",
            format!("The body cannot be taken: {error}."),
        )
    })
}

fn tenant(deployments: &Deployments, name: &TenantName) -> Result<Arc<Tenant>, HostError> {
    deployments.directory.tenant(name.as_str()).ok_or_else(|| {
        let text = format!("There is no tenant {name}: declare it in nala.toml.");
        HostError::new(StatusCode::NOT_FOUND, "unknown_tenant", text)
    })
}

fn answer(
    deployments: &Deployments,
    asked: Asked,
    parts: &Parts,
    body: &[u8],
    by: &str,
) -> Result<Response<ResponseBody>, HostError> {
    match asked {
        Asked::Usage => Ok(usage(&deployments.directory.totals())),
        Asked::Tenants => {
            let names: Vec<String> =
                deployments.directory.tenants().iter().map(|tenant| tenant.name().as_str().to_owned()).collect();
            json(StatusCode::OK, &serde_json::json!({ "tenants": names }))
        }
        Asked::List(tenant) => json(StatusCode::OK, &listed(&deployments.state.list(Some(&tenant)))),
        Asked::Put(name) => {
            let tenant = tenant(deployments, &name)?;
            let digest = deployments.state.put_component(&name, body, &limits(&tenant)).map_err(problem)?;
            json(StatusCode::CREATED, &serde_json::json!({ "digest": digest.to_string(), "bytes": body.len() }))
        }
        Asked::Deploy(name, app) => {
            let tenant = tenant(deployments, &name)?;
            let version = deployments.deploy(&tenant, &name, &app, Upload::of(parts, &app, body)?, by)?;
            json(StatusCode::CREATED, &inspected(&version))
        }
        Asked::Inspect(tenant, app) => {
            let history = deployments.state.history(&tenant, &app).map_err(problem)?;
            json(StatusCode::OK, &answers::history(&history))
        }
        Asked::RollBack(name, app) => {
            let to = asked::version(body)?;
            let version = deployments.state.inspect(&name, &app, to).map_err(problem)?;
            let loaded = deployments.load(&app, &version).map_err(unloadable)?;
            deployments.fits(name.as_str(), &app, &loaded).map_err(conflict)?;
            let version = deployments.state.roll_back(&name, &app, to).map_err(problem)?;
            deployments.serve(name.as_str(), &app, Some(loaded)).map_err(conflict)?;
            json(StatusCode::OK, &inspected(&version))
        }
        Asked::Remove(name, app) => {
            deployments.state.remove(&name, &app).map_err(problem)?;
            deployments.serve(name.as_str(), &app, None).map_err(conflict)?;
            json(StatusCode::OK, &serde_json::json!({ "removed": app.as_str() }))
        }
    }
}

impl Deployments {
    /// Takes an application in. It is loaded before it is kept, so that what is kept
    /// could be served.
    fn deploy(
        &self,
        tenant: &Tenant,
        name: &TenantName,
        app: &AppName,
        upload: Upload,
        by: &str,
    ) -> Result<Version, HostError> {
        let limits = limits(tenant);
        let mut components = std::collections::BTreeMap::new();
        for (id, source) in upload.components {
            let digest = match source {
                asked::Uploaded::Digest(digest) => digest,
                asked::Uploaded::Bytes(bytes) => self.state.put_component(name, &*bytes, &limits).map_err(problem)?,
            };
            components.insert(id, Component { digest, facts: serde_json::Value::Null });
        }
        let mut manifest = Manifest {
            spin_toml: upload.spin_toml,
            components,
            note: upload.note,
            by: by.to_owned(),
            created_unix_s: unix_s(),
        };
        let digests = manifest.components.iter().map(|(id, component)| (id, &component.digest));
        let sources = self.sources(digests).map_err(problem)?;
        let bounds = Bounds { cpu: compile_time(tenant), component_bytes: limits.component_bytes };
        let described = self.describe(app, &manifest.spin_toml, sources, bounds).map_err(unloadable)?;
        refuse_telemetry(&described, tenant).map_err(unloadable)?;
        let mut loading = described.loading(&self.preparing);
        for (id, component) in &mut manifest.components {
            component.facts = loading.facts(id).map_err(unloadable)?;
        }
        let loaded = self.finish(loading).map_err(unloadable)?;
        // Before it is written: a version that cannot be routed must not be the current one.
        self.fits(name.as_str(), app, &loaded).map_err(conflict)?;
        let version = self.state.deploy(name, app, &manifest, &limits).map_err(problem)?;
        self.serve(name.as_str(), app, Some(loaded)).map_err(conflict)?;
        tracing::info!(tenant = name.as_str(), app = app.as_str(), version = version.number.get(), "deployed");
        Ok(version)
    }
}

/// Refuses an application that asks for what its tenant may not have. One that was deployed
/// before is told so when it asks.
fn refuse_telemetry(described: &Described, tenant: &Tenant) -> anyhow::Result<()> {
    match described.asks_for_telemetry() {
        Some(component) if !tenant.may_read_machine() => Err(anyhow::anyhow!(
            "{}: this tenant may not read what the machine does: leave out `telemetry`, unless the operator writes \
                 `telemetry = true` under [tenant.{}] in nala.toml",
            component.place,
            tenant.name()
        )),
        _ => Ok(()),
    }
}

/// Now, in seconds since 1970.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// What was sent cannot be served.
fn unloadable(error: anyhow::Error) -> HostError {
    HostError::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot_be_served", format!("{error:#}"))
}

fn conflict(error: anyhow::Error) -> HostError {
    HostError::new(StatusCode::CONFLICT, "route_taken", format!("{error:#}"))
}
