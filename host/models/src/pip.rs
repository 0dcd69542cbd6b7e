//! Which package index pip is configured for, so that a user behind a mirror
//! has nothing to set up twice.
//!
//! Source: <https://pip.pypa.io/en/stable/topics/configuration/>. The
//! environment wins over files, and of the files the later one wins.

use std::ffi::OsString;
use std::path::PathBuf;

/// The index that pip uses when nothing is configured.
pub(crate) const DEFAULT_INDEX: &str = "https://pypi.org/simple";

/// The address of the index, as configured, and the place that says so.
pub(crate) fn index_url(
    env: &dyn Fn(&str) -> Option<OsString>,
    read: &dyn Fn(&PathBuf) -> Option<String>,
) -> (String, String) {
    if let Some(url) = env("PIP_INDEX_URL").and_then(|url| url.into_string().ok())
        && !url.trim().is_empty()
    {
        return (url.trim().to_owned(), "PIP_INDEX_URL".to_owned());
    }
    config_files(env)
        .into_iter()
        .rev()
        .find_map(|path| {
            let url = index_in(&read(&path)?)?;
            Some((url, path.display().to_string()))
        })
        .unwrap_or_else(|| (DEFAULT_INDEX.to_owned(), "the default".to_owned()))
}

fn config_files(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    // pip reads no file at all when PIP_CONFIG_FILE is the null device.
    let extra = set("PIP_CONFIG_FILE").map(PathBuf::from);
    if extra.as_deref() == Some("/dev/null".as_ref()) {
        return Vec::new();
    }
    let mut files = Vec::new();
    let global = set("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".into());
    files.extend(std::env::split_paths(&global).map(|dir| dir.join("pip/pip.conf")));
    files.push("/etc/pip.conf".into());
    if let Some(home) = set("HOME").map(PathBuf::from) {
        files.push(home.join(".pip/pip.conf"));
        let config = set("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        files.push(config.join("pip/pip.conf"));
    }
    files.extend(extra);
    files
}

/// The value of `index-url` under `[global]` in the text of a `pip.conf`.
fn index_in(text: &str) -> Option<String> {
    let mut section = "";
    let mut found = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.trim();
        } else if section == "global"
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once(['=', ':'])
            && key.trim().replace('_', "-") == "index-url"
            && !value.trim().is_empty()
        {
            found = Some(value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn ask(env: &[(&str, &str)], files: &[(&str, &str)]) -> String {
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        let files: BTreeMap<PathBuf, _> = files.iter().map(|(p, t)| (p.into(), *t)).collect();
        index_url(&|name| env.get(name).map(Into::into), &|path| files.get(path).map(|text| (*text).to_owned())).0
    }

    #[test]
    fn environment_beats_user_file_beats_machine_file_beats_default() {
        let machine = ("/etc/pip.conf", "[global]\nindex-url = https://machine/simple\n");
        let user = ("/h/.config/pip/pip.conf", "[global]\nindex_url: https://user/simple\n");
        let home = ("HOME", "/h");
        assert_eq!(ask(&[], &[]), DEFAULT_INDEX);
        assert_eq!(ask(&[home], &[machine]), "https://machine/simple");
        assert_eq!(ask(&[home], &[machine, user]), "https://user/simple");
        let set = ("PIP_INDEX_URL", "https://env/simple");
        assert_eq!(ask(&[home, set], &[machine, user]), "https://env/simple");
        assert_eq!(ask(&[home, ("PIP_INDEX_URL", "")], &[user]), "https://user/simple");
        assert_eq!(ask(&[home, ("PIP_CONFIG_FILE", "/dev/null")], &[machine, user]), DEFAULT_INDEX);
        assert_eq!(
            ask(&[home, ("PIP_CONFIG_FILE", "/x")], &[user, ("/x", "[global]\nindex-url=https://x")]),
            "https://x"
        );
    }

    #[test]
    fn other_sections_comments_and_empty_values_do_not_count() {
        let text = "index-url = a\n[install]\nindex-url = b\n[global]\n# index-url = c\n; index-url = d\n\
                    index-url =\nextra-index-url = e\n";
        assert_eq!(index_in(text), None);
        assert_eq!(
            index_in("[global]\r\nindex-url = https://u:p@h:8/x?y=z\r\n").as_deref(),
            Some("https://u:p@h:8/x?y=z")
        );
    }
}
