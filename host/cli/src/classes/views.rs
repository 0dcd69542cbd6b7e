//! What the operator sees of all processes together.

use std::collections::BTreeMap;

use http::StatusCode;
use nala_class::{FetchError, Fetched, joined};
use nala_http::HostError;
use nala_tenant::{ClassName, Totals, read_json_lines};
use serde_json::Value;
use tokio::task::JoinSet;

use super::{Classes, RETRY_AFTER};
use crate::tenancy::Tenancy;

/// What a class's process says of itself at its probes, and nothing else that it says.
const PHASES: [&str; 3] = ["starting", "ready", "draining"];

impl Classes {
    /// The phase of each class: one of the probes' words, or `away` where there is no
    /// process, or none that answers.
    pub(crate) async fn phases(&self) -> Value {
        let answers = self.fetch_all("/readyz").await;
        let phase = |answer: &Result<Fetched, FetchError>| {
            let status: Value = answer.as_ref().ok().and_then(|fetched| serde_json::from_str(&fetched.text).ok())?;
            let word = status.get("status")?.as_str()?;
            PHASES.into_iter().find(|phase| *phase == word)
        };
        let phases = answers
            .iter()
            .map(|(class, answer)| (class.as_str().to_owned(), Value::from(phase(answer).unwrap_or("away"))));
        phases.collect::<serde_json::Map<_, _>>().into()
    }

    /// Metrics with those of all classes. One that does not answer is left out, as a
    /// process is that is not there.
    pub(crate) async fn metrics(&self, own: &str) -> String {
        let answers = self.fetch_all("/metrics").await;
        let good = answers.iter().filter_map(|(class, answer)| match answer {
            Ok(fetched) if fetched.status == StatusCode::OK => Some((class.as_str(), fetched.text.as_str())),
            _ => None,
        });
        joined(own, good)
    }

    /// Adds what the tenants of all classes have used.
    ///
    /// # Errors
    /// A class does not answer: what is told without it would be too little.
    pub(crate) async fn add_usage(&self, mut totals: Totals, tenancy: &Tenancy) -> Result<Totals, HostError> {
        for (class, answer) in self.fetch_all("/v1/usage").await {
            let used = match answer {
                Ok(fetched) if fetched.status == StatusCode::OK => read_json_lines(&fetched.text),
                Ok(fetched) => Err(format!("its process answered {}", fetched.status)),
                Err(error) => Err(error.to_string()),
            };
            let used = used.map_err(|why| {
                let text = format!("What the class {class} has used is not known at the moment: {why}.");
                HostError::new(StatusCode::SERVICE_UNAVAILABLE, "class_unavailable", text).retry_after(RETRY_AFTER)
            })?;
            for (tenant, component, usage) in used.iter() {
                // Nobody but the class's own tenants, whatever its process says.
                if tenancy.class_of(tenant.as_str()).is_none_or(|of| of != class) && tenancy.knows(tenant.as_str()) {
                    continue;
                }
                totals.add(tenant.clone(), component.clone(), *usage);
            }
        }
        Ok(totals)
    }

    /// Asks all processes at the same time.
    async fn fetch_all(&self, path: &'static str) -> BTreeMap<ClassName, Result<Fetched, FetchError>> {
        let mut asked = JoinSet::new();
        for (name, kept) in &*self.0 {
            let (name, process) = (name.clone(), kept.process.clone());
            asked.spawn(async move { (name, process.fetch(path).await) });
        }
        asked.join_all().await.into_iter().collect()
    }
}
