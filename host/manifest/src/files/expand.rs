//! From the entries of `files` to the files that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::path::has_pattern;
use super::{Files, GuestPath, Mount, MountedFile, What};
use crate::diagnostic::{Diagnostic, Place};

/// How `files` match: `*` stays in its folder.
const IN_ONE_FOLDER: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// The deepest folder that is looked into.
const DEEPEST: usize = 64;

pub(super) fn expand(
    folder: &Path,
    mounts: &[Mount],
    excluded: &[Pattern],
) -> Result<Vec<MountedFile>, Box<Diagnostic>> {
    let Some(first) = mounts.first() else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = folder.canonicalize().map_err(|error| unreadable(&first.place, folder, &error))?;
    let mut found = Found { files: BTreeMap::new(), folders: BTreeSet::new() };
    for mount in mounts {
        let walk = Walk { folder: &folder, excluded, place: &mount.place };
        let taken = match &mount.what {
            What::Pattern(pattern) => walk.matching(pattern.as_str())?,
            What::Placed { source, destination } => walk.placed(source.as_str(), destination)?,
        };
        for file in taken {
            found.insert(file, &mount.place)?;
        }
    }
    Ok(found.files.into_iter().map(|(guest, host)| MountedFile { host, guest }).collect())
}

/// What was found for all entries.
struct Found {
    files: BTreeMap<GuestPath, PathBuf>,
    folders: BTreeSet<String>,
}

impl Found {
    fn insert(&mut self, MountedFile { host, guest }: MountedFile, place: &Place) -> Result<(), Box<Diagnostic>> {
        if guest.as_str() == "/" {
            let message = format!("`/` is a folder, and cannot be the file {}", host.display());
            return Err(place.error(message, "write its name behind it in `destination`").into());
        }
        let is_folder = self.folders.contains(guest.as_str());
        let in_file = guest.folders().any(|folder| self.files.contains_key(folder));
        if is_folder || in_file {
            let message = format!("`{guest}` would be a file and a folder");
            return Err(place.error(message, "give the file a `destination` of its own, with its name").into());
        }
        match self.files.get(&guest) {
            Some(other) if *other != host => {
                let (host, other) = (host.display(), other.display());
                let message = format!("`{guest}` would be two files: {other} and {host}");
                return Err(place.error(message, "take one of them, or place them apart").into());
            }
            _ => {}
        }
        self.folders.extend(guest.folders().map(str::to_owned));
        self.files.insert(guest, host);
        if self.files.len() > Files::MOST {
            return Err(too_many(place));
        }
        Ok(())
    }
}

/// The search for one entry.
struct Walk<'a> {
    /// The manifest's folder, without links.
    folder: &'a Path,
    excluded: &'a [Pattern],
    place: &'a Place,
}

/// Something that is there.
struct Entry {
    /// From the manifest's folder, with slashes.
    path: String,
    /// Without links.
    real: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    /// A device, a pipe or a socket.
    Other,
}

impl Walk<'_> {
    fn matching(&self, pattern: &str) -> Result<Vec<MountedFile>, Box<Diagnostic>> {
        // A path that is there is meant as it is, whatever characters it has.
        match self.entry(pattern) {
            Ok(entry) => return self.below(&entry, &GuestPath::root().join(pattern)),
            Err(Missing::NotThere) if !pattern.split('/').any(has_pattern) => {
                let message = format!("there is no `{pattern}` in {}", self.folder.display());
                return Err(self.place.error(message, "make it, or correct the path").into());
            }
            Err(Missing::NotThere) => {}
            Err(Missing::Outside(_, error) | Missing::Because(error)) => return Err(error),
        }
        let compiled = Pattern::new(pattern).map_err(|error| self.place.error(error.to_string(), ""))?;
        let literal: Vec<&str> = pattern.split('/').take_while(|segment| !has_pattern(segment)).collect();
        let deepest = match pattern.split('/').any(|segment| segment == "**") {
            true => DEEPEST,
            false => pattern.split('/').count() - literal.len(),
        };
        let start = match self.entry(&literal.join("/")) {
            Ok(start) => start,
            Err(Missing::NotThere) => return Ok(Vec::new()),
            Err(Missing::Outside(_, error) | Missing::Because(error)) => return Err(error),
        };
        let mut files = Vec::new();
        let wanted = |path: &str| compiled.matches_with(path, IN_ONE_FOLDER);
        self.visit(&start, deepest, &wanted, &mut Vec::new(), &mut |entry| {
            files.push(MountedFile { guest: GuestPath::root().join(&entry.path), host: entry.real });
            files.len()
        })?;
        Ok(files)
    }

    fn placed(&self, source: &str, destination: &GuestPath) -> Result<Vec<MountedFile>, Box<Diagnostic>> {
        match self.entry(source) {
            Ok(entry) => self.below(&entry, destination),
            Err(Missing::Outside(_, error) | Missing::Because(error)) => Err(error),
            Err(Missing::NotThere) => {
                let message = format!("there is no `{source}` in {}", self.folder.display());
                Err(self.place.error(message, "make it, or correct `source`").into())
            }
        }
    }

    /// A file, or all files in a folder, put at `destination`.
    fn below(&self, entry: &Entry, destination: &GuestPath) -> Result<Vec<MountedFile>, Box<Diagnostic>> {
        match entry.kind {
            Kind::File if self.is_excluded(&entry.path) => Ok(Vec::new()),
            Kind::File => Ok(vec![MountedFile { host: entry.real.clone(), guest: destination.clone() }]),
            Kind::Other => {
                let message = format!("`{}` is a device, a pipe or a socket", entry.path);
                Err(self.place.error(message, "name a file or a folder").into())
            }
            Kind::Folder => {
                let mut files = Vec::new();
                self.visit(entry, DEEPEST, &|_| true, &mut Vec::new(), &mut |file| {
                    let below = file.path.strip_prefix(&entry.path).unwrap_or(&file.path).trim_start_matches('/');
                    files.push(MountedFile { guest: destination.join(below), host: file.real });
                    files.len()
                })?;
                Ok(files)
            }
        }
    }

    /// Gives each file in a folder that is `wanted` by its path to `take`, which
    /// tells how many it has.
    fn visit(
        &self,
        folder: &Entry,
        deepest: usize,
        wanted: &impl Fn(&str) -> bool,
        way: &mut Vec<PathBuf>,
        take: &mut impl FnMut(Entry) -> usize,
    ) -> Result<(), Box<Diagnostic>> {
        if folder.kind != Kind::Folder || deepest == 0 {
            return Ok(());
        }
        // A link back to where we came from would be followed without end.
        if way.contains(&folder.real) || way.len() >= DEEPEST {
            let message = format!("`{}` leads back to a folder that it is in, or is too deep", folder.path);
            return Err(self.place.error(message, "remove the link, or name the folders that are needed").into());
        }
        way.push(folder.real.clone());
        for name in self.names(folder)? {
            let path = if folder.path.is_empty() { name } else { format!("{}/{name}", folder.path) };
            let entry = match self.entry(&path) {
                Ok(entry) => entry,
                // A link to nothing, or gone in the meantime.
                Err(Missing::NotThere) => continue,
                Err(Missing::Outside(real, _)) if self.is_excluded(&path) || (!real.is_dir() && !wanted(&path)) => {
                    continue;
                }
                Err(Missing::Outside(_, error) | Missing::Because(error)) => return Err(error),
            };
            match entry.kind {
                Kind::Folder => self.visit(&entry, deepest - 1, wanted, way, take)?,
                Kind::File if wanted(&entry.path) && !self.is_excluded(&entry.path) => {
                    if take(entry) > Files::MOST {
                        return Err(too_many(self.place));
                    }
                }
                Kind::File | Kind::Other => {}
            }
        }
        way.pop();
        Ok(())
    }

    /// The names in a folder, in order.
    fn names(&self, folder: &Entry) -> Result<Vec<String>, Box<Diagnostic>> {
        let unreadable = |error: io::Error| unreadable(self.place, &folder.real, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder.real).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            names.push(name.into_string().map_err(|name| {
                let message = format!("the name {name:?} in {} is no Unicode", folder.real.display());
                self.place.error(message, "rename it")
            })?);
            if names.len() > Files::MOST {
                return Err(too_many(self.place));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// What is at a path from the manifest's folder, links followed.
    fn entry(&self, path: &str) -> Result<Entry, Missing> {
        let full = self.folder.join(path);
        let real = match full.canonicalize() {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(Missing::NotThere);
            }
            Err(error) => return Err(Missing::Because(unreadable(self.place, &full, &error))),
        };
        if !real.starts_with(self.folder) {
            let message = format!("`{path}` is a link out of {}", self.folder.display());
            let help = "copy what the component needs into the manifest's folder, or name the link in `exclude_files`";
            let error = self.place.error(message, help).into();
            return Err(Missing::Outside(real, error));
        }
        let meta = fs::metadata(&real).map_err(|error| Missing::Because(unreadable(self.place, &real, &error)))?;
        let kind = match (meta.is_file(), meta.is_dir()) {
            (true, _) => Kind::File,
            (_, true) => Kind::Folder,
            _ => Kind::Other,
        };
        Ok(Entry { path: path.to_owned(), real, kind })
    }

    fn is_excluded(&self, path: &str) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(path))
    }
}

enum Missing {
    NotThere,
    /// A link out of the manifest's folder, and where it leads.
    Outside(PathBuf, Box<Diagnostic>),
    Because(Box<Diagnostic>),
}

fn unreadable(place: &Place, path: &Path, error: &io::Error) -> Box<Diagnostic> {
    place.error(format!("{} cannot be read: {error}", path.display()), "let this user read it").into()
}

fn too_many(place: &Place) -> Box<Diagnostic> {
    let message = format!("the component would see more than {} files", Files::MOST);
    place.error(message, "name the ones that it needs").into()
}
