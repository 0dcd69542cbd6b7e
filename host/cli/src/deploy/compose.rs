//! Composes what strangers have sent with its dependencies, in a process of its own, as
//! it is compiled in one: reading and joining components takes time and memory by what
//! is in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use nala_deploy::{Jail, JailError};
use serde::{Deserialize, Serialize};

use super::compile::limits;
use crate::application::Described;
use crate::application::composing::Joined;
use crate::args::ComposeArgs;
use crate::program;

/// What is to be composed, as the process is told.
#[derive(Serialize, Deserialize)]
struct Plan {
    spin_toml: String,
    /// Where the code of each component is.
    sources: BTreeMap<String, PathBuf>,
    joined: Joined,
    /// The most bytes that the result may have.
    most: u64,
}

/// Has components composed.
pub(super) struct Composer {
    jail: Jail,
    /// Where plans and results are, while they are needed.
    folder: PathBuf,
}

/// What composing may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// CPU time for each component.
    pub(super) cpu: Duration,
    /// Bytes that a component may have, with its dependencies.
    pub(super) component_bytes: u64,
}

impl Composer {
    pub(super) fn new(state: &Path) -> anyhow::Result<Self> {
        let folder = state.join("composed");
        // Left by a process that was killed.
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { jail: Jail::new(program::path()?, ["compose"]), folder })
    }

    /// Composes all of an application that is composed of several components, and has it
    /// take what they became.
    pub(super) fn compose(&self, described: &mut Described, spin_toml: &str, bounds: Bounds) -> anyhow::Result<()> {
        let all: Vec<Joined> = described.joined().collect();
        if all.is_empty() {
            return Ok(());
        }
        let folder = tempfile::tempdir_in(&self.folder).context("there is no folder for composed components")?;
        let mut composed = BTreeMap::new();
        for (number, joined) in all.into_iter().enumerate() {
            let plan = Plan {
                spin_toml: spin_toml.to_owned(),
                sources: described.sent(),
                joined: joined.clone(),
                most: bounds.component_bytes,
            };
            composed.insert(joined, self.one(&plan, &folder.path().join(number.to_string()), bounds)?);
        }
        described.take_composed(folder, composed);
        Ok(())
    }

    fn one(&self, plan: &Plan, at: &Path, bounds: Bounds) -> anyhow::Result<PathBuf> {
        let (input, output) = (at.with_extension("json"), at.with_extension("wasm"));
        fs::write(&input, serde_json::to_vec(plan)?)
            .with_context(|| format!("{} cannot be written", input.display()))?;
        match self.jail.compile(&input, &output, &limits(bounds.cpu, bounds.component_bytes)) {
            Ok(_) => Ok(output),
            Err(JailError::Rejected(said)) => Err(anyhow!("{}", said.strip_prefix("error: ").unwrap_or(&said))),
            Err(error) => Err(anyhow::Error::new(error).context(format!("composing {}", plan.joined))),
        }
    }
}

/// The hidden verb that runs in that process.
///
/// # Errors
/// What is wrong with the components.
pub(crate) fn main(args: &ComposeArgs) -> anyhow::Result<()> {
    Jail::enter(&args.limits)?;
    let Plan { spin_toml, sources, joined, most } = serde_json::from_slice(&fs::read(&args.input)?)?;
    let described = Described::deployed(&spin_toml, "spin.toml", sources)?;
    fs::write(&args.output, described.compose(&joined, most)?)?;
    Ok(())
}
