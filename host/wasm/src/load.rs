//! From bytes to a component that is compiled, linked and ready to be
//! instantiated.

mod imports;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nala_engine::Engine as Model;
use thiserror::Error;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime_wasi_http::handler::ProxyPre;

use crate::chat::renderer::Renderer;
use crate::engine::Runtime;
use crate::handler::App;
use crate::limits::Limits;
use crate::llm::Models;
use crate::store::{Blueprint, StoreData};
use crate::{chat, llm};

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
    /// Models it may open by name, the default one first.
    pub models: Vec<Model>,
    /// Names of models that exist but are not granted, so that the guest can be
    /// told the difference.
    pub withheld: Vec<String>,
    /// Who renders prompts for it.
    pub renderer: Option<Arc<Renderer>>,
    /// What a request may use.
    pub limits: Limits,
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
    /// An import exists, but not in the shape that the component expects.
    #[error("{name} cannot be linked: {reason}")]
    Link {
        /// The component.
        name: String,
        /// wasmtime's words.
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

impl Runtime {
    /// Loads a handler: a component that exports `wasi:http/incoming-handler`
    /// 0.2 or `wasi:http/handler` 0.3. Compiles, which can take seconds, unless
    /// the cache has it: call it where blocking is fine.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, name: &str, source: Source<'_>, grant: Grant) -> Result<App, LoadError> {
        let component = self.compile(name, source)?;
        let blueprint = self.blueprint(name, &grant);
        let pre = self.link(name, &component, &grant)?;
        App::new(self, blueprint, proxy(name, pre)?)
    }

    /// Loads a component that renders chat templates: it exports
    /// `nala:chat/render`. Blocks like [`Runtime::load`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_renderer(&self, name: &str, source: Source<'_>, limits: Limits) -> Result<Renderer, LoadError> {
        let component = self.compile(name, source)?;
        let grant = Grant { limits, ..Grant::default() };
        let blueprint = self.blueprint(name, &grant);
        let pre = self.link(name, &component, &grant)?;
        Renderer::new(self.metrics.clone(), blueprint, pre).map_err(|_| LoadError::MissingExport {
            name: name.to_owned(),
            wanted: "`nala:chat/render@0.1.0`",
            fix: "a renderer implements the world `nala:chat/renderer`",
        })
    }

    /// Whether a component imports models, so that none need be loaded for it.
    /// Compiles it, which [`Runtime::load`] then need not do again if there is
    /// a cache.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn needs_model(&self, name: &str, source: Source<'_>) -> Result<bool, LoadError> {
        let component = self.compile(name, source)?;
        Ok(imports::names(&component, &self.engine).iter().any(|import| import.starts_with("nala:llm/")))
    }

    fn blueprint(&self, name: &str, grant: &Grant) -> Blueprint {
        Blueprint {
            engine: self.engine.clone(),
            _ticker: Arc::clone(&self.ticker),
            app: name.into(),
            limits: Arc::new(grant.limits.clone()),
            models: Models::new(grant.models.clone(), grant.withheld.clone()),
            renderer: grant.renderer.clone(),
        }
    }

    fn compile(&self, name: &str, source: Source<'_>) -> Result<Component, LoadError> {
        let read;
        let bytes = match source {
            Source::Bytes(bytes) => bytes,
            Source::File(path) => {
                read = read_file(name, path)?;
                &read
            }
        };
        // The header: magic, then version and layer, see the component model's
        // binary format.
        match (bytes.get(..4), bytes.get(6..8)) {
            (Some(b"\0asm"), Some([1, 0])) => {}
            (Some(b"\0asm"), Some([0, 0])) => return Err(LoadError::CoreModule { name: name.to_owned() }),
            _ => return Err(LoadError::NotWasm { name: name.to_owned() }),
        }
        let before = self.cache_use();
        let component = Component::new(&self.engine, bytes)
            .map_err(|e| LoadError::Compile { name: name.to_owned(), reason: format!("{e:#}") })?;
        let after = self.cache_use();
        self.metrics.compile_cache_hits.inc_by(after.0.saturating_sub(before.0) as u64);
        self.metrics.compile_cache_misses.inc_by(after.1.saturating_sub(before.1) as u64);
        Ok(component)
    }

    fn link(&self, name: &str, component: &Component, grant: &Grant) -> Result<InstancePre<StoreData>, LoadError> {
        imports::check(name, &imports::names(component, &self.engine), grant)?;
        let link = |e: wasmtime::Error| LoadError::Link { name: name.to_owned(), reason: format!("{e:#}") };
        let mut linker = Linker::new(&self.engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(link)?;
        wasmtime_wasi::p3::add_to_linker(&mut linker).map_err(link)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker).map_err(link)?;
        wasmtime_wasi_http::p3::add_to_linker(&mut linker).map_err(link)?;
        llm::add_to_linker(&mut linker).map_err(link)?;
        chat::add_to_linker(&mut linker).map_err(link)?;
        linker.instantiate_pre(component).map_err(link)
    }
}

fn read_file(name: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
    let fail = |error| LoadError::Read { path: path.to_owned(), error };
    let meta = std::fs::metadata(path).map_err(fail)?;
    if meta.is_dir() {
        return Err(fail(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder; name the .wasm file in it")));
    }
    if meta.len() > MAX_COMPONENT_BYTES {
        return Err(LoadError::TooLarge { name: name.to_owned(), bytes: meta.len() });
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
