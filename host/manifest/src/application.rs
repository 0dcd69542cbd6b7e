//! The typed application, and the rules that make one out of TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Spanned, Value};

use crate::diagnostic::{Error, Source};
use crate::routes::{Route, RouteTable};
use crate::{file, quantity, raw, refused, renderers};

/// An application: components and the routes they answer.
#[derive(Debug, Clone)]
pub struct Application {
    /// The application's name.
    pub name: String,
    /// Its version, as written.
    pub version: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Vec<String>,
    /// The HTTP triggers, in the order of the file. Each names a component of
    /// `components`; no two match the same paths.
    pub triggers: Vec<HttpTrigger>,
    /// The components, by their identifiers.
    pub components: BTreeMap<String, Component>,
    /// What is probably not meant, for a log.
    pub warnings: Vec<Warning>,
}

/// `[[trigger.http]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTrigger {
    /// Which paths.
    pub route: Route,
    /// The identifier of the component that answers.
    pub component: String,
}

/// `[component.ID]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Where it is described, for errors of loading it: "spin.toml:12:
    /// component `id` cannot be served".
    pub place: String,
    /// The Wasm file, joined to the manifest's folder.
    pub source: PathBuf,
    /// One line about it.
    pub description: Option<String>,
    /// The models it may use, by name.
    pub ai_models: Vec<String>,
    /// How it is built.
    pub build: Option<Build>,
    /// The identifier of the component that answers `nala:chat` for this one
    /// (`tool.nala.renderer`).
    pub renderer: Option<String>,
    /// Its limits; where it sets none, the application's.
    pub limits: Limits,
}

/// `[component.ID.build]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The commands for a shell, in order.
    pub commands: Vec<String>,
    /// Where they run, joined to the manifest's folder.
    pub workdir: PathBuf,
    /// Glob patterns of what they depend on, from `workdir`.
    pub watch: Vec<String>,
}

/// `[….tool.nala.limits]`, for one request. None means the host's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Memory, in bytes (`memory = "64MiB"`).
    pub memory_bytes: Option<u64>,
    /// Time on the CPU (`cpu = "1s"`).
    pub cpu: Option<Duration>,
    /// Time that passes (`wall = "120s"`).
    pub wall: Option<Duration>,
}

/// Something that is allowed and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// No trigger and no `renderer` names the component.
    UnusedComponent(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnusedComponent(id) => {
                write!(f, "component `{id}` is never used: name it in a [[trigger.http]] or remove it")
            }
        }
    }
}

impl Application {
    /// Reads the manifest at `path`; its folder is where sources start from.
    ///
    /// # Errors
    /// [`Error::Read`], and those of [`Application::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = file::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = path.display().to_string();
        Self::parse_named(Source { file: &file, text: &text }, folder)
    }

    /// Reads the manifest in `text`, whose relative paths start at `base_dir`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place of what is malformed, unknown, not
    /// supported or contradictory, and what to write instead.
    pub fn parse(text: &str, base_dir: &Path) -> Result<Self, Error> {
        let file = "spin.toml";
        Self::parse_named(Source { file, text }, base_dir)
    }

    /// The component `id`.
    #[must_use]
    pub fn component(&self, id: &str) -> Option<&Component> {
        self.components.get(id)
    }

    /// A table that finds the identifier of the component that answers a path.
    #[must_use]
    pub fn routes(&self) -> RouteTable<String> {
        let mut table = RouteTable::new();
        for trigger in &self.triggers {
            // Doubles were refused when the manifest was read.
            let _ = table.insert(trigger.route.clone(), trigger.component.clone());
        }
        table
    }

    fn parse_named(source: Source<'_>, base_dir: &Path) -> Result<Self, Error> {
        check_version(source)?;
        let manifest: raw::Manifest = toml::from_str(source.text).map_err(|error| {
            source.error(
                error.span().unwrap_or(0..0),
                error.message().trim(),
                "see https://spinframework.dev/manifest-reference for the keys of version 2",
            )
        })?;
        refused::check(&manifest, source)?;

        let application_span = manifest.application.span();
        let application = manifest.application.into_inner();
        if application.name.get_ref().trim().is_empty() {
            return Err(source.error(
                application.name.span(),
                "the application's `name` is empty",
                "write a name for logs and messages, such as \"my-app\"",
            ));
        }
        let defaults = match application.tool.nala {
            Some(tool) => limits(tool.limits, Limits::default(), source)?,
            None => Limits::default(),
        };

        let ids: BTreeSet<String> = manifest.component.keys().map(|id| id.get_ref().clone()).collect();
        let triggers = triggers(manifest.trigger.http, &ids, source)?;
        if triggers.is_empty() {
            return Err(source.error(
                application_span,
                "the application has no HTTP trigger, so nothing could reach it",
                "add [[trigger.http]] with a `route`, such as \"/...\", and a `component`",
            ));
        }
        let mut used: BTreeSet<String> = triggers.iter().map(|t| t.component.clone()).collect();
        let mut components = BTreeMap::new();
        for id in manifest.component.keys() {
            check_id(id, source)?;
        }
        renderers::check(&manifest.component, source)?;
        for (id, raw) in manifest.component {
            let component = component(&id, raw, defaults, base_dir, source)?;
            used.extend(component.renderer.clone());
            components.insert(id.into_inner(), component);
        }
        let warnings = ids.difference(&used).map(|id| Warning::UnusedComponent(id.clone())).collect();
        Ok(Self {
            name: application.name.into_inner(),
            version: application.version,
            description: application.description,
            authors: application.authors,
            triggers,
            components,
            warnings,
        })
    }
}

/// Looks at the version alone first: a manifest of another version has other
/// keys, and complaints about those would lead astray.
fn check_version(source: Source<'_>) -> Result<(), Error> {
    #[derive(serde::Deserialize)]
    struct Version {
        spin_manifest_version: Option<Spanned<Value>>,
    }
    let Ok(Version { spin_manifest_version: Some(version) }) = toml::from_str(source.text) else {
        // What is wrong is found again with the whole manifest.
        return Ok(());
    };
    if version.get_ref().as_integer() == Some(2) {
        return Ok(());
    }
    Err(source.error(
        version.span(),
        "only version 2 of the manifest is supported",
        "write `spin_manifest_version = 2`; \
         https://spinframework.dev/manifest-reference shows the format",
    ))
}

fn triggers(raw: Vec<raw::HttpTrigger>, ids: &BTreeSet<String>, source: Source<'_>) -> Result<Vec<HttpTrigger>, Error> {
    let mut table = RouteTable::new();
    let mut triggers = Vec::new();
    for raw in raw {
        if let Some(executor) = &raw.executor {
            match executor.get_ref() {
                raw::Executor::Spin | raw::Executor::Http => {}
                raw::Executor::Wagi => {
                    return Err(source.error(
                        executor.span(),
                        "the executor `wagi` is not supported",
                        "build the component for wasi:http and remove `executor`",
                    ));
                }
            }
        }
        let Value::String(text) = raw.route.get_ref() else {
            return Err(source.error(
                raw.route.span(),
                "`route` must be a string; private routes are not supported yet",
                "write a path, such as \"/chat\" or \"/...\"",
            ));
        };
        let route: Route = text
            .parse()
            .map_err(|error| source.error(raw.route.span(), format!("`{text}` is no route: {error}"), ""))?;
        let Value::String(component) = raw.component.get_ref() else {
            return Err(source.error(
                raw.component.span(),
                "a component inside of a trigger is not supported yet",
                "move it to a table [component.ID] and write `component = \"ID\"`",
            ));
        };
        renderers::check_known(component, raw.component.span(), ids, source)?;
        if let Err(other) = table.insert(route.clone(), ()) {
            return Err(source.error(
                raw.route.span(),
                format!("the route `{route}` matches the same paths as `{other}` before it"),
                "give each trigger a route of its own",
            ));
        }
        triggers.push(HttpTrigger { route, component: component.clone() });
    }
    Ok(triggers)
}

fn component(
    id: &Spanned<String>,
    raw: raw::Component,
    defaults: Limits,
    base_dir: &Path,
    source: Source<'_>,
) -> Result<Component, Error> {
    let path = match raw.source.get_ref() {
        Value::String(path) if !path.trim().is_empty() => base_dir.join(path),
        other => {
            let message = match other {
                Value::Table(table) if table.contains_key("url") => {
                    "a source with a `url` is not supported yet: use a path"
                }
                Value::Table(table) if table.contains_key("registry") => {
                    "a source from a registry is not supported yet: use a path"
                }
                _ => "`source` must be the path of a Wasm component",
            };
            return Err(source.error(
                raw.source.span(),
                message,
                "download the component and write `source = \"path/to/component.wasm\"`",
            ));
        }
    };
    let build = raw.build.map(|build| Build {
        commands: match build.command {
            raw::Commands::One(command) => vec![command],
            raw::Commands::Several(commands) => commands,
        },
        workdir: base_dir.join(build.workdir.unwrap_or_default()),
        watch: build.watch,
    });
    let (renderer, limits) = match raw.tool.nala {
        None => (None, defaults),
        Some(tool) => (tool.renderer, limits(tool.limits, defaults, source)?),
    };
    Ok(Component {
        place: format!("{}: component `{}` cannot be served", source.place(id.span()), id.get_ref()),
        source: path,
        description: raw.description,
        ai_models: raw.ai_models,
        build,
        renderer: renderer.map(Spanned::into_inner),
        limits,
    })
}

fn check_id(id: &Spanned<String>, source: Source<'_>) -> Result<(), Error> {
    let text = id.get_ref();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(allowed) {
        return Ok(());
    }
    Err(source.error(
        id.span(),
        format!("`{text}` cannot be the identifier of a component"),
        "use letters, digits, `-` and `_`, beginning with a letter",
    ))
}

fn limits(raw: raw::Limits, defaults: Limits, source: Source<'_>) -> Result<Limits, Error> {
    let size = |text: &Spanned<String>| {
        quantity::bytes(text.get_ref()).ok_or_else(|| {
            let message = format!("`{}` is no size", text.get_ref());
            source.error(text.span(), message, "write for example \"64MiB\"; zero is not allowed")
        })
    };
    let time = |text: &Spanned<String>| {
        quantity::duration(text.get_ref()).ok_or_else(|| {
            let message = format!("`{}` is no duration", text.get_ref());
            let help = "write for example \"500ms\", \"2s\" or \"1m\"; zero is not allowed";
            source.error(text.span(), message, help)
        })
    };
    Ok(Limits {
        memory_bytes: raw.memory.as_ref().map(size).transpose()?.or(defaults.memory_bytes),
        cpu: raw.cpu.as_ref().map(time).transpose()?.or(defaults.cpu),
        wall: raw.wall.as_ref().map(time).transpose()?.or(defaults.wall),
    })
}

#[cfg(test)]
#[path = "application_tests.rs"]
mod tests;
