//! `targets`: the environments that `spin build` checks an application for.
//! Nala is none of them, so that they only must have the right shape.

use crate::reader::Node;

/// Checks `targets`.
pub(crate) fn check(node: Node<'_>) {
    for target in node.list().unwrap_or_default() {
        if target.is_text() {
            target.full_text();
            continue;
        }
        let Some(table) = target.table("the target") else { continue };
        let help = "write \"spin-up:3.2\", { url = \"https://…\" } or { path = \"…\" }";
        let key = if table.has("path") { "path" } else { "url" };
        table.need(key, help).and_then(Node::full_text);
        table.close();
    }
}
