//! What the verbs for whoever writes an application are told.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::parsers::{moment, note, variable};
use super::{CodeArgs, FetchArgs, FormatArgs};
use crate::new::{ProjectName, Sdk, Template};

/// The manifest where none is named.
pub(super) const MANIFEST: &str = "spin.toml";

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host check
  nala-host check app/spin.toml --profile debug --config nala.toml
  nala-host check --format json | jq '.diagnostics[] | select(.severity == \"error\")'

Nothing is run and no model is loaded. Components that are elsewhere are fetched, all are
compiled, and both is kept for `up`. The status is 1 where there is an error, and 0 where there
are warnings only.")]
pub(crate) struct CheckArgs {
    /// The application's manifest
    #[arg(value_name = "SPIN.TOML", default_value = MANIFEST)]
    pub(crate) manifest: PathBuf,

    /// The profile of the manifest whose settings are checked
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// A value for a variable of the manifest, as `up` takes it; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variable: Vec<(String, String)>,

    /// Also check this operator's file, with its file of keys
    #[arg(long, value_name = "NALA.TOML", env = "NALA_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: FormatArgs,

    #[command(flatten)]
    pub(crate) code: CodeArgs,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host build
  nala-host build app/spin.toml --component api --component worker

The commands of a component (`build.command`) run by `sh -c` in its `build.workdir`, one
after another, and so do the components. The first command that fails ends all. What
they say is passed on behind the name of the component.")]
pub(crate) struct BuildArgs {
    /// The application's manifest
    #[arg(value_name = "SPIN.TOML", default_value = MANIFEST)]
    pub(crate) manifest: PathBuf,

    /// The profile of the manifest whose commands are run
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Build this component only; may be given again
    #[arg(long, value_name = "ID")]
    pub(crate) component: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host new my-app
  nala-host new hello --template rust-hello --path services/hello
  nala-host new my-app --sdk ~/nala/components/sdk

The templates are inside this binary. Nothing is fetched, and nothing that is there is
changed. Then, in the new folder: nala-host build && nala-host up spin.toml")]
pub(crate) struct NewArgs {
    /// The name of the application, of its component and of its package: words of
    /// lower-case letters and digits, with `-` between them
    #[arg(value_name = "NAME")]
    pub(crate) name: ProjectName,

    /// What to begin with
    #[arg(long, value_enum, default_value_t)]
    pub(crate) template: Template,

    /// The folder to make; it may be there already if it is empty [default: NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,

    /// Where the crate nala-sdk is: its folder, or the URL of a Git repository that has
    /// it [default: components/sdk of the checkout that this binary or the new folder is in]
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) sdk: Option<Sdk>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    pub(crate) verb: KeyVerb,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum KeyVerb {
    /// Make a key for a tenant: print it, and the line for the operator's file
    New(NewKeyArgs),
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host key new
  nala-host key new --expires 2027-01-31 --note \"the build server\"
  nala-host key new --format json

The key is printed once and kept nowhere. The line for the file has its hash only, by
which nobody can ask anything.")]
pub(crate) struct NewKeyArgs {
    /// When the key ends: a day (its first moment, in UTC), or a moment with its offset
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub(crate) expires: Option<String>,

    /// Whom the key is for
    #[arg(long, value_name = "TEXT", value_parser = note)]
    pub(crate) note: Option<String>,

    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

impl ValueEnum for Template {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()).help(self.description()))
    }
}
