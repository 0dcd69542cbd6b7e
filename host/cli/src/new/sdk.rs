//! Where the crate `nala-sdk` is, which is on no registry.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

use crate::console::Help;

/// Where it lies in a checkout.
const IN_A_CHECKOUT: &str = "components/sdk";

/// Where the SDK is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sdk {
    /// Its folder.
    Folder(PathBuf),
    /// A Git repository that has it.
    Repository(String),
}

impl FromStr for Sdk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return match text.contains(|c: char| c.is_control() || c.is_whitespace()) {
                true => Err("a URL has no spaces and no control characters".to_owned()),
                false => Ok(Self::Repository(text.to_owned())),
            };
        }
        if text.starts_with("git@") {
            return Err("Cargo takes URLs only: write it as ssh://git@HOST/PATH".to_owned());
        }
        match text {
            "" => Err("write the folder of the crate nala-sdk, or the URL of a Git repository".to_owned()),
            text => Ok(Self::Folder(PathBuf::from(text))),
        }
    }
}

impl Sdk {
    /// The one of the checkout that the new project or this binary is in.
    ///
    /// # Errors
    /// Neither is in one.
    pub(crate) fn find(project: &Path) -> anyhow::Result<Self> {
        let project = fs::canonicalize(project).ok();
        let binary = std::env::current_exe().ok().and_then(|path| fs::canonicalize(path).ok());
        let beginnings = project.iter().chain(&binary).flat_map(|path| path.ancestors());
        let found = beginnings.map(|folder| folder.join(IN_A_CHECKOUT)).find(|folder| refuse_other(folder).is_ok());
        found.map(Self::Folder).ok_or_else(|| {
            let what = "the crate nala-sdk is not found: it is on no registry, and this binary is in no checkout";
            let help = format!(
                "give --sdk with {IN_A_CHECKOUT} of a checkout of Nala or with the URL of its repository, or take \
                 --template rust-hello, which does without"
            );
            Help { what: what.to_owned(), help }.into()
        })
    }

    /// What stands behind `nala-sdk =` in the Cargo.toml of a project in `project`, which
    /// is there.
    ///
    /// # Errors
    /// The folder does not hold the SDK.
    pub(crate) fn dependency(&self, project: &Path) -> anyhow::Result<String> {
        let folder = match self {
            Self::Repository(url) => return Ok(format!("{{ git = {} }}", quoted(url)?)),
            Self::Folder(folder) => folder,
        };
        refuse_other(folder).map_err(|error| {
            let help = format!("give the folder of the crate, which is {IN_A_CHECKOUT} in a checkout of Nala");
            anyhow::Error::new(error)
                .context(Help { what: format!("{} does not hold the crate nala-sdk", folder.display()), help })
        })?;
        let whole = |path: &Path| fs::canonicalize(path).with_context(|| format!("{} cannot be found", path.display()));
        let (folder, project) = (whole(folder)?, whole(project)?);
        // Within one checkout, which may be moved or cloned elsewhere.
        let checkout = folder.ancestors().nth(2).filter(|checkout| project.starts_with(checkout));
        let path = match checkout {
            Some(checkout) if checkout.parent().is_some() => relative(&project, &folder),
            _ => folder,
        };
        let path = path.to_str().with_context(|| format!("{} cannot stand in a Cargo.toml", path.display()))?;
        Ok(format!("{{ path = {} }}", quoted(path)?))
    }
}

/// A string of TOML; one of JSON is one.
fn quoted(text: &str) -> anyhow::Result<String> {
    Ok(serde_json::to_string(text)?)
}

/// The way from one absolute folder to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Refuses a folder that does not hold the SDK.
fn refuse_other(folder: &Path) -> io::Result<()> {
    let manifest = folder.join("Cargo.toml");
    // Opening a pipe would wait for whoever writes into it.
    if !fs::metadata(&manifest)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its Cargo.toml is no regular file"));
    }
    let text = fs::read_to_string(&manifest)?;
    match text.lines().any(|line| line.trim() == "name = \"nala-sdk\"") {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "its Cargo.toml is of another crate")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_or_the_url_of_a_repository() {
        assert_eq!("../sdk".parse(), Ok(Sdk::Folder("../sdk".into())));
        let url = "https://example.com/nala.git";
        let sdk: Sdk = url.parse().unwrap();
        assert_eq!(sdk.dependency(Path::new("/")).unwrap(), format!("{{ git = \"{url}\" }}"));
        for wrong in ["", "git@example.com:nala", "https://a b"] {
            assert!(wrong.parse::<Sdk>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn within_a_checkout_the_path_is_relative_and_elsewhere_it_is_not() {
        let checkout = tempfile::tempdir().unwrap();
        let (sdk, inside) = (checkout.path().join(IN_A_CHECKOUT), checkout.path().join("apps/mine"));
        for folder in [&sdk, &inside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"nala-sdk\"\n").unwrap();
        assert_eq!(Sdk::find(&inside).unwrap().dependency(&inside).unwrap(), "{ path = \"../../components/sdk\" }");
        let outside = tempfile::tempdir().unwrap();
        let dependency = Sdk::Folder(sdk.clone()).dependency(outside.path()).unwrap();
        let whole = fs::canonicalize(&sdk).unwrap();
        assert_eq!(dependency, format!("{{ path = {whole:?} }}"));
        fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"other\"\n").unwrap();
        let error = Sdk::Folder(sdk).dependency(outside.path()).unwrap_err();
        assert!(format!("{error:#}").contains("another crate"), "{error:#}");
    }
}
