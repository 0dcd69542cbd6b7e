//! `build`: how a component is made.

use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::reader::Node;

/// `[component.ID.build]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The commands for a shell, in order.
    pub commands: Vec<String>,
    /// Where they run, joined to the manifest's folder.
    pub workdir: PathBuf,
    /// Glob patterns of what they depend on, from `workdir`.
    pub watch: Vec<String>,
}

impl Build {
    /// The commands as one line for a shell in the current folder.
    #[must_use]
    pub fn shell_line(&self) -> String {
        let commands = self.commands.join(" && ");
        match self.workdir.as_os_str().is_empty() {
            true => commands,
            false => format!("(cd {} && {commands})", self.workdir.display()),
        }
    }
}

const HELP: &str = "write `command = \"cargo build --release\"`, or a list of commands";

/// Reads `build` of a component.
pub(crate) fn read(node: Node<'_>, base: &Path) -> Option<Build> {
    let table = node.table("`build`")?;
    let commands = table.need("command", HELP).and_then(commands);
    let workdir = table.get("workdir").map_or(Some(""), Node::text);
    let watch = table.get("watch").map_or(Some(Vec::new()), Node::texts);
    for (pattern, node) in watch.iter().flatten() {
        refuse_nonsense(pattern, *node);
    }
    table.close();
    Some(Build {
        commands: commands?,
        workdir: base.join(workdir?),
        watch: watch?.into_iter().map(|(pattern, _)| pattern.to_owned()).collect(),
    })
}

fn refuse_nonsense(pattern: &str, node: Node<'_>) {
    if let Err(error) = Pattern::new(pattern) {
        let message = format!("`{pattern}` is no pattern: {} at character {}", error.msg, error.pos + 1);
        node.fail::<()>(message, "write `**` only as a whole segment, and close each `[`");
    }
}

/// Reads `build` of a profile, which has a command only.
pub(crate) fn of_profile(node: Node<'_>) -> Option<Vec<String>> {
    let table = node.table("`build` of the profile")?;
    let commands = table.need("command", HELP).and_then(commands);
    table.close();
    commands
}

fn commands(node: Node<'_>) -> Option<Vec<String>> {
    if node.is_text() {
        return Some(vec![node.full_text()?.to_owned()]);
    }
    if !node.is_list() {
        return node.fail("`command` must be a string or a list of strings", HELP);
    }
    Some(node.texts()?.into_iter().map(|(command, _)| command.to_owned()).collect())
}
