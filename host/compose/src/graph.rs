//! What is instantiated, and who answers whom.

use std::collections::BTreeMap;
use std::error::Error;

use nala_manifest::dependencies::Inheritance;
use wac_graph::types::{ItemKind, Package, Type, Types, WorldId, are_semver_compatible};
use wac_graph::{CompositionGraph, EncodeOptions, InstantiationArgumentError, NodeId};

use crate::deny::{self, Denials};
use crate::rights::{Denial, Right, has};
use crate::{ComposeError, Dependency, Main};

/// A part of the composed component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    world: WorldId,
    instance: NodeId,
}

/// What is being composed.
pub(crate) struct Joining<'a> {
    pub(crate) main: &'a Main<'a>,
    graph: CompositionGraph,
}

/// Joins a component and its dependencies.
pub(crate) fn join(main: &Main<'_>, dependencies: &[Dependency<'_>]) -> Result<Vec<u8>, ComposeError> {
    let mut joining = Joining::new(main);
    let part = joining.add_main()?;
    let answered = joining.matched(part, dependencies)?;
    let mut parts: Vec<(&Dependency<'_>, Part)> = Vec::new();
    for (dependency, imports) in &answered {
        let same = parts.iter().find(|(other, _)| is_same_instance(other, dependency));
        let its_part = match same {
            Some((_, part)) => *part,
            None => {
                let number = parts.len();
                let part = joining.add_dependency(number, dependency)?;
                parts.push((dependency, part));
                part
            }
        };
        for import in imports {
            joining.answer(part, import, dependency, its_part)?;
        }
    }
    joining.export(part, |_| true)?;
    joining.encode()
}

fn is_same_instance(one: &Dependency<'_>, other: &Dependency<'_>) -> bool {
    one.inherits == other.inherits && one.bytes == other.bytes
}

impl<'a> Joining<'a> {
    pub(crate) fn new(main: &'a Main<'a>) -> Self {
        Self { main, graph: CompositionGraph::new() }
    }
}

impl Joining<'_> {
    fn failed(&self, error: &dyn Error) -> ComposeError {
        ComposeError::Join { main: self.main.name.to_owned(), reason: error_chain(error) }
    }

    /// Reads the main component.
    pub(crate) fn add_main(&mut self) -> Result<Part, ComposeError> {
        let main = self.main;
        let part = self.add("main", main.bytes);
        part.map_err(|reason| ComposeError::Main { main: main.name.to_owned(), reason })
    }

    /// Reads a component, and makes an instance of it.
    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<Part, String> {
        // The header: magic, then version and layer, see the component model's binary
        // format.
        match (bytes.get(..4), bytes.get(6..8)) {
            (Some(b"\0asm"), Some([1, 0])) => {}
            (Some(b"\0asm"), Some([0, 0])) => return Err("it is a core module, not a component".to_owned()),
            _ => return Err("it is not a component".to_owned()),
        }
        let package = Package::from_bytes(name, None, bytes, self.graph.types_mut()).map_err(|e| format!("{e:#}"))?;
        let world = package.ty();
        let package = self.graph.register_package(package).map_err(|error| error_chain(&error))?;
        Ok(Part { world, instance: self.graph.instantiate(package) })
    }

    pub(crate) fn imports(&self, part: Part) -> impl Iterator<Item = (&str, ItemKind)> {
        self.graph.types()[part.world].imports.iter().map(|(name, kind)| (name.as_str(), *kind))
    }

    /// The names of all imports, those that the host is known to have at the end.
    pub(crate) fn imports_of_others_first(&self, part: Part) -> Vec<String> {
        let mut names: Vec<String> = self.imports(part).map(|(name, _)| name.to_owned()).collect();
        names.sort_by_key(|name| Right::of(name) != Right::Unknown);
        names
    }

    pub(crate) fn exports(&self, part: Part) -> impl Iterator<Item = (&str, ItemKind)> {
        self.graph.types()[part.world].exports.iter().map(|(name, kind)| (name.as_str(), *kind))
    }

    /// Each dependency, and which imports it answers.
    fn matched<'d>(
        &self,
        main: Part,
        dependencies: &'d [Dependency<'d>],
    ) -> Result<Vec<(&'d Dependency<'d>, Vec<String>)>, ComposeError> {
        let mut taken: BTreeMap<&str, &Dependency<'_>> = BTreeMap::new();
        let mut matched = Vec::new();
        for dependency in dependencies {
            let name = dependency.name;
            let imports: Vec<&str> =
                self.imports(main).map(|(import, _)| import).filter(|import| name.answers(import)).collect();
            if imports.is_empty() {
                return Err(ComposeError::Unmatched {
                    dependency: Box::new(name.clone()),
                    main: self.main.name.to_owned(),
                    imports: self.imports_of_others_first(main),
                });
            }
            for import in &imports {
                if let Some(other) = taken.insert(import, dependency) {
                    let (dependency, other) = (Box::new(name.clone()), Box::new(other.name.clone()));
                    return Err(ComposeError::Conflict { import: (*import).to_owned(), dependency, other });
                }
            }
            matched.push((dependency, imports.into_iter().map(str::to_owned).collect()));
        }
        Ok(matched)
    }

    /// Adds a dependency, with whatever denies it what it does not inherit.
    fn add_dependency(&mut self, number: usize, dependency: &Dependency<'_>) -> Result<Part, ComposeError> {
        let part = self.read_dependency(number, dependency)?;
        self.deny_all_but(part, number, dependency, None)?;
        Ok(part)
    }

    pub(crate) fn read_dependency(&mut self, number: usize, dependency: &Dependency<'_>) -> Result<Part, ComposeError> {
        self.add(&format!("dependency-{number}"), dependency.bytes)
            .map_err(|reason| ComposeError::Unreadable { dependency: Box::new(dependency.name.clone()), reason })
    }

    /// Has a dependency denied what it does not inherit; not the import that somebody else
    /// answers.
    pub(crate) fn deny_all_but(
        &mut self,
        part: Part,
        number: usize,
        dependency: &Dependency<'_>,
        answered: Option<&str>,
    ) -> Result<(), ComposeError> {
        let denials = self.denials(part, dependency, answered)?;
        if denials.is_empty() {
            return Ok(());
        }
        self.deny(part, number, dependency.bytes, &denials).map_err(|reason| ComposeError::Undeniable {
            dependency: Box::new(dependency.name.clone()),
            imports: denials.keys().cloned().collect(),
            reason,
        })
    }

    /// Has a component of ours answer what a part is denied.
    fn deny(&mut self, part: Part, number: usize, bytes: &[u8], denials: &Denials) -> Result<(), String> {
        let denier = self.add(&format!("denial-{number}"), &deny::component(bytes, denials)?)?;
        for import in denials.keys() {
            let node =
                self.graph.alias_instance_export(denier.instance, import).map_err(|error| error_chain(&error))?;
            let set = self.graph.set_instantiation_argument(part.instance, import, node);
            set.map_err(|error| error_chain(&error))?;
        }
        Ok(())
    }

    /// What a dependency imports and does not inherit.
    fn denials(
        &self,
        part: Part,
        dependency: &Dependency<'_>,
        answered: Option<&str>,
    ) -> Result<Denials, ComposeError> {
        let mut denials = Denials::new();
        for (import, kind) in self.imports(part).filter(|(import, _)| Some(*import) != answered) {
            let refused = |key| ComposeError::NotInherited {
                dependency: Box::new(dependency.name.clone()),
                import: import.to_owned(),
                key,
            };
            match Right::of(import) {
                Right::None => {}
                Right::Of(key, _) if has(dependency.inherits, key) => {}
                Right::Of(_, Denial::Answers(answers)) => {
                    denials.insert(import.to_owned(), answers);
                }
                _ if has_only_types(self.graph.types(), kind) => {}
                Right::Of(key, Denial::Refusal) => return Err(refused(Some(key))),
                Right::Unknown if dependency.inherits == &Inheritance::All => {}
                Right::Unknown => return Err(refused(None)),
            }
        }
        Ok(denials)
    }

    /// Has a dependency answer an import.
    fn answer(
        &mut self,
        main: Part,
        import: &str,
        dependency: &Dependency<'_>,
        its_part: Part,
    ) -> Result<(), ComposeError> {
        let wanted = dependency.export.unwrap_or(import);
        let kind = self.imports(main).find(|(name, _)| *name == import).map(|(_, kind)| kind);
        let Some(export) = self.export_for(its_part, wanted) else {
            // Nobody has to answer what is only types, and a component that uses the types
            // of an interface in another one does not export it.
            if dependency.export.is_none() && kind.is_some_and(|kind| has_only_types(self.graph.types(), kind)) {
                return Ok(());
            }
            return Err(ComposeError::MissingExport {
                dependency: Box::new(dependency.name.clone()),
                import: import.to_owned(),
                export: wanted.to_owned(),
                exports: self.exports(its_part).map(|(name, _)| name.to_owned()).collect(),
            });
        };
        let mismatch = |reason| ComposeError::Mismatch {
            dependency: Box::new(dependency.name.clone()),
            import: import.to_owned(),
            export: export.clone(),
            reason,
        };
        self.connect(its_part, &export, main, import).map_err(mismatch)
    }

    /// Has an export of one part answer an import of another.
    ///
    /// # Errors
    /// What stands in the way.
    pub(crate) fn connect(&mut self, from: Part, export: &str, to: Part, import: &str) -> Result<(), String> {
        let node = self.graph.alias_instance_export(from.instance, export).map_err(|error| error_chain(&error))?;
        self.graph.set_instantiation_argument(to.instance, import, node).map_err(|error| match error {
            InstantiationArgumentError::ArgumentTypeMismatch { source, .. } => format!("{source:#}"),
            other => error_chain(&other),
        })
    }

    /// The export of that name, or the newest one whose version fits it.
    pub(crate) fn export_for(&self, part: Part, wanted: &str) -> Option<String> {
        let names = || self.exports(part).map(|(name, _)| name);
        let newest = || names().filter(|name| are_semver_compatible(name, wanted)).max_by_key(|name| version(name));
        names().find(|name| *name == wanted).or_else(newest).map(str::to_owned)
    }

    /// Exports those of a part's exports that are wanted.
    pub(crate) fn export(&mut self, part: Part, is_wanted: impl Fn(&str) -> bool) -> Result<(), ComposeError> {
        let wanted = self.exports(part).map(|(name, _)| name).filter(|name| is_wanted(name));
        let names: Vec<String> = wanted.map(str::to_owned).collect();
        for name in names {
            let node = self.graph.alias_instance_export(part.instance, &name).map_err(|error| self.failed(&error))?;
            self.graph.export(node, name).map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, ComposeError> {
        self.graph.encode(EncodeOptions::default()).map_err(|error| self.failed(&error))
    }
}

/// Whether an interface has neither functions nor resources, so that nobody has to
/// answer it.
fn has_only_types(types: &Types, kind: ItemKind) -> bool {
    let is_type = |kind: &ItemKind| matches!(kind, ItemKind::Type(ty) if !matches!(ty, Type::Resource(_)));
    matches!(kind, ItemKind::Instance(id) if types[id].exports.values().all(is_type))
}

fn version(name: &str) -> Option<semver::Version> {
    name.split_once('@').and_then(|(_, version)| version.parse().ok())
}

/// An error and all that it comes from.
fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
