//! What is looked at for an application.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glob::Pattern;
use nala_manifest::{Application, Build};

use super::look::{Looks, looks};
use crate::application::{composing, dotenv};

/// What is looked at for an application.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    manifest: PathBuf,
    /// The code of the components and of their dependencies.
    code: Vec<PathBuf>,
    /// What they may read.
    files: Vec<nala_manifest::files::Files>,
    /// How each component is built that is.
    builds: BTreeMap<String, Build>,
}

/// What it looks like at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) manifest: Looks,
    /// What is served: the code of components, and the files that they may read.
    pub(super) served: Looks,
    /// What each component is built from, by its identifier.
    pub(super) sources: BTreeMap<String, Looks>,
}

/// What became of an application between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) manifest: bool,
    pub(super) served: bool,
    /// The components whose sources are others now.
    pub(super) sources: Vec<String>,
}

impl Change {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Snapshot {
    /// What has changed since another moment.
    pub(super) fn since(&self, before: &Self) -> Change {
        let is_other = |(id, looks): &(&String, &Looks)| before.sources.get(*id) != Some(looks);
        Change {
            manifest: self.manifest != before.manifest,
            served: self.served != before.served,
            sources: self.sources.iter().filter(is_other).map(|(id, _)| id.clone()).collect(),
        }
    }

    /// How many files are there.
    pub(super) fn files(&self) -> usize {
        let all = [&self.manifest, &self.served].into_iter().chain(self.sources.values());
        all.map(|looks| looks.values().flatten().count()).sum()
    }
}

impl Watched {
    pub(super) fn of(manifest: &Path, application: &Application) -> Self {
        let components = application.components.iter();
        Self {
            manifest: manifest.to_owned(),
            code: components
                .clone()
                .flat_map(|(_, one)| one.source.path().into_iter().chain(composing::files(one)))
                .chain(composing::files_of_middleware(application))
                .map(Path::to_owned)
                .collect(),
            files: components.clone().map(|(_, one)| one.files.clone()).filter(|files| !files.is_empty()).collect(),
            builds: components.filter_map(|(id, one)| Some((id.clone(), one.build.clone()?))).collect(),
        }
    }

    pub(super) fn build(&self, id: &str) -> Option<&Build> {
        self.builds.get(id)
    }

    /// Components that are built, and do not say from what.
    pub(super) fn unseen(&self) -> impl Iterator<Item = &str> {
        self.builds.iter().filter(|(_, build)| build.watch.is_empty()).map(|(id, _)| id.as_str())
    }

    /// Looks at all of it.
    pub(super) fn snapshot(&self) -> Snapshot {
        // Files that cannot be had are told when they are loaded.
        let files = self.files.iter().flat_map(|files| files.expand().unwrap_or_default());
        let served = self.code.iter().cloned().chain(files.map(|file| file.host));
        Snapshot {
            manifest: looks([self.manifest.clone(), dotenv::beside(&self.manifest)]),
            served: looks(served),
            sources: self.builds.iter().map(|(id, build)| (id.clone(), looks(sources(build)))).collect(),
        }
    }
}

/// The files that a component is built from.
fn sources(build: &Build) -> Vec<PathBuf> {
    let folder = if build.workdir.as_os_str().is_empty() { Path::new(".") } else { &build.workdir };
    // The folder's own name is no pattern, whatever signs are in it.
    let folder = Pattern::escape(&folder.to_string_lossy());
    let patterns = build.watch.iter().map(|pattern| format!("{folder}/{pattern}"));
    // A pattern that is none was refused with the manifest, and what cannot be read is
    // left out.
    let found = patterns.filter_map(|pattern| glob::glob(&pattern).ok());
    found.flat_map(|paths| paths.filter_map(Result::ok)).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn application(folder: &Path) -> Application {
        let text = "spin_manifest_version = 2\n[application]\nname = \"x\"\n\
            [[trigger.http]]\nroute = \"/\"\ncomponent = \"a\"\n\
            [component.a]\nsource = \"a.wasm\"\nfiles = [\"page.html\"]\n\
            dependencies = { \"x:y\" = { path = \"dep.wasm\" } }\n\
            build = { command = \"make\", workdir = \"w[1]\", watch = [\"src/**/*.rs\", \"Cargo.toml\"] }\n";
        Application::parse(text, folder, None).unwrap()
    }

    #[test]
    fn each_kind_of_change_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("w[1]/src/deep")).unwrap();
        for file in ["spin.toml", "page.html", "w[1]/src/lib.rs", "w[1]/Cargo.toml", "w[1]/other"] {
            fs::write(at(file), "1").unwrap();
        }
        let watched = Watched::of(&at("spin.toml"), &application(folder.path()));
        let mut before = watched.snapshot();
        assert_eq!(before.files(), 4);
        let mut changed = |file: &str| {
            fs::write(at(file), format!("another {file}")).unwrap();
            let now = watched.snapshot();
            let change = now.since(&before);
            before = now;
            change
        };
        assert_eq!(changed("w[1]/other"), Change::default());
        assert_eq!(changed("spin.toml"), Change { manifest: true, ..Change::default() });
        for served in ["a.wasm", "dep.wasm", "page.html"] {
            assert_eq!(changed(served), Change { served: true, ..Change::default() }, "{served}");
        }
        for source in ["w[1]/src/lib.rs", "w[1]/src/deep/new.rs", "w[1]/Cargo.toml"] {
            assert_eq!(changed(source), Change { sources: vec!["a".into()], ..Change::default() }, "{source}");
        }
        fs::remove_file(at("w[1]/src/deep/new.rs")).unwrap();
        assert_eq!(watched.snapshot().since(&before).sources, ["a"]);
    }
}
