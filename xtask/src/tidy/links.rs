//! Relative links in Markdown lead somewhere.

use super::{File, Problem};

/// Checks the links of a Markdown file; `exists` tells for a path from the root.
pub(super) fn check(file: &File, exists: &dyn Fn(&str) -> bool) -> Vec<Problem> {
    if file.ending() != "md" {
        return Vec::new();
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut problems = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(&prose(line)) {
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            let path = target.split('#').next().unwrap_or_default();
            if elsewhere || path.is_empty() {
                continue;
            }
            match resolve(folder, path) {
                Some(path) if exists(&path) => {}
                _ => problems.push(Problem::line(file, index, format!("the link `{target}` leads nowhere"))),
            }
        }
    }
    problems
}

/// The line without its inline code.
fn prose(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// What stands between `](` and `)`.
fn targets(line: &str) -> Vec<String> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|target| target.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The path from the root; none if it leaves the checkout.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.strip_prefix('/');
    if absolute.is_none() {
        parts.extend(folder.split('/').filter(|part| !part.is_empty()));
    }
    for part in absolute.unwrap_or(path).split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn broken(path: &str, text: &str) -> usize {
        check(&file(path, text), &|path| ["a.md", "docs/b.md", "docs"].contains(&path)).len()
    }

    #[test]
    fn links_are_followed_from_where_they_stand() {
        assert_eq!(broken("a.md", "[b](docs/b.md) and [b](./docs/b.md#part) and [d](docs/)\n"), 0);
        assert_eq!(broken("docs/b.md", "[a](../a.md) and [a](/a.md)\n"), 0);
        assert_eq!(broken("docs/b.md", "[a](a.md)\n"), 1);
        assert_eq!(broken("a.md", "[a](../a.md)\n"), 1);
        assert_eq!(broken("a.md", "![picture](none.png) and [x](y \"title\")\n"), 2);
    }

    #[test]
    fn other_links_and_code_are_left_alone() {
        assert_eq!(broken("a.md", "[a](https://example.org/x) [b](#part) [c](mailto:a@b)\n"), 0);
        assert_eq!(broken("a.md", "`[a](b)`\n```\n[a](b)\n```\n"), 0);
        assert_eq!(broken("a.md", "```\n```\n[a](b)\n"), 1);
    }
}
