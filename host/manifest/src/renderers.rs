//! References between components: a renderer must be there, and must not need
//! the component that it renders for.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use crate::diagnostic::{Error, Source};
use crate::raw::Component;

/// Checks every `renderer` of the manifest.
///
/// # Errors
/// One that is not there, that is its own, or that comes back to itself.
pub(crate) fn check(components: &BTreeMap<Spanned<String>, Component>, source: Source<'_>) -> Result<(), Error> {
    let ids: BTreeSet<String> = components.keys().map(|id| id.get_ref().clone()).collect();
    let renderers: BTreeMap<&str, &Spanned<String>> = components
        .iter()
        .filter_map(|(id, component)| Some((id.get_ref().as_str(), component.tool.nala.as_ref()?.renderer.as_ref()?)))
        .collect();
    for (id, renderer) in &renderers {
        check_known(renderer.get_ref(), renderer.span(), &ids, source)?;
        let way = way(id, &renderers);
        let Some((last, between)) = way.split_last() else { continue };
        if last == id {
            let message = match between {
                [] => format!("component `{id}` cannot be its own renderer"),
                _ => format!("component `{id}` would render for itself: `{id}` -> `{}`", way.join("` -> `")),
            };
            return Err(source.error(renderer.span(), message, "name another component that exports nala:chat"));
        }
    }
    Ok(())
}

/// The renderer of `id`, its renderer, and so on, up to the first that has none
/// or that was met before.
fn way<'a>(id: &str, renderers: &BTreeMap<&'a str, &'a Spanned<String>>) -> Vec<&'a str> {
    let mut way: Vec<&str> = Vec::new();
    let mut at = id;
    while let Some(next) = renderers.get(at) {
        let next = next.get_ref().as_str();
        let met = way.contains(&next);
        way.push(next);
        if met || next == id {
            break;
        }
        at = next;
    }
    way
}

/// Checks that a component is described in the manifest.
///
/// # Errors
/// It is not; those that are get named.
pub(crate) fn check_known(
    id: &str,
    span: Range<usize>,
    ids: &BTreeSet<String>,
    source: Source<'_>,
) -> Result<(), Error> {
    if ids.contains(id) {
        return Ok(());
    }
    let known = ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>();
    let help = if known.is_empty() {
        format!("add a table [component.{id}]")
    } else {
        format!("add a table [component.{id}], or name one of {}", known.join(", "))
    };
    Err(source.error(span, format!("there is no component `{id}`"), help))
}
