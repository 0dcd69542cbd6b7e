//! Keys that Spin honours and this version of Nala does not. Ignoring one
//! would run an application otherwise than its author wrote it, so each is an
//! error wherever its value changes anything.

use toml::Value;

use crate::diagnostic::{Error, Source};
use crate::raw::{Component, HttpTrigger, Manifest, Unserved};

/// A refused key: its name and what to do without it.
struct Refused {
    key: &'static str,
    help: &'static str,
}

/// The one list of them, with a look at each key's value.
type Row<T> = (Refused, fn(&T) -> &Unserved);

const fn row<T>(key: &'static str, help: &'static str, value: fn(&T) -> &Unserved) -> Row<T> {
    (Refused { key, help }, value)
}

const ONLY_HTTP: &str = "only [[trigger.http]] is served: remove this trigger";

const IN_MANIFEST: &[Row<Manifest>] = &[
    row("variables", "remove it and write the values into the component", |m| &m.variables),
    row("application.trigger", "remove it: HTTP triggers need no settings of the application", |m| {
        &m.application.get_ref().trigger
    }),
    row("trigger.redis", ONLY_HTTP, |m| &m.trigger.redis),
    row("trigger.mqtt", ONLY_HTTP, |m| &m.trigger.mqtt),
    row("trigger.sqs", ONLY_HTTP, |m| &m.trigger.sqs),
    row("trigger.cron", ONLY_HTTP, |m| &m.trigger.cron),
    row("trigger.command", ONLY_HTTP, |m| &m.trigger.command),
];

const IN_TRIGGER: &[Row<HttpTrigger>] =
    &[row("components", "name the one component that answers with `component`", |t| &t.components)];

const IN_COMPONENT: &[Row<Component>] = &[
    row("allowed_http_hosts", "components cannot reach the network yet: write `allowed_outbound_hosts = []`", |c| {
        &c.allowed_http_hosts
    }),
    row(
        "allowed_outbound_hosts",
        "components cannot reach the network yet: write `allowed_outbound_hosts = []`",
        |c| &c.allowed_outbound_hosts,
    ),
    row("dependencies", "compose the component with its dependencies before, for example with `wac plug`", |c| {
        &c.dependencies
    }),
    row(
        "dependencies_inherit_configuration",
        "compose the component with its dependencies before, for example with `wac plug`",
        |c| &c.dependencies_inherit_configuration,
    ),
    row("environment", "remove it and write the values into the component", |c| &c.environment),
    row("exclude_files", "components have no files yet: remove it", |c| &c.exclude_files),
    row("files", "components have no files yet: embed them, for example with include_bytes!", |c| &c.files),
    row("key_value_stores", "there are no stores yet: write `key_value_stores = []`", |c| &c.key_value_stores),
    row("sqlite_databases", "there are no databases yet: write `sqlite_databases = []`", |c| &c.sqlite_databases),
    row("variables", "remove it and write the values into the component", |c| &c.variables),
];

/// Refuses what cannot be honoured anywhere in the manifest.
pub(crate) fn check(manifest: &Manifest, source: Source<'_>) -> Result<(), Error> {
    check_rows(IN_MANIFEST, manifest, source)?;
    for trigger in &manifest.trigger.http {
        check_rows(IN_TRIGGER, trigger, source)?;
    }
    for component in manifest.component.values() {
        check_rows(IN_COMPONENT, component, source)?;
    }
    Ok(())
}

fn check_rows<T>(rows: &[Row<T>], table: &T, source: Source<'_>) -> Result<(), Error> {
    for (refused, value) in rows {
        if let Some(value) = value(table)
            && changes_something(value.get_ref())
        {
            let message = format!("`{}` is not supported yet", refused.key);
            return Err(source.error(value.span(), message, refused.help));
        }
    }
    Ok(())
}

/// An empty list and a `false` say what is the case anyway.
fn changes_something(value: &Value) -> bool {
    match value {
        Value::Array(array) => !array.is_empty(),
        Value::Table(table) => !table.is_empty(),
        Value::Boolean(value) => *value,
        _ => true,
    }
}
