//! An application: what its manifest describes, what that needs, and how it is loaded.

pub(crate) mod code;
pub(crate) mod composing;
pub(crate) mod dotenv;
mod hosts;
pub(crate) mod limits;
mod loading;
mod own;
mod remote;
pub(crate) mod servers;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use nala_engine::{ModelPool, PooledModel};
use nala_manifest::source::Source;
use nala_manifest::{Application, Clock, Component, Diagnostic, HttpTrigger, variables};
use nala_wasm::{Asset, Capabilities, Clocks, Files, MAX_COMPONENT_BYTES, Telemetry};
use tempfile::TempDir;

use self::code::Code;
use self::composing::{Composing, Joined};
use self::dotenv::DotEnv;
pub(crate) use self::hosts::is_left_out;
pub(crate) use self::loading::Loading;
pub(crate) use self::own::{Binder, Members};
pub(crate) use self::remote::Remote;
use self::servers::{Logins, Making, Named, Programs};
use crate::answer::Routing;
use crate::args::FetchArgs;
use crate::component;
use crate::console::{Console, Help};
use crate::credentials::Home;
use crate::serve::{Prepared, Preparing};
use crate::services::Services;
use crate::tenancy::Opened;
use crate::wall::{self, Connect, Needs, Sensors};

/// What is chosen on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    /// The profile of the manifest.
    pub(crate) profile: Option<String>,
    /// Values of variables, which come before those of the environment.
    pub(crate) variables: Vec<(String, String)>,
    /// How components that are elsewhere are fetched.
    pub(crate) fetch: FetchArgs,
}

impl Chosen {
    /// The value that a variable is given.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.variables.iter().rev().find(|(of, _)| of == name);
        given.map(|(_, value)| value.into()).or_else(|| variables::from_environment(name))
    }
}

/// Where components are that were composed with their dependencies.
struct Composed {
    files: BTreeMap<Joined, PathBuf>,
    /// They are gone with it.
    _folder: TempDir,
}

/// A manifest that was read, and what it stands for here and now.
pub(crate) struct Described {
    manifest: PathBuf,
    /// Whose it is.
    home: Home,
    application: Application,
    code: Code,
    /// Components that were composed with their dependencies already.
    composed: Option<Composed>,
    /// Values of all variables.
    values: variables::Values,
    /// Where copies of files are made, where there are any.
    scratch: Option<Arc<TempDir>>,
    /// Who starts the MCP servers that are programs.
    programs: Programs,
}

impl Described {
    /// Reads a manifest, finds the values of its variables, and fetches the components that
    /// are elsewhere.
    ///
    /// # Errors
    /// It is wrong, a variable has no value, it asks for what this host does not do, or a
    /// component cannot be fetched.
    pub(crate) fn read(manifest: &Path, chosen: &Chosen, console: Console) -> anyhow::Result<Self> {
        let application = Application::read(manifest, chosen.profile.as_deref())?;
        for warning in &application.warnings {
            console.warn(&warning.to_string());
        }
        let dotenv = DotEnv::beside(manifest)?;
        let values = application.values(&|name| chosen.variable(name).or_else(|| dotenv.variable(name)))?;
        // Made now: later the process may write to what it names then.
        let has_files = application.components.values().any(|component| !component.files.is_empty());
        let scratch =
            has_files.then(tempfile::tempdir).transpose().context("there is no folder for copies of files")?;
        let scratch = scratch.map(Arc::new);
        let (fetched, missing) = Remote::new(&chosen.fetch, console)?.fetch_all(&application);
        refuse(missing)?;
        let (manifest, code) = (manifest.to_owned(), Code::Named(fetched));
        let programs = Programs::default();
        Ok(Self { manifest, home: Home::Started, application, code, composed: None, values, scratch, programs })
    }

    /// Starts whoever starts MCP servers that are programs, if there are any. To be called
    /// before the right to do so is given up.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn start_keeper(&self) -> anyhow::Result<()> {
        self.programs.start_keeper(&self.application, &self.values)
    }

    /// The MCP servers whose tools components may call.
    fn servers(&self, services: &Services, console: Console) -> anyhow::Result<BTreeMap<String, Arc<Named>>> {
        let (application, values, programs, home) = (&self.application, &self.values, &self.programs, &self.home);
        Making { application, values, services, programs, home, console }.all()
    }

    /// Reads the manifest of an application that was sent, whose code is in `sources`.
    ///
    /// # Errors
    /// It is wrong, a variable has no value, a component was not sent, or it asks for
    /// what this host does not do.
    pub(crate) fn deployed(text: &str, name: &str, sources: BTreeMap<String, PathBuf>) -> anyhow::Result<Self> {
        let application = Application::parse(text, Path::new("."), None)?;
        // The environment is the host's own.
        let values = application.values(&|_| None)?;
        for (id, component) in &application.components {
            if !component.files.is_empty() {
                let what = format!("{}: files are not taken in with an application", component.place);
                return Err(Help { what, help: "build them into the component".to_owned() }.into());
            }
            if component.clock == Some(Clock::Exact) {
                let what = format!("{}: an application that is sent has coarse clocks", component.place);
                return Err(Help { what, help: "leave out `clock`".to_owned() }.into());
            }
            if let Source::Builtin(builtin) = component.source {
                let what = format!("{}: an application that is sent has components of its own", component.place);
                return Err(Help { what, help: format!("send a component in place of `{}`", builtin.name()) }.into());
            }
            if !sources.contains_key(id) {
                let what = format!("the component `{id}` of the manifest was not sent");
                return Err(Help { what, help: format!("put it, and name its digest under \"{id}\"") }.into());
            }
        }
        servers::refuse_of_machine(&application)?;
        if let Some(id) = sources.keys().find(|id| application.component(id).is_none()) {
            let what = format!("a component `{id}` was sent, and the manifest has none of that name");
            return Err(Help { what, help: "leave it out, or describe it in the manifest".to_owned() }.into());
        }
        let dependencies = application.components.values().flat_map(|component| component.dependencies.values());
        let middleware = application.triggers.iter().flat_map(|trigger| &trigger.middleware);
        refuse(dependencies.chain(middleware).filter_map(composing::refused))?;
        let (manifest, code) = (name.into(), Code::Sent(sources));
        let home = Home::Deployed(name.to_owned());
        let programs = Programs::default();
        Ok(Self { manifest, home, application, code, composed: None, values, scratch: None, programs })
    }

    /// What loads it, bit by bit.
    pub(crate) fn loading<'a>(&'a self, preparing: &'a Preparing) -> Loading<'a> {
        Loading::new(preparing, self)
    }

    /// Who answers which paths, with the models that are served already and are all that
    /// there are.
    ///
    /// # Errors
    /// Whatever keeps it from being served.
    pub(crate) fn routing(&self, preparing: &Preparing, models: &ModelPool) -> anyhow::Result<Routing> {
        Loading::new(preparing, self).routing(models)
    }

    /// What it was read as.
    pub(crate) fn application(&self) -> &Application {
        &self.application
    }

    /// What it needs of the machine.
    pub(crate) fn needs(&self, opened: &Opened) -> Needs {
        let components = self.application.components.values();
        let sources = components.clone().filter_map(|component| component.source.path().map(Path::to_owned));
        let dependencies = components.clone().flat_map(composing::files);
        let dependencies = dependencies.chain(composing::files_of_middleware(&self.application)).map(Path::to_owned);
        let fetched = self.code.fetched().map(Path::to_owned);
        // Copies of files are made out of the manifest's folder.
        let folder = self.scratch.as_ref().map(|_| wall::folder(&self.manifest).to_owned());
        let reads_machine = components.clone().any(|component| component.telemetry);
        let reaches_out = components.clone().any(|component| !component.allowed_outbound_hosts.is_empty())
            || servers::reach_out(&self.application);
        // Tokens are exchanged for new ones.
        let logins = servers::need_logins(&self.application).then(|| Logins::beside(opened.state.as_deref()).0);
        Needs {
            read: sources.chain(dependencies).chain(fetched).chain(folder).collect(),
            write: self.scratch.iter().map(|scratch| scratch.path().to_owned()).chain(logins).collect(),
            reach: if reaches_out { Connect::Any } else { opened.reach() },
            sensors: if reads_machine { Sensors::Read } else { Sensors::GivenUp },
        }
    }

    /// Loads all of it, and the models that it needs.
    ///
    /// # Errors
    /// Whatever keeps it from being served.
    pub(crate) fn load(&self, preparing: &Preparing) -> anyhow::Result<Prepared> {
        Loading::new(preparing, self).prepare()
    }

    /// Where a component's code is.
    fn source<'a>(&'a self, id: &str, component: &'a Component) -> anyhow::Result<&'a Path> {
        let file = self.code.of(id, component);
        file.with_context(|| format!("the source of component `{id}` is no file"))
    }

    /// A component of which dependencies are a part, composed. `build` is the command
    /// that makes the component itself.
    fn composed(&self, id: &str, component: &Component, build: Option<&str>) -> anyhow::Result<Vec<u8>> {
        if let Some(composed) = self.composed_before(&Joined::Component(id.to_owned())) {
            return composed;
        }
        self.compose_now(id, component, build, MAX_COMPONENT_BYTES)
    }

    fn compose_now(&self, id: &str, component: &Component, build: Option<&str>, most: u64) -> anyhow::Result<Vec<u8>> {
        let main = component::read(self.source(id, component)?, build)?;
        let composing = Composing::new(&self.application, &self.code);
        composing.compose(id, component, &main, most).map_err(|found| anyhow::Error::new(*found))
    }

    fn composed_before(&self, joined: &Joined) -> Option<anyhow::Result<Vec<u8>>> {
        let path = self.composed.as_ref()?.files.get(joined)?;
        Some(component::read(path, None))
    }

    /// The component of a trigger with the trigger's middleware before it. `build` is the
    /// command that makes the component itself.
    fn behind(&self, trigger: &HttpTrigger, component: &Component, build: Option<&str>) -> anyhow::Result<Vec<u8>> {
        if let Some(composed) = self.composed_before(&Joined::Trigger(trigger.id.clone())) {
            return composed;
        }
        self.put_behind(trigger, component, build, MAX_COMPONENT_BYTES)
    }

    fn put_behind(
        &self,
        trigger: &HttpTrigger,
        component: &Component,
        build: Option<&str>,
        most: u64,
    ) -> anyhow::Result<Vec<u8>> {
        let id = trigger.answer.component().unwrap_or_default();
        let main = match component.dependencies.is_empty() {
            true => component::read(self.source(id, component)?, build)?,
            false => self.compose_now(id, component, build, most)?,
        };
        let composing = Composing::new(&self.application, &self.code);
        composing.behind(trigger, component, &main, most).map_err(|found| anyhow::Error::new(*found))
    }

    /// Composes something, of at most so many bytes.
    ///
    /// # Errors
    /// Whatever keeps it from being composed.
    pub(crate) fn compose(&self, joined: &Joined, most: u64) -> anyhow::Result<Vec<u8>> {
        let component = |id: &str| self.application.component(id).with_context(|| format!("there is no {joined}"));
        match joined {
            Joined::Component(id) => self.compose_now(id, component(id)?, None, most),
            Joined::Trigger(id) => {
                let trigger = self.application.triggers.iter().find(|trigger| trigger.id == *id);
                let trigger = trigger.with_context(|| format!("there is no {joined}"))?;
                self.put_behind(trigger, component(trigger.answer.component().unwrap_or_default())?, None, most)
            }
        }
    }

    /// All that is composed.
    pub(crate) fn joined(&self) -> impl Iterator<Item = Joined> {
        let components = self.application.components.iter().filter(|(_, one)| !one.dependencies.is_empty());
        let triggers = self.application.triggers.iter().filter(|trigger| !trigger.middleware.is_empty());
        let components = components.map(|(id, _)| Joined::Component(id.clone()));
        components.chain(triggers.map(|trigger| Joined::Trigger(trigger.id.clone())))
    }

    /// Takes what was composed elsewhere, out of a folder that goes with it.
    pub(crate) fn take_composed(&mut self, folder: TempDir, files: BTreeMap<Joined, PathBuf>) {
        self.composed = Some(Composed { files, _folder: folder });
    }

    /// Where the code of each component is that was sent.
    pub(crate) fn sent(&self) -> BTreeMap<String, PathBuf> {
        self.code.sent().cloned().unwrap_or_default()
    }

    /// Where the code is of all that is compiled.
    pub(crate) fn to_compile(&self) -> Vec<PathBuf> {
        let mut files = self.sent();
        let composed: Vec<(&Joined, &PathBuf)> = self.composed.iter().flat_map(|composed| &composed.files).collect();
        for (joined, _) in &composed {
            // It is not served without its dependencies.
            if let Joined::Component(id) = joined {
                files.remove(id);
            }
        }
        files.into_values().chain(composed.into_iter().map(|(_, path)| path.clone())).collect()
    }

    /// What a component is granted beside models.
    fn capabilities(&self, component: &Component) -> anyhow::Result<Capabilities> {
        let environment = component.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let variables = self.values.seen_by(component).into_iter();
        let variables = variables.map(|(name, value)| (name, value.expose().into()));
        let assets = component.files.expand()?.into_iter();
        let assets = assets.map(|file| Asset { host: file.host, guest: file.guest.to_string() });
        Ok(Capabilities {
            environment: environment.collect(),
            variables: variables.collect(),
            files: Files {
                assets: assets.collect(),
                scratch: self.scratch.as_ref().map(|scratch| scratch.path().to_owned()),
                ..Files::default()
            },
            clocks: match component.clock {
                Some(Clock::Exact) => Clocks::Exact,
                Some(Clock::Coarse) => Clocks::TENANT,
                // What somebody else has deployed is not to learn from times what others do.
                None if self.code.sent().is_some() => Clocks::TENANT,
                None => Clocks::default(),
            },
            ..Capabilities::default()
        })
    }

    /// What a component may read of the machine, and of the models that are served or that
    /// it is granted.
    fn telemetry(&self, component: &Component, served: &ModelPool, granted: &[PooledModel]) -> Telemetry {
        match (component.telemetry, self.code.sent()) {
            (false, _) => Telemetry::Denied,
            (true, None) => Telemetry::Operator(served.models().collect()),
            // Which models others have is none of a tenant's business.
            (true, Some(_)) => Telemetry::Deployed(granted.to_vec()),
        }
    }

    /// Whether a component asks to read what the machine does.
    pub(crate) fn asks_for_telemetry(&self) -> Option<&Component> {
        self.application.components.values().find(|component| component.telemetry)
    }

    /// Who gives a component what each tenant has of its own.
    fn binder(
        &self,
        id: &str,
        component: &Component,
        services: &Services,
        members: &Arc<Members>,
    ) -> anyhow::Result<Binder> {
        let allowed = hosts::allowed(component, &self.values)?;
        if !allowed.is_empty() {
            services.open_gate()?;
        }
        Ok(Binder {
            services: services.clone(),
            application: self.application.name.clone(),
            home: self.home.clone(),
            component: id.to_owned(),
            stores: component.key_value_stores.clone(),
            allowed,
            members: Arc::downgrade(members),
        })
    }
}

/// Fails with the first of what was found.
fn refuse(found: impl IntoIterator<Item = Diagnostic>) -> anyhow::Result<()> {
    found.into_iter().next().map_or(Ok(()), |found| Err(found.into()))
}
