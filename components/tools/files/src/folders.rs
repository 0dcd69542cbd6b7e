//! The granted folders, and where a path leads in them.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

use nala_sdk::wasi::filesystem::preopens::get_directories;
use nala_sdk::wasi::filesystem::types::DescriptorFlags;

use crate::trouble::{self, quoted};

/// How many symbolic links a path may go through.
const LINKS: usize = 32;

/// How many names a path may have.
pub(crate) const DEEPEST: usize = 64;

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A granted folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// What it is called, from `/` on and without one at the end.
    pub(crate) name: String,
    /// Where it is: the same, for a component.
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// What it is called, from `/` on.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// The granted folders, the one with the longest name first.
#[derive(Clone, Debug)]
pub(crate) struct Folders(Vec<Folder>);

impl Folders {
    /// Those that the host gives.
    pub(crate) fn granted() -> Self {
        Self::new(get_directories().into_iter().map(|(folder, path)| {
            let is_writable = folder.get_flags().is_ok_and(|flags| flags.contains(DescriptorFlags::MUTATE_DIRECTORY));
            let access = if is_writable { Access::Write } else { Access::Read };
            Folder { name: path.clone(), path: path.into(), access }
        }))
    }

    pub(crate) fn new(folders: impl IntoIterator<Item = Folder>) -> Self {
        let named = |folder: Folder| Folder { name: joined(&names(&folder.name)), ..folder };
        let mut folders: Vec<Folder> = folders.into_iter().map(named).collect();
        folders.sort_by_key(|folder| (std::cmp::Reverse(names(&folder.name).len()), folder.name.clone()));
        Self(folders)
    }

    /// The folders, in the order of their names.
    pub(crate) fn all(&self) -> Vec<&Folder> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The place of what is asked for. Nothing has to be there yet.
    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        let (folder, rest) = self.folder(path)?;
        let mut place = Place { name: folder.name.clone(), path: folder.path.clone(), access: folder.access };
        for name in followed(folder, &rest, path)? {
            place.path.push(&name);
            place.name = format!("{}/{name}", place.name.trim_end_matches('/'));
        }
        Ok(place)
    }

    /// The folder that a path begins with, and the names behind it.
    fn folder<'a>(&'a self, path: &'a str) -> Result<(&'a Folder, Vec<&'a str>), String> {
        if path.contains('\0') {
            return Err("a path has no zeros in it".to_owned());
        }
        let rest = names(path);
        if rest.contains(&"..") {
            return Err(format!("{}: `..` leads nowhere here; give the path from its folder on", quoted(path)));
        }
        if rest.len() > DEEPEST {
            return Err(format!("{} has more than {DEEPEST} names", quoted(path)));
        }
        if let ([folder], false) = (self.0.as_slice(), path.starts_with('/')) {
            return Ok((folder, rest));
        }
        for folder in &self.0 {
            if let Some(behind) = rest.strip_prefix(names(&folder.name).as_slice()) {
                return Ok((folder, behind.to_vec()));
            }
        }
        Err(match self.all().as_slice() {
            [] => trouble::NOTHING_GRANTED.to_owned(),
            all => {
                let all: Vec<_> = all.iter().map(|folder| quoted(&folder.name)).collect();
                format!("{} is in none of the folders that are granted: {}", quoted(path), all.join(", "))
            }
        })
    }
}

/// The names that a path is made of.
fn names(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).collect()
}

fn joined(names: &[&str]) -> String {
    format!("/{}", names.join("/"))
}

/// The names behind a folder that lead to the same without a symbolic link. The host
/// follows none that leads out; here one is told from other things that are not permitted.
fn followed(folder: &Folder, rest: &[&str], asked: &str) -> Result<Vec<String>, String> {
    let mut ahead: VecDeque<String> = rest.iter().map(|name| (*name).to_owned()).collect();
    let mut behind: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let out = || format!("{} goes through a link that leads out of {}", quoted(asked), quoted(&folder.name));
        if name == ".." {
            behind.pop().ok_or_else(out)?;
            continue;
        }
        behind.push(name);
        let path = behind.iter().fold(folder.path.clone(), |path, name| path.join(name));
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(format!("{} goes through more than {LINKS} links", quoted(asked)));
        }
        let target = fs::read_link(&path).map_err(|error| trouble::reading(asked, &error))?;
        let target = target.to_str().filter(|target| !target.starts_with('/')).ok_or_else(out)?.to_owned();
        behind.pop();
        for name in names(&target).into_iter().rev() {
            ahead.push_front(name.to_owned());
        }
        if ahead.len() + behind.len() > DEEPEST {
            return Err(format!("{} leads to a path of more than {DEEPEST} names", quoted(asked)));
        }
    }
    Ok(behind)
}
