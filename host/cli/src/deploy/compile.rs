//! Compiles what strangers have sent in a process of its own.
//!
//! The process fills the cache of compiled code, out of which the component is loaded
//! here; so what is loaded was made by the same compiler with the same settings, and
//! nothing has to be believed of a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use nala_deploy::{Jail, JailLimits};
use nala_wasm::{CompileCache, Runtime, RuntimeConfig, Source};

use crate::args::CompileArgs;
use crate::program;
use crate::serve::Preparing;

/// Time for a component, as many times as its CPU time may be: others compute as well.
const WALL: u32 = 2;
/// Memory for a component, in bytes.
const MEMORY: u64 = 2 << 30;
/// Bytes of compiled code.
const OUTPUT: u64 = 1 << 30;

/// What the process of one component may use, and how many bytes it may write.
pub(super) fn limits(cpu: Duration, output_bytes: u64) -> JailLimits {
    JailLimits { cpu, wall: cpu.saturating_mul(WALL), memory_bytes: MEMORY, output_bytes }
}

/// Has components compiled.
pub(super) struct Compiler {
    jail: Option<Jail>,
    /// Where the note is written that something was compiled.
    done: PathBuf,
}

impl Compiler {
    pub(super) fn new(preparing: &Preparing, state: &Path) -> anyhow::Result<Self> {
        let done = state.join("compiled");
        std::fs::create_dir_all(&done).with_context(|| format!("{} cannot be made", done.display()))?;
        // Without a cache nothing could be handed over.
        let jail = match &preparing.cache {
            CompileCache::Off => None,
            CompileCache::Directory(folder) => {
                let arguments = [OsString::from("compile"), "--cache-dir".into(), folder.into()];
                Some(Jail::new(program::path()?, arguments))
            }
        };
        Ok(Self { jail, done })
    }

    /// Compiles a component, which may take so much CPU time.
    pub(super) fn compile(&self, component: &Path, cpu: Duration) -> anyhow::Result<()> {
        let Some(jail) = &self.jail else { return Ok(()) };
        let name = component.file_name().context("a component without a name")?;
        jail.compile(component, &self.done.join(name), &limits(cpu, OUTPUT))?;
        Ok(())
    }
}

/// The hidden verb that runs in that process.
///
/// # Errors
/// What is wrong with the component.
pub(crate) fn main(args: &CompileArgs) -> anyhow::Result<()> {
    Jail::enter(&args.limits)?;
    let cache = CompileCache::Directory(args.cache_dir.clone());
    let runtime = Runtime::new(RuntimeConfig { cache, ..RuntimeConfig::default() })?;
    runtime.compile("component", Source::File(&args.input))?;
    std::fs::write(&args.output, b"compiled\n")?;
    Ok(())
}
