//! What every Cargo.toml holds.

use toml::{Table, Value};

use super::{File, Problem};

/// Checks a manifest.
pub(super) fn check(file: &File) -> Vec<Problem> {
    if !file.path.ends_with("Cargo.toml") {
        return Vec::new();
    }
    let table: Table = match file.text.parse() {
        Ok(table) => table,
        Err(error) => return vec![Problem::file(file, format!("not TOML: {error}"))],
    };
    let mut problems = Vec::new();
    let get = |path: &[&str]| -> Option<&Value> {
        let mut keys = path.iter();
        let mut value = table.get(*keys.next()?)?;
        for key in keys {
            value = value.get(*key)?;
        }
        Some(value)
    };
    if table.contains_key("package") {
        if get(&["lints", "workspace"]).and_then(Value::as_bool) != Some(true) {
            problems.push(Problem::file(file, "no `[lints] workspace = true`: the same lints hold for every crate"));
        }
        for key in ["license", "publish", "edition"] {
            if get(&["package", key, "workspace"]).is_none() {
                problems.push(Problem::file(file, format!("`{key}` is not inherited: write `{key}.workspace = true`")));
            }
        }
    }
    if table.contains_key("workspace") && get(&["workspace", "lints"]).is_none() {
        problems.push(Problem::file(file, "a workspace without `[workspace.lints]`: copy the root's"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    const GOOD: &str = "[package]\nname = \"x\"\nlicense.workspace = true\n\
        publish.workspace = true\nedition.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn a_crate_inherits() {
        assert_eq!(check(&file("x/Cargo.toml", GOOD)), []);
        let without = GOOD.replace("[lints]\nworkspace = true\n", "");
        assert_eq!(check(&file("x/Cargo.toml", &without)).len(), 1);
        let own = GOOD.replace("license.workspace = true", "license = \"GPL-3.0\"");
        assert_eq!(check(&file("x/Cargo.toml", &own)).len(), 1);
    }

    #[test]
    fn a_workspace_has_lints() {
        assert_eq!(check(&file("Cargo.toml", "[workspace]\n")).len(), 1);
        assert_eq!(check(&file("Cargo.toml", "[workspace.lints.rust]\n")), []);
        assert_eq!(check(&file("Cargo.toml", "[workspace\n")).len(), 1);
    }
}
