//! The component that stands between a dependency and what it does not inherit.
//!
//! It is made for each dependency out of the dependency's own imports, so that it has
//! exactly the interfaces, versions and shapes that are asked for. It exports what is
//! denied, and imports only the interfaces whose types that needs: a file handle that a
//! dependency was given stays the same type for both. Its code is a few constants.

mod answer;
mod memory;
mod module;

use std::collections::BTreeMap;

use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding, embed_component_metadata};
use wit_parser::{InterfaceId, Package, PackageName, Resolve, World, WorldId, WorldItem, WorldKey};

use self::module::Denied;
use crate::rights::Answer;

/// Imports that are denied, by name, and what their functions answer.
pub(crate) type Denials = BTreeMap<String, &'static [(&'static str, Answer)]>;

/// Makes the component that denies a dependency what is named.
///
/// # Errors
/// What keeps it from being made, in the words of the library.
pub(crate) fn component(dependency: &[u8], denials: &Denials) -> Result<Vec<u8>, String> {
    let decoded = wit_component::decode(dependency).map_err(|error| format!("{error:#}"))?;
    let DecodedWasm::Component(mut resolve, world) = decoded else {
        return Err("it is a WIT package, not a component".to_owned());
    };
    let denied = denied(&resolve, world, denials)?;
    let world = add_world(&mut resolve, world, &denied)?;
    let mut module = module::build(&resolve, &denied);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .and_then(|()| {
            let mut encoder = ComponentEncoder::default();
            // Names must stay those that the dependency imports.
            encoder.merge_imports_based_on_semver(false);
            encoder.validate(true).module(&module)?.encode()
        })
        .map_err(|error| format!("{error:#}"))
}

fn denied(resolve: &Resolve, world: WorldId, denials: &Denials) -> Result<Vec<Denied>, String> {
    let imports = resolve.worlds.get(world).map(|world| &world.imports).into_iter().flatten();
    let interfaces = imports.filter_map(|(key, item)| match item {
        WorldItem::Interface { id, .. } => Some((key, *id)),
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    });
    let denied: Vec<Denied> = interfaces
        .filter_map(|(key, id)| {
            let answers = *denials.get(resolve.name_world_key(key).as_str())?;
            Some(Denied { key: key.clone(), interface: id, answers })
        })
        .collect();
    match denials.keys().find(|name| !denied.iter().any(|one| resolve.name_world_key(&one.key) == *name.as_str())) {
        None => Ok(denied),
        Some(name) => Err(format!("its import `{name}` is no interface")),
    }
}

/// Describes the component: it exports what is denied, and imports what that uses.
fn add_world(resolve: &mut Resolve, of: WorldId, denied: &[Denied]) -> Result<WorldId, String> {
    let is_denied = |id: InterfaceId| denied.iter().any(|one| one.interface == id);
    let mut used: Vec<InterfaceId> = denied.iter().map(|one| one.interface).collect();
    let mut at = 0;
    while let Some(id) = used.get(at).copied() {
        at += 1;
        let more: Vec<InterfaceId> = resolve.interface_direct_deps(id).filter(|dep| !used.contains(dep)).collect();
        used.extend(more);
    }
    let of = resolve.worlds.get(of).ok_or("it has no world")?;
    // In the order of the dependency, in which each stands after what it uses.
    let imports = of.imports.iter().filter(|(_, item)| match item {
        WorldItem::Interface { id, .. } => used.contains(id) && !is_denied(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => false,
    });
    let imports = imports.map(|(key, item)| (key.clone(), item.clone())).collect();
    let exports = of.imports.iter().filter(|(_, item)| match item {
        WorldItem::Interface { id, .. } => is_denied(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => false,
    });
    let exports = exports.map(|(key, item)| (key.clone(), item.clone())).collect();
    let name = PackageName { namespace: "nala".to_owned(), name: "denial".to_owned(), version: None };
    if resolve.package_names.contains_key(&name) {
        return Err(format!("it uses the package {name}, which is the host's"));
    }
    let package = resolve.packages.alloc(Package {
        name: name.clone(),
        docs: Default::default(),
        interfaces: Default::default(),
        worlds: Default::default(),
    });
    resolve.package_names.insert(name, package);
    let world = resolve.worlds.alloc(World {
        name: "denial".to_owned(),
        imports,
        exports,
        package: Some(package),
        docs: Default::default(),
        stability: Default::default(),
        includes: Vec::new(),
        span: Default::default(),
    });
    if let Some(package) = resolve.packages.get_mut(package) {
        package.worlds.insert("denial".to_owned(), world);
    }
    Ok(world)
}

/// The key of an interface's import or export.
fn key_of(interface: InterfaceId) -> WorldKey {
    WorldKey::Interface(interface)
}
