//! Whether a component's imports can be had.

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::{Grant, LoadError, Offer, Offered};

/// The packages, or the interfaces of a package, that a component may import. A
/// version that is none yet, such as a draft, is named whole.
const OFFERED: &[&str] = &[
    "wasi:cli@0.2",
    "wasi:cli@0.3",
    "wasi:clocks@0.2",
    "wasi:clocks@0.3",
    "wasi:filesystem@0.2",
    "wasi:filesystem@0.3",
    "wasi:http@0.2",
    "wasi:http@0.3",
    "wasi:io@0.2",
    "wasi:random@0.2",
    "wasi:random@0.3",
    "wasi:sockets@0.2",
    "wasi:sockets@0.3",
    "wasi:nn@0.2.0-rc-2024-10-28",
    "fermyon:spin/llm@2.0",
    "nala:llm@0.1",
    "nala:chat@0.1",
    "nala:tools@0.1",
    "nala:relay@0.1",
    "nala:machine@0.1",
    "wasi:config@0.2.0-rc.1",
    "wasi:config@0.2.0-draft-2024-09-27",
    "wasi:logging@0.1.0-draft",
    "fermyon:spin/variables@2.0",
    "fermyon:spin/config",
    "spin:variables@3.0",
    "wasi:keyvalue@0.2.0-draft2",
    "fermyon:spin/key-value@2.0",
    "spin:key-value@3.0",
];

/// The names of a component's imports, without those that nobody has to answer.
pub(super) fn names(component: &Component, engine: &Engine) -> Vec<String> {
    let component = component.component_type();
    let imports = component.imports(engine);
    imports
        .filter(|(name, import)| is_known(name) || !has_only_types(&import.ty, engine))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Whether an interface has neither functions nor resources. A component imports it for
/// the types of other interfaces; there is nothing to link.
fn has_only_types(import: &ComponentItem, engine: &Engine) -> bool {
    let ComponentItem::ComponentInstance(interface) = import else { return false };
    let mut items = interface.exports(engine).peekable();
    items.peek().is_some() && items.all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
}

/// Refuses imports that the linker could only call missing, with the reason.
pub(super) fn check(name: &str, imports: &[String], grant: &Grant) -> Result<(), LoadError> {
    let offer = Offer { models: !grant.models.is_empty(), renderer: grant.renderer.is_some() };
    refused(name, imports, offer).into_iter().next().map_or(Ok(()), Err)
}

/// All imports that cannot be had, in the order of the component.
pub(super) fn refused(name: &str, imports: &[String], offer: Offer) -> Vec<LoadError> {
    imports.iter().filter_map(|import| refuse(name, import, offer)).collect()
}

fn refuse(name: &str, import: &str, offer: Offer) -> Option<LoadError> {
    let (name, import) = (name.to_owned(), import.to_owned());
    if !is_known(&import) {
        return Some(LoadError::UnknownImport { name, import, offered: Offered(OFFERED) });
    }
    let fix = if is_of_models(&import) && !offer.models {
        "grant it a model: --model NAME for `run`, `ai_models` in spin.toml"
    } else if import.starts_with("nala:chat/render") && !offer.renderer {
        "name the component that renders prompts: `renderer` under [component.NAME.tool.nala]"
    } else {
        return None;
    };
    Some(LoadError::NotGranted { name, import, fix })
}

/// Whether the host has an import, whoever is granted it.
fn is_known(import: &str) -> bool {
    names_of(import).iter().any(|name| OFFERED.contains(&name.as_str()))
}

/// Whether an import is of no use without a model.
pub(super) fn is_of_models(import: &str) -> bool {
    ["nala:llm/", "wasi:nn/", "fermyon:spin/llm@"].iter().any(|models| import.starts_with(models))
}

/// What an interface may be offered as: itself or its package, with the whole
/// version or only `MAJOR.MINOR` of it, as far as it has one.
fn names_of(import: &str) -> Vec<String> {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    let Some((package, _)) = interface.split_once('/') else { return Vec::new() };
    let mut numbers = version.splitn(3, '.');
    let versions = match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => vec![format!("@{version}"), format!("@{major}.{minor}")],
        _ => vec![String::new()],
    };
    [interface, package]
        .iter()
        .flat_map(|name| versions.iter().map(move |version| format!("{name}{version}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_fit_are_known_by_their_minor() {
        assert!(names_of("wasi:http/types@0.2.12").contains(&"wasi:http@0.2".to_owned()));
        assert!(names_of("nala:llm/model@0.9.0").contains(&"nala:llm@0.9".to_owned()));
        assert!(names_of("wasi:config/store@0.2.0-rc.1").contains(&"wasi:config@0.2.0-rc.1".to_owned()));
        assert!(names_of("fermyon:spin/config").contains(&"fermyon:spin/config".to_owned()));
        assert!(names_of("print").is_empty());
    }

    #[test]
    fn what_cannot_be_had_is_named_with_the_fix() {
        let refused = |import: &str| check("a", &[import.to_owned()], &Grant::default()).unwrap_err().to_string();
        assert!(refused("nala:llm/model@0.9.0").contains("offers"));
        assert!(refused("print").contains("`print`"));
        assert!(refused("nala:llm/model@0.1.0").contains("--model"));
        for import in ["wasi:nn/graph@0.2.0-rc-2024-10-28", "fermyon:spin/llm@2.0.0"] {
            assert!(refused(import).contains("--model"), "{import}");
        }
        for import in ["wasi:nn/graph@0.2.0-rc-2024-08-19", "fermyon:spin/mysql@2.0.0"] {
            assert!(refused(import).contains("does not have"), "{import}");
        }
        assert!(refused("nala:chat/render@0.1.0").contains("renderer"));
        assert!(refused("wasi:config/store@0.2.0-rc.2").contains("wasi:config@0.2.0-rc.1"));
        assert!(refused("fermyon:spin/redis@2.0.0").contains("offers"));
        for import in ["wasi:io/poll@0.2.6", "fermyon:spin/config", "fermyon:spin/variables@2.0.0"] {
            assert!(check("a", &[import.to_owned()], &Grant::default()).is_ok(), "{import}");
        }
    }
}
