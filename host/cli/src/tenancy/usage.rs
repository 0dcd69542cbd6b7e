//! What a tenant has used and may use, told to itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use nala_http::{HostError, ResponseBody};
use nala_tenant::{Counter, Limit, Tenant, UNLIMITED};
use serde::Serialize;

/// Where a tenant reads it, with its key.
pub(crate) const USAGE_PATH: &str = "/.well-known/nala/usage";

/// A tenant's account, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    tenant: String,
    /// Since counting began, over all its components.
    used: BTreeMap<&'static str, u64>,
    /// By limit: what is held or left, and the limit.
    limits: BTreeMap<&'static str, Level>,
}

#[derive(Debug, Serialize)]
struct Level {
    /// None: there is no limit.
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<u64>,
    /// Of this minute, where there is a limit. Below zero it is owed.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<i64>,
}

impl Account {
    pub(crate) fn of(tenant: &Tenant) -> Self {
        let usage = tenant.usage();
        let used = Counter::all().map(|counter| (counter.name(), usage.get(counter))).collect();
        let limits = Limit::all().map(|limit| (limit.row().name, level(tenant, limit))).collect();
        Self { tenant: tenant.name().as_str().to_owned(), used, limits }
    }
}

fn level(tenant: &Tenant, limit: Limit) -> Level {
    match limit {
        Limit::Stock(stock) => {
            let quota = tenant.quota(stock);
            Level { limit: bounded(quota.limit()), held: Some(quota.used()), left: None }
        }
        Limit::Rate(rate) => {
            let bucket = tenant.rate(rate);
            let (limit, left) = (bounded(bucket.limit()), bucket.left().clamp(i64::MIN.into(), i64::MAX.into()));
            Level { limit, held: None, left: limit.and_then(|_| i64::try_from(left).ok()) }
        }
        Limit::Ceiling(ceiling) => Level { limit: bounded(tenant.ceiling(ceiling)), held: None, left: None },
    }
}

/// A limit, if it is one: the number for none is larger than what JSON's readers can hold.
fn bounded(limit: u64) -> Option<u64> {
    Some(limit).filter(|limit| *limit != UNLIMITED)
}

/// Answers a request for [`USAGE_PATH`].
pub(crate) fn answer(method: &Method, tenant: &Arc<Tenant>) -> Result<Response<ResponseBody>, HostError> {
    if method != Method::GET && method != Method::HEAD {
        let text = "A tenant's usage is read with GET.";
        return Err(HostError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text));
    }
    let json = serde_json::to_string(&Account::of(tenant)).map_err(|error| {
        HostError::new(StatusCode::INTERNAL_SERVER_ERROR, "usage_failed", format!("It cannot be written: {error}."))
    })?;
    let mut response = Response::new(ResponseBody::full(json));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
