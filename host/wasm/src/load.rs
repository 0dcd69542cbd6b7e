//! From bytes to a component that is compiled, linked and ready to be
//! instantiated.

mod check;
mod imports;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nala_engine::PooledModel;
use nala_tenant::Tenant;
use thiserror::Error;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime_wasi_http::handler::ProxyPre;

pub use self::check::{Offer, Prospect, Role};

use crate::account::Account;
use crate::capabilities::{Capabilities, GrantError, Granted};
use crate::chat::renderer::Renderer;
use crate::engine::Runtime;
use crate::handler::App;
use crate::limits::{self, Limits};
use crate::llm::Models;
use crate::store::{Blueprint, StoreData};
use crate::telemetry::{Access, Telemetry};
use crate::tools::keyed::Keyed;
use crate::tools::provider::{Owning, Provider};
use crate::tools::toolbox::Toolbox;
use crate::{chat, clocks, files, key_value, llm, logging, nn, relay, spin_llm, telemetry, tools, variables};

/// The largest component that is loaded, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 256 << 20;

/// Where a component comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A file.
    File(&'a Path),
    /// Bytes that are at hand.
    Bytes(&'a [u8]),
}

/// What a component is given beside WASI.
#[derive(Clone, Default)]
pub struct Grant {
    /// Models it may open by name, the default one first. Those that are not
    /// loaded are when it opens them.
    pub models: Vec<PooledModel>,
    /// Names of models that exist but are not granted, so that the guest can be
    /// told the difference.
    pub withheld: Vec<String>,
    /// Who renders prompts for it.
    pub renderer: Option<Arc<Renderer>>,
    /// The tools that it may call.
    pub tools: Arc<Toolbox>,
    /// What it may read of the machine.
    pub telemetry: Telemetry,
    /// What a request may use.
    pub limits: Limits,
    /// How instances are kept between calls, if it is a tool whose instances are.
    pub keyed: Option<Keyed>,
    /// What all its requests together may use. Nothing bounds it unless it is said.
    pub shared_limits: SharedLimits,
    /// The application that it is a part of: components of the same name in others are not
    /// the same.
    pub application: String,
    /// Whom it works for, if not for the one owner of the machine.
    pub tenant: Option<Arc<Tenant>>,
    /// Environment, variables, files and what else is granted.
    pub capabilities: Capabilities,
}

/// Limits over all requests of a component, whosever they are, with what those hold and
/// have used. A clone shares it: who is granted one has one account with all others.
#[derive(Debug, Clone)]
pub struct SharedLimits(Arc<Tenant>);

impl SharedLimits {
    /// Limits with nothing held or used.
    #[must_use]
    pub fn new(limits: nala_tenant::Limits) -> Self {
        Self(Tenant::within(limits))
    }
}

impl Default for SharedLimits {
    fn default() -> Self {
        Self::new(nala_tenant::Limits::unlimited())
    }
}

/// Why a component was not loaded. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word for it.
        error: io::Error,
    },
    /// The file is too large.
    #[error("{name} has {bytes} bytes; a component may have at most {MAX_COMPONENT_BYTES}")]
    TooLarge {
        /// The component.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// The bytes are not WebAssembly at all.
    #[error("{name} is not WebAssembly: it does not begin with the bytes \\0asm; name a .wasm file")]
    NotWasm {
        /// The component.
        name: String,
    },
    /// A core module, which has no interfaces.
    #[error(
        "{name} is a core module, not a component; build it with `cargo build --target wasm32-wasip2`, or make a \
         component of it with `wasm-tools component new`"
    )]
    CoreModule {
        /// The component.
        name: String,
    },
    /// WebAssembly, but broken or using something that is switched off.
    #[error("{name} cannot be compiled: {reason}")]
    Compile {
        /// The component.
        name: String,
        /// wasmtime's words.
        reason: String,
    },
    /// It imports something that this host does not have.
    #[error("{name} imports `{import}`, which this host does not have; it offers {offered}")]
    UnknownImport {
        /// The component.
        name: String,
        /// The import.
        import: String,
        /// The packages that the host has.
        offered: Offered,
    },
    /// It imports something that it is not granted.
    #[error("{name} imports `{import}`, which it is not granted; {fix}")]
    NotGranted {
        /// The component.
        name: String,
        /// The import.
        import: String,
        /// What to do.
        fix: &'static str,
    },
    /// It cannot be given what it is granted.
    #[error("{name}: {error}")]
    Grant {
        /// The component.
        name: String,
        /// What is wrong.
        error: GrantError,
    },
    /// It is given more memory than this host has for a component.
    #[error(
        "{name} is given {} of memory, but {} is the most that this host has for a component; lower `memory` under \
         [component.{name}.tool.nala]",
        limits::bytes(*wanted),
        limits::bytes(*most)
    )]
    TooMuchMemory {
        /// The component.
        name: String,
        /// What it is given, in bytes.
        wanted: u64,
        /// The most, in bytes.
        most: u64,
    },
    /// An import exists, but not in the shape that the component expects.
    #[error("{name} cannot be linked: {reason}")]
    Link {
        /// The component.
        name: String,
        /// wasmtime's words.
        reason: String,
    },
    /// What it says of its tools cannot be.
    #[error("{name} cannot be loaded as tools: {reason}")]
    Tools {
        /// The component.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// It exports nothing that could be called.
    #[error("{name} does not export {wanted}; {fix}")]
    MissingExport {
        /// The component.
        name: String,
        /// The export.
        wanted: &'static str,
        /// What to do.
        fix: &'static str,
    },
}

/// The packages that a host has, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered(pub(crate) &'static [&'static str]);

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// A component that is compiled. A cheap handle: clones share the code.
#[derive(Clone)]
pub struct Compiled {
    name: String,
    component: Component,
    imports: Vec<String>,
}

impl Compiled {
    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it imports, by name.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().map(String::as_str)
    }

    /// Whether it imports models, so that one must be loaded for it.
    #[must_use]
    pub fn imports_models(&self) -> bool {
        self.imports.iter().any(|import| imports::is_of_models(import))
    }

    /// Whether it imports the rendering of chat templates.
    #[must_use]
    pub fn imports_renderer(&self) -> bool {
        self.imports.iter().any(|import| import.starts_with("nala:chat/render"))
    }
}

impl Runtime {
    /// Compiles a component, which can take seconds unless the cache has it:
    /// call it where blocking is fine.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn compile(&self, name: &str, source: Source<'_>) -> Result<Compiled, LoadError> {
        let (shown, bytes) = match source {
            Source::Bytes(bytes) => (name.to_owned(), Cow::Borrowed(bytes)),
            Source::File(path) => (path.display().to_string(), Cow::Owned(read_component(path)?)),
        };
        // The header: magic, then version and layer, see the component model's
        // binary format.
        match (bytes.get(..4), bytes.get(6..8)) {
            (Some(b"\0asm"), Some([1, 0])) => {}
            (Some(b"\0asm"), Some([0, 0])) => return Err(LoadError::CoreModule { name: shown }),
            _ => return Err(LoadError::NotWasm { name: shown }),
        }
        let before = self.cache_use();
        let component = Component::new(&self.engine, bytes)
            .map_err(|e| LoadError::Compile { name: shown, reason: format!("{e:#}") })?;
        let after = self.cache_use();
        self.metrics.compile_cache_hits.inc_by(after.0.saturating_sub(before.0) as u64);
        self.metrics.compile_cache_misses.inc_by(after.1.saturating_sub(before.1) as u64);
        let imports = imports::names(&component, &self.engine);
        Ok(Compiled { name: name.to_owned(), component, imports })
    }

    /// Makes a handler of a component that exports `wasi:http/incoming-handler`
    /// 0.2 or `wasi:http/handler` 0.3. It copies the files that are granted, so
    /// call it where blocking is fine.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, compiled: &Compiled, grant: Grant) -> Result<App, LoadError> {
        let pre = self.link(compiled, &grant)?;
        App::new(self, self.blueprint(&compiled.name, grant)?, proxy(&compiled.name, pre)?)
    }

    /// Makes a renderer of a component that exports `nala:chat/render`.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_renderer(&self, compiled: &Compiled, limits: Limits) -> Result<Renderer, LoadError> {
        let grant = Grant { limits, ..Grant::default() };
        let pre = self.link(compiled, &grant)?;
        let blueprint = self.blueprint(&compiled.name, grant)?;
        Renderer::new(self.metrics.clone(), blueprint, pre)
    }

    /// Makes tools of a component that exports `nala:tools/provider`, and has it tell
    /// which. `owning` gives it what each tenant has of its own. It copies the files that
    /// are granted and runs the component, so call it where blocking is fine.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_tools(
        &self,
        compiled: &Compiled,
        grant: Grant,
        owning: Option<Box<dyn Owning>>,
    ) -> Result<Provider, LoadError> {
        let pre = self.link(compiled, &grant)?;
        let keyed = grant.keyed.clone();
        Provider::new(self, self.blueprint(&compiled.name, grant)?, pre, keyed, owning)
    }

    fn blueprint(&self, name: &str, grant: Grant) -> Result<Blueprint, LoadError> {
        let granted = Granted::new(grant.capabilities);
        let granted = granted.map_err(|error| LoadError::Grant { name: name.to_owned(), error })?;
        Ok(Blueprint {
            engine: self.engine.clone(),
            _ticker: Arc::clone(&self.ticker),
            app: name.into(),
            account: Arc::new(Account::new(
                grant.tenant.unwrap_or_else(|| Arc::clone(&self.owner)),
                grant.shared_limits.0,
                name,
            )),
            limits: Arc::new(grant.limits),
            models: Models::new(grant.models, grant.withheld, Arc::clone(&self.tokenisers)),
            renderer: grant.renderer,
            tools: grant.tools,
            relay: Arc::clone(&self.relay),
            telemetry: Access { grant: Arc::new(grant.telemetry), readings: Arc::clone(&self.readings) },
            application: grant.application.into(),
            granted: Arc::new(granted),
        })
    }

    fn link(&self, compiled: &Compiled, grant: &Grant) -> Result<InstancePre<StoreData>, LoadError> {
        let Compiled { name, component, imports } = compiled;
        imports::check(name, imports, grant)?;
        refuse_memory(self, name, &grant.limits)?;
        self.link_all(name, component)
    }

    /// Links a component with all that there is.
    fn link_all(&self, name: &str, component: &Component) -> Result<InstancePre<StoreData>, LoadError> {
        let link = |e: wasmtime::Error| LoadError::Link { name: name.to_owned(), reason: format!("{e:#}") };
        let mut linker = Linker::new(&self.engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(link)?;
        wasmtime_wasi::p3::add_to_linker(&mut linker).map_err(link)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker).map_err(link)?;
        wasmtime_wasi_http::p3::add_to_linker(&mut linker).map_err(link)?;
        llm::add_to_linker(&mut linker).map_err(link)?;
        nn::add_to_linker(&mut linker).map_err(link)?;
        spin_llm::add_to_linker(&mut linker).map_err(link)?;
        chat::add_to_linker(&mut linker).map_err(link)?;
        tools::add_to_linker(&mut linker).map_err(link)?;
        relay::add_to_linker(&mut linker).map_err(link)?;
        telemetry::add_to_linker(&mut linker).map_err(link)?;
        variables::add_to_linker(&mut linker).map_err(link)?;
        key_value::add_to_linker(&mut linker).map_err(link)?;
        logging::add_to_linker(&mut linker).map_err(link)?;
        // These take the place of a part of what is there.
        linker.allow_shadowing(true);
        clocks::add_to_linker(&mut linker).map_err(link)?;
        files::add_to_linker(&mut linker).map_err(link)?;
        key_value::fit(&mut linker, component).map_err(link)?;
        linker.instantiate_pre(component).map_err(link)
    }
}

/// The pool has no more for one memory, so the promise could not be kept.
fn refuse_memory(runtime: &Runtime, name: &str, limits: &Limits) -> Result<(), LoadError> {
    let (wanted, most) = (limits.memory_bytes, runtime.config.max_memory_bytes as u64);
    match wanted > most {
        true => Err(LoadError::TooMuchMemory { name: name.to_owned(), wanted, most }),
        false => Ok(()),
    }
}

/// Reads the file of a component, which may be as large as one that is loaded.
///
/// # Errors
/// [`LoadError::Read`] and [`LoadError::TooLarge`].
pub fn read_component(path: &Path) -> Result<Vec<u8>, LoadError> {
    let fail = |error| LoadError::Read { path: path.to_owned(), error };
    let meta = std::fs::metadata(path).map_err(fail)?;
    if meta.is_dir() {
        return Err(fail(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder; name the .wasm file in it")));
    }
    if meta.len() > MAX_COMPONENT_BYTES {
        return Err(LoadError::TooLarge { name: path.display().to_string(), bytes: meta.len() });
    }
    std::fs::read(path).map_err(fail)
}

/// Finds out which version of the handler interface is exported.
fn proxy(name: &str, pre: InstancePre<StoreData>) -> Result<ProxyPre<StoreData>, LoadError> {
    use wasmtime_wasi_http::{p2, p3};
    if let Ok(service) = p3::bindings::ServicePre::new(pre.clone()) {
        return Ok(ProxyPre::P3(service));
    }
    p2::bindings::ProxyPre::new(pre).map(ProxyPre::P2).map_err(|_| LoadError::MissingExport {
        name: name.to_owned(),
        wanted: "`wasi:http/incoming-handler@0.2` nor `wasi:http/handler@0.3`",
        fix: "a handler exports one of them, see components/examples/ask",
    })
}
