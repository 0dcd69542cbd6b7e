//! Tools for a Kubernetes cluster: they list what is there, show one thing of it, read
//! logs, and scale deployments.
//!
//! What may be done is decided three times: by the cluster, for the account whose
//! credential the host adds to requests, and which this component never sees; by the
//! host, for the API server's origin; and by the operator's words in the component's
//! environment (`settings.rs` has them), without which nothing is read and nothing is changed.

mod api;
mod describe;
mod host;
mod kind;
mod list;
mod logs;
mod name;
mod scale;
mod secret;
mod settings;
mod trouble;

use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use api::{Api, Server};
use settings::Settings;

/// What is said of namespaces everywhere.
const NAMESPACE: &str = "Can be left out where this tool may look at one namespace only";

/// What is said of kinds everywhere.
const KIND: &str = "Such as pods, deployments, services, events, nodes; of a custom resource PLURAL.VERSION.GROUP, \
                    such as certificates.v1.cert-manager.io";

fn tools() -> Vec<Tool> {
    let mut scaling = Tool::new(
        "scale_deployment",
        "Sets how many replicas a deployment has, within what the operator permits. Answers what there were before.",
        described(scale::INPUT),
    )
    .titled("Scale a deployment")
    .answering(scale::OUTPUT);
    scaling.annotations.read_only = Some(false);
    // Fewer replicas end pods.
    scaling.annotations.destructive = Some(true);
    scaling.annotations.idempotent = Some(true);
    let mut all = vec![
        Tool::new(
            "list_resources",
            "Lists resources of one kind in a Kubernetes cluster as a table, as kubectl get does.",
            described(list::INPUT),
        )
        .titled("List resources")
        .answering(list::OUTPUT)
        .read_only(),
        Tool::new(
            "describe_resource",
            "Shows one resource of a Kubernetes cluster, with its events. Of secrets the keys only.",
            described(describe::INPUT),
        )
        .titled("Describe a resource")
        .answering(describe::OUTPUT)
        .read_only(),
        Tool::new("read_logs", "Reads the last lines that a container of a pod has logged.", described(logs::INPUT))
            .titled("Read logs")
            .answering(logs::OUTPUT)
            .read_only(),
        scaling,
    ];
    for tool in &mut all {
        tool.annotations.open_world = Some(true);
    }
    all
}

/// A schema with what is said of namespaces and kinds everywhere.
fn described(schema: &str) -> String {
    schema.replace("NAMESPACE", NAMESPACE).replace("KIND", KIND)
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    called(&host::Wasi, &|name| std::env::var(name).ok(), name, arguments)
}

fn called(
    server: &dyn Server,
    environment: &dyn Fn(&str) -> Option<String>,
    name: &str,
    arguments: &str,
) -> Result<Answer, Error> {
    match name {
        "list_resources" => run(server, environment, arguments, list::list),
        "describe_resource" => run(server, environment, arguments, describe::describe),
        "read_logs" => run(server, environment, arguments, logs::read),
        "scale_deployment" => run(server, environment, arguments, scale::scale),
        _ => Err(Error::UnknownTool(name.to_owned())),
    }
}

fn run<'a, A: Deserialize<'a>, T: Serialize>(
    server: &dyn Server,
    environment: &dyn Fn(&str) -> Option<String>,
    arguments: &'a str,
    work: impl FnOnce(&Api<'_>, A) -> Result<T, String>,
) -> Result<Answer, Error> {
    let asked = serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let done = Settings::read(environment).and_then(|settings| work(&Api::new(server, settings), asked));
    let done = done.and_then(|done| serde_json::to_string(&done).map_err(|error| error.to_string()));
    Ok(done.map_or_else(Answer::error, Answer::structured))
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests;
