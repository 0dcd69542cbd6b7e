//! The manifest as TOML has it, with positions. No key is unknown here: what
//! Spin knows and Nala refuses is kept as it is, for `refused` to judge.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

/// A key that Nala cannot honour, as it stands.
pub(crate) type Unserved = Option<Spanned<Value>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Checked before anything else is read.
    #[serde(rename = "spin_manifest_version")]
    pub(crate) _version: Value,
    pub(crate) application: Spanned<Application>,
    pub(crate) variables: Unserved,
    #[serde(default)]
    pub(crate) trigger: Triggers,
    #[serde(default)]
    pub(crate) component: BTreeMap<Spanned<String>, Component>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Application {
    pub(crate) name: Spanned<String>,
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    pub(crate) trigger: Unserved,
    #[serde(default)]
    pub(crate) tool: Tool<ApplicationTool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Triggers {
    #[serde(default)]
    pub(crate) http: Vec<HttpTrigger>,
    pub(crate) redis: Unserved,
    pub(crate) mqtt: Unserved,
    pub(crate) sqs: Unserved,
    pub(crate) cron: Unserved,
    pub(crate) command: Unserved,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpTrigger {
    /// A name for Spin's own logs.
    #[serde(rename = "id")]
    pub(crate) _id: Option<String>,
    pub(crate) route: Spanned<Value>,
    pub(crate) component: Spanned<Value>,
    pub(crate) components: Unserved,
    pub(crate) executor: Option<Spanned<Executor>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Executor {
    Spin,
    Http,
    Wagi,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Component {
    pub(crate) source: Spanned<Value>,
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) ai_models: Vec<String>,
    pub(crate) build: Option<Build>,
    #[serde(default)]
    pub(crate) tool: Tool<ComponentTool>,
    /// These two speak to `spin build` only.
    #[serde(rename = "targets")]
    pub(crate) _targets: Option<Value>,
    #[serde(rename = "profile")]
    pub(crate) _profile: Option<Value>,

    pub(crate) allowed_http_hosts: Unserved,
    pub(crate) allowed_outbound_hosts: Unserved,
    pub(crate) dependencies: Unserved,
    pub(crate) dependencies_inherit_configuration: Unserved,
    pub(crate) environment: Unserved,
    pub(crate) exclude_files: Unserved,
    pub(crate) files: Unserved,
    pub(crate) key_value_stores: Unserved,
    pub(crate) sqlite_databases: Unserved,
    pub(crate) variables: Unserved,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    pub(crate) command: Commands,
    pub(crate) workdir: Option<String>,
    #[serde(default)]
    pub(crate) watch: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Commands {
    One(String),
    Several(Vec<String>),
}

/// The `tool` table. The tables of other programs are theirs to check.
#[derive(Deserialize)]
pub(crate) struct Tool<T> {
    pub(crate) nala: Option<T>,
}

impl<T> Default for Tool<T> {
    fn default() -> Self {
        Self { nala: None }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplicationTool {
    #[serde(default)]
    pub(crate) limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentTool {
    pub(crate) renderer: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) limits: Limits,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) memory: Option<Spanned<String>>,
    pub(crate) cpu: Option<Spanned<String>>,
    pub(crate) wall: Option<Spanned<String>>,
}
