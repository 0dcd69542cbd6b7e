//! References between components: a renderer must be there, and must not need
//! the component that it renders for; a dependency must be there, and have
//! nothing of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::Component;
use crate::diagnostic::Place;
use crate::reader::Document;
use crate::triggers;

/// Where each component names another as its renderer.
pub(crate) type Renderers<'a> = BTreeMap<&'a str, (&'a str, &'a Place)>;

/// Checks every renderer: notes one that is not there, that is its own, or
/// that comes back to itself.
pub(crate) fn check(renderers: &Renderers<'_>, known: &BTreeSet<&str>, document: &Document<'_>) {
    for (id, (renderer, place)) in renderers {
        if let Some((message, help)) = triggers::unknown(renderer, known) {
            let help = format!("{help}, or write \"nala:chat-template\" for the host's own");
            document.push(place.error(message, help));
            continue;
        }
        let way = way(id, renderers);
        let Some((last, between)) = way.split_last() else { continue };
        if last == id {
            let message = match between {
                [] => format!("component `{id}` cannot be its own renderer"),
                _ => format!("component `{id}` would render for itself: `{id}` -> `{}`", way.join("` -> `")),
            };
            document.push(place.error(message, "name another component that exports nala:chat"));
        }
    }
}

/// Where components name the tools that they may call: by whom, which, and where.
pub(crate) type ToolUses<'a> = Vec<(&'a str, &'a str, &'a Place)>;

/// Checks every tool that a component may call: notes one that is not there, and one that
/// could come to call itself.
pub(crate) fn check_tools(uses: &ToolUses<'_>, known: &BTreeSet<&str>, document: &Document<'_>) {
    for (by, tool, place) in uses {
        if let Some((message, help)) = triggers::unknown(tool, known) {
            document.push(place.error(message, help));
            continue;
        }
        let mut reached = BTreeSet::from([*tool]);
        let mut left = vec![*tool];
        while let Some(at) = left.pop() {
            let next = uses.iter().filter(|(from, ..)| *from == at).map(|(_, to, _)| *to);
            left.extend(next.filter(|to| reached.insert(to)));
        }
        if reached.contains(by) {
            let message = match by == tool {
                true => format!("component `{by}` cannot be its own tool"),
                false => format!("component `{by}` could come to call itself: `{tool}` may call it"),
            };
            document.push(place.error(message, "remove it, or one of the tools that come back to it"));
        }
    }
}

/// The renderer of `id`, its renderer, and so on, up to the first that has none
/// or that was met before.
fn way<'a>(id: &str, renderers: &Renderers<'a>) -> Vec<&'a str> {
    let mut way: Vec<&str> = Vec::new();
    let mut at = id;
    while let Some((next, _)) = renderers.get(at) {
        let met = way.contains(next);
        way.push(next);
        if met || *next == id {
            break;
        }
        at = next;
    }
    way
}

/// Checks that `needed`, whose Wasm `by` is composed with, is there and has
/// nothing of its own: composed, it would not have it.
pub(crate) fn check_dependency(
    (by, needed, place): (&str, &str, &Place),
    components: &BTreeMap<String, Component>,
    known: &BTreeSet<&str>,
    document: &Document<'_>,
) {
    if let Some((message, help)) = triggers::unknown(needed, known) {
        document.push(place.error(message, help));
        return;
    }
    let own = components.get(needed).map(Component::own).unwrap_or_default();
    if !own.is_empty() {
        let message = format!(
            "component `{needed}` cannot be a dependency of `{by}`, which would use only its Wasm: it has {}",
            own.join(", ")
        );
        let help = format!("remove that from [component.{needed}], or write `path` for a Wasm file");
        document.push(place.error(message, help));
    }
}
