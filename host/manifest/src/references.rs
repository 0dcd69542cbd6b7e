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
    let circles = circles(uses);
    for (by, tool, place) in uses {
        if let Some((message, help)) = triggers::unknown(tool, known) {
            document.push(place.error(message, help));
        } else if by == tool {
            let message = format!("component `{by}` cannot be its own tool");
            document.push(place.error(message, "remove it"));
        } else if circles.get(by).is_some_and(|circle| circles.get(tool) == Some(circle)) {
            let message = format!("component `{by}` could come to call itself: `{tool}` may call it");
            document.push(place.error(message, "remove it, or one of the tools that come back to it"));
        }
    }
}

/// Which components can come back to each other, by a number for each such group. By
/// Tarjan's algorithm for strongly connected components, in time linear in the uses and
/// without recursion, since manifests are written by strangers.
fn circles<'a>(uses: &ToolUses<'a>) -> BTreeMap<&'a str, usize> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (by, tool, _) in uses {
        next.entry(by).or_default().push(tool);
    }
    let none: &[&str] = &[];
    let after = |id: &str| next.get(id).map_or(none, Vec::as_slice);
    let (mut order, mut lowest): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    let (mut open, mut groups): (Vec<&str>, BTreeMap<&str, usize>) = Default::default();
    for start in next.keys() {
        if order.contains_key(start) {
            continue;
        }
        // Each with how many of the ones after it were looked at.
        let mut way = vec![(*start, 0)];
        while let Some((at, looked)) = way.last_mut() {
            let (at, n) = (*at, *looked);
            *looked += 1;
            if n == 0 {
                let number = order.len();
                order.insert(at, number);
                lowest.insert(at, number);
                open.push(at);
            }
            if let Some(to) = after(at).get(n) {
                match order.get(to) {
                    None => way.push((to, 0)),
                    Some(number) if !groups.contains_key(to) => lower(&mut lowest, at, *number),
                    Some(_) => {}
                }
                continue;
            }
            way.pop();
            let least = lowest.get(at).copied().unwrap_or_default();
            if let Some((from, _)) = way.last() {
                lower(&mut lowest, from, least);
            }
            if order.get(at) == Some(&least) {
                while let Some(one) = open.pop() {
                    groups.insert(one, least);
                    if one == at {
                        break;
                    }
                }
            }
        }
    }
    groups
}

fn lower<'a>(lowest: &mut BTreeMap<&'a str, usize>, at: &'a str, number: usize) {
    let known = lowest.entry(at).or_insert(number);
    *known = number.min(*known);
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
