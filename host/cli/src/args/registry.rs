//! What is said of components that are elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use nala_oci::Reference;

/// How components are fetched.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fetched components")]
pub(crate) struct FetchArgs {
    /// Folder for components that were fetched, by their digests [default: nala/fetched in
    /// the user's cache folder]
    #[arg(long, value_name = "DIR", env = "NALA_FETCH_DIR")]
    pub(crate) fetch_dir: Option<PathBuf>,

    /// Fetch nothing: what is not kept already is an error
    #[arg(long)]
    pub(crate) offline: bool,

    /// Speak to this registry in plain text, which anybody on the way can read and, but
    /// for what is pinned, change; may be given again. A registry on this machine is
    /// spoken to so in any case
    #[arg(long, value_name = "HOST[:PORT]", env = "NALA_PLAIN_HTTP", value_delimiter = ',')]
    pub(crate) plain_http: Vec<String>,
}

/// A component that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Runnable {
    File(PathBuf),
    /// In a registry.
    Remote(Reference),
}

/// A reference, or else a path.
pub(super) fn runnable(text: OsString) -> Result<Runnable, String> {
    match text.to_str() {
        Some(reference) if reference.starts_with("oci://") => {
            Reference::parse(reference).map(Runnable::Remote).map_err(|error| error.to_string())
        }
        Some("") => Err("write the path of a component, or oci://HOST/REPOSITORY@sha256:DIGEST".to_owned()),
        _ => Ok(Runnable::File(text.into())),
    }
}

/// `NAME=VALUE`
fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as org.opencontainers.image.version=1.0.0".to_owned()),
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host push app.wasm oci://ghcr.io/acme/shop:1.0.0
  nala-host push app.wasm oci://127.0.0.1:5000/shop:1.0.0
  nala-host push app.wasm oci://ghcr.io/acme/shop:1.0.0 \\
    --annotation org.opencontainers.image.source=https://example.com/shop

Standard output is the reference with its digest, by which `run`, a manifest and the
operator's API take it, and which stays the same when the tag is moved. The layout is that
of wkg, so other tools take it as well. The same file and annotations have the same digest
each time; the moment noted is that of the file, or SOURCE_DATE_EPOCH.

Who asks is known by `docker login HOST` (DOCKER_CONFIG, with its helpers), or by
NALA_REGISTRY=HOST with NALA_REGISTRY_USER and NALA_REGISTRY_PASSWORD.")]
pub(crate) struct PushArgs {
    /// The component
    #[arg(value_name = "APP.WASM")]
    pub(crate) component: PathBuf,

    /// Where it goes, with a tag and no digest
    #[arg(value_name = "oci://HOST/REPOSITORY:TAG")]
    pub(crate) reference: Reference,

    /// Something to know about it, as registries show it; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = annotation)]
    pub(crate) annotation: Vec<(String, String)>,

    /// Speak to this registry in plain text, which anybody on the way can read and change,
    /// the password too. A registry on this machine is spoken to so in any case
    #[arg(long, value_name = "HOST[:PORT]", env = "NALA_PLAIN_HTTP", value_delimiter = ',')]
    pub(crate) plain_http: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nala-host pull oci://ghcr.io/acme/shop:1.0.0
  nala-host pull oci://ghcr.io/acme/shop@sha256:… -o shop.wasm

Standard output is the reference with its digest, by which `run`, a manifest and the
operator's API take it. What was pulled is kept by its digest, so that it is not fetched
again. Who asks is known as for `push`.")]
pub(crate) struct PullArgs {
    /// What is fetched; without a tag and a digest the tag is `latest`
    #[arg(value_name = "oci://HOST/REPOSITORY[:TAG][@sha256:DIGEST]")]
    pub(crate) reference: Reference,

    /// The file to write [default: the last part of the repository, with .wasm, here]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_a_path_or_a_reference() {
        for path in ["app.wasm", "./oci://x", "oci.wasm"] {
            assert_eq!(runnable(path.into()), Ok(Runnable::File(path.into())));
        }
        assert!(matches!(runnable("oci://r.example/shop:1".into()), Ok(Runnable::Remote(_))));
        for (wrong, why) in [("oci://acme/shop:1", "does not begin with a host"), ("", "write the path")] {
            assert!(runnable(wrong.into()).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn an_annotation_has_a_name() {
        assert_eq!(annotation("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        for wrong in ["", "a", "=b"] {
            assert!(annotation(wrong).is_err(), "{wrong}");
        }
    }
}
