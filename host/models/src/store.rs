//! The models folder: where it is, what is in it, and which file a name means.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::{Catalogue, Entry};
use crate::error::Error;
use crate::network::Network;
use crate::progress::Progress;
use crate::pull::{self, Pulled, with_ending};

/// The environment variable that names the models folder.
const DIR_VARIABLE: &str = "NALA_MODELS_DIR";
/// How alike two names must be, from 0 to 1, for one to be suggested.
const ALIKE: f64 = 0.7;

/// A folder of models and the catalogue that fills it.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
    catalogue: Catalogue,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name to give to `--model`.
    pub name: String,
    /// The catalogue's entry; none for a file that was put there by hand.
    pub entry: Option<Entry>,
    /// Where the file is or would be.
    pub path: PathBuf,
    /// What is there.
    pub state: State,
}

/// What is in the folder of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file, with the size in bytes that it must have.
    Installed {
        /// Size in bytes.
        size: u64,
    },
    /// Nothing.
    Absent,
    /// Some bytes of an interrupted download.
    Partial {
        /// Bytes on disk of what is downloaded.
        received: u64,
    },
    /// A file of another size than the catalogue's.
    Damaged {
        /// Size in bytes.
        size: u64,
    },
}

impl Store {
    /// The folder `dir`, which need not exist yet, with the built-in catalogue.
    ///
    /// # Errors
    /// [`Error::Catalogue`]; never in a build that passed its tests.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self::with_catalogue(dir, Catalogue::embedded()?))
    }

    /// The folder of this user: `NALA_MODELS_DIR`, else `./models` in a
    /// checkout (where it holds a `catalogue.toml`), else the user's data
    /// folder.
    ///
    /// # Errors
    /// [`Error::NoModelsDir`] for a user without a home.
    pub fn open_default() -> Result<Self, Error> {
        let data = || directories::ProjectDirs::from("", "", "nala").map(|dirs| dirs.data_dir().join("models"));
        let dir = choose_dir(std::env::var_os(DIR_VARIABLE), Path::new("models"), data)?;
        Self::open(dir)
    }

    /// The folder `dir` with another catalogue.
    #[must_use]
    pub fn with_catalogue(dir: impl Into<PathBuf>, catalogue: Catalogue) -> Self {
        Self { dir: dir.into(), catalogue }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The catalogue.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Every model of the catalogue, then every other GGUF file in the folder,
    /// by name.
    ///
    /// # Errors
    /// [`Error::Io`] for a folder that cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut listed = Vec::new();
        let mut known = BTreeSet::new();
        for entry in self.catalogue.iter() {
            let path = self.dir.join(&entry.file);
            listed.push(Listed {
                name: entry.name.clone(),
                state: state(entry, &path)?,
                entry: Some(entry.clone()),
                path,
            });
            known.insert(OsString::from(&entry.file));
        }
        let mut others = Vec::new();
        for path in self.gguf_files()? {
            if path.file_name().is_some_and(|name| !known.contains(name))
                && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            {
                let size = fs::metadata(&path).map_err(Error::io(&path))?.len();
                others.push(Listed { name: name.to_owned(), entry: None, state: State::Installed { size }, path });
            }
        }
        others.sort_by(|a, b| a.name.cmp(&b.name));
        listed.append(&mut others);
        Ok(listed)
    }

    /// The file that a user means: a path (it has a separator, ends in `.gguf`,
    /// or is there), a catalogue name, or a file in the folder without its
    /// ending.
    ///
    /// # Errors
    /// [`Error::NoSuchFile`], [`Error::NotAFile`], [`Error::NotInstalled`],
    /// [`Error::Damaged`] or [`Error::UnknownModel`].
    pub fn resolve(&self, name_or_path: &str) -> Result<PathBuf, Error> {
        if looks_like_path(name_or_path) {
            let path = PathBuf::from(name_or_path);
            // A bare file name may also mean the one in the folder.
            let candidates = [path.clone(), self.dir.join(&path)];
            if let Some(file) = candidates.iter().find(|candidate| candidate.is_file()) {
                return Ok(file.clone());
            }
            return Err(candidates.iter().find_map(not_a_file).unwrap_or(Error::NoSuchFile { path }));
        }
        if let Some(entry) = self.catalogue.get(name_or_path) {
            let path = self.dir.join(&entry.file);
            return match state(entry, &path)? {
                State::Installed { .. } => Ok(path),
                State::Damaged { size } => {
                    Err(Error::Damaged { name: entry.name.clone(), path, actual: size, expected: entry.size })
                }
                State::Absent | State::Partial { .. } => Err(Error::NotInstalled { name: entry.name.clone() }),
            };
        }
        let by_stem = self.dir.join(format!("{name_or_path}.gguf"));
        if !name_or_path.is_empty() && by_stem.is_file() {
            return Ok(by_stem);
        }
        let as_path = PathBuf::from(name_or_path);
        if as_path.is_file() {
            return Ok(as_path);
        }
        match not_a_file(&by_stem) {
            Some(error) if !name_or_path.is_empty() => Err(error),
            _ => Err(self.unknown(name_or_path)?),
        }
    }

    /// Fetches the model `name`, or finds it already there and verified.
    /// Blocks; runs of several processes wait for each other; an interrupted
    /// run is continued by the next.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] and whatever the network, the disk or a wrong
    /// digest brings; each says what to do.
    pub fn pull(&self, name: &str, progress: &mut dyn Progress) -> Result<Pulled, Error> {
        let entry = self.entry(name)?;
        pull::pull(&self.dir, entry, &Network::from_environment()?, progress)
    }

    /// Like [`Store::pull`], over a network of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Store::pull`].
    pub fn pull_over(&self, network: &Network, name: &str, progress: &mut dyn Progress) -> Result<Pulled, Error> {
        pull::pull(&self.dir, self.entry(name)?, network, progress)
    }

    fn entry(&self, name: &str) -> Result<&Entry, Error> {
        match self.catalogue.get(name) {
            Some(entry) => Ok(entry),
            None if looks_like_path(name) => Err(Error::NotAName { name: name.to_owned() }),
            None => Err(self.unknown(name)?),
        }
    }

    fn unknown(&self, name: &str) -> Result<Error, Error> {
        let known: Vec<String> = self.list()?.into_iter().map(|listed| listed.name).collect();
        let likeness = |other: &String| strsim::jaro_winkler(&other.to_lowercase(), &name.to_lowercase());
        let suggestion = known
            .iter()
            .map(|other| (likeness(other), other))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, other)| other.clone());
        Ok(Error::UnknownModel { name: name.to_owned(), known, suggestion })
    }

    fn gguf_files(&self) -> Result<Vec<PathBuf>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(&self.dir)(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::io(&self.dir))?.path();
            if path.extension().is_some_and(|ending| ending == "gguf") && path.is_file() {
                files.push(path);
            }
        }
        Ok(files)
    }
}

fn choose_dir(
    variable: Option<OsString>,
    checkout: &Path,
    data: impl FnOnce() -> Option<PathBuf>,
) -> Result<PathBuf, Error> {
    if let Some(dir) = variable.filter(|dir| !dir.is_empty()) {
        return Ok(dir.into());
    }
    if checkout.join("catalogue.toml").is_file() {
        return Ok(checkout.to_owned());
    }
    data().ok_or(Error::NoModelsDir)
}

/// The error for what is there and is no regular file.
fn not_a_file(path: &PathBuf) -> Option<Error> {
    let found = crate::place::not_a_file(&fs::metadata(path).ok()?)?;
    Some(Error::NotAFile { path: path.clone(), found })
}

fn looks_like_path(name: &str) -> bool {
    name.contains(std::path::is_separator) || name.ends_with(".gguf")
}

fn size_of(path: &Path) -> Result<Option<u64>, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

fn state(entry: &Entry, path: &Path) -> Result<State, Error> {
    if let Some(size) = size_of(path)? {
        return Ok(if size == entry.size { State::Installed { size } } else { State::Damaged { size } });
    }
    for ending in ["whl.part", "part"] {
        if let Some(received) = size_of(&with_ending(path, ending))? {
            return Ok(State::Partial { received });
        }
    }
    Ok(State::Absent)
}

#[cfg(test)]
mod tests;
