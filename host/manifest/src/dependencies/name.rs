//! What a dependency is called, and which imports that names.

use std::fmt;
use std::str::FromStr;

use semver::Version;

use crate::names::{self, Style};

/// Which imports a dependency answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyName {
    /// The import of this name.
    Plain(String),
    /// Imports of a package: one interface, or all where none is named.
    Package {
        /// `namespace:name`
        package: String,
        /// The interface.
        interface: Option<String>,
        /// The package's version.
        version: Option<Version>,
    },
}

impl DependencyName {
    /// Whether it names an import of a component, which is called as the component
    /// model calls it: `name`, `namespace:package/interface` or
    /// `namespace:package/interface@version`. A version names all that fit it by the
    /// rules of <https://semver.org>, so that a dependency need not be renamed with each
    /// release of an interface; without one, every version is named.
    #[must_use]
    pub fn answers(&self, import: &str) -> bool {
        let (path, of_import) = import.split_once('@').unwrap_or((import, ""));
        match self {
            Self::Plain(name) => name == import,
            Self::Package { package, interface, version } => {
                let Some((of, name)) = path.split_once('/') else { return false };
                let fits = |version: &Version| of_import.parse().is_ok_and(|other| line(version) == line(&other));
                package == of
                    && interface.as_ref().is_none_or(|interface| interface == name)
                    && version.as_ref().is_none_or(fits)
            }
        }
    }
}

impl fmt::Display for DependencyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) => f.write_str(name),
            Self::Package { package, interface, version } => {
                f.write_str(package)?;
                interface.iter().try_for_each(|interface| write!(f, "/{interface}"))?;
                version.iter().try_for_each(|version| write!(f, "@{version}"))
            }
        }
    }
}

/// Text that is no name of a dependency, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be the name of a dependency: {why}", text.escape_debug())]
pub struct InvalidName {
    text: String,
    why: String,
}

impl FromStr for DependencyName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        parse_name(text).map_err(|why| InvalidName { text: text.to_owned(), why })
    }
}

/// Reads a name; the error says why it is none.
pub(super) fn parse_name(text: &str) -> Result<DependencyName, String> {
    if !text.contains([':', '/']) {
        return names::check(text, Style::Kebab).map(|()| DependencyName::Plain(text.to_owned()));
    }
    let (path, version) = match text.split_once('@') {
        None => (text, None),
        Some((path, version)) => (path, Some(version.parse::<Version>().map_err(|error| error.to_string())?)),
    };
    let (package, interface) = match path.split_once('/') {
        None => (path, None),
        Some((package, interface)) => (package, Some(interface)),
    };
    names::check_package(package)?;
    if let Some(interface) = interface {
        names::check(interface, Style::Kebab)?;
    }
    Ok(DependencyName::Package { package: package.to_owned(), interface: interface.map(str::to_owned), version })
}

/// The first two of `names` that would answer the same imports: of the same
/// package, unless their versions do not fit each other or their interfaces
/// differ.
pub(crate) fn conflict<'n>(
    names: impl Iterator<Item = &'n DependencyName> + Clone,
) -> Option<(&'n DependencyName, &'n DependencyName)> {
    let mut rest = names;
    while let Some(one) = rest.next() {
        if let Some(other) = rest.clone().find(|other| overlap(one, other)) {
            return Some((one, other));
        }
    }
    None
}

fn overlap(one: &DependencyName, other: &DependencyName) -> bool {
    let (
        DependencyName::Package { package: package_a, interface: interface_a, version: version_a },
        DependencyName::Package { package: package_b, interface: interface_b, version: version_b },
    ) = (one, other)
    else {
        return false;
    };
    let versions_differ = matches!((version_a, version_b), (Some(a), Some(b)) if line(a) != line(b));
    let interfaces_differ = matches!((interface_a, interface_b), (Some(a), Some(b)) if a != b);
    package_a == package_b && !versions_differ && !interfaces_differ
}

/// What all versions have in common that fit a version, by the rules of
/// <https://semver.org>.
fn line(version: &Version) -> Version {
    let mut line = Version { build: semver::BuildMetadata::EMPTY, ..version.clone() };
    if !line.pre.is_empty() {
        return line;
    }
    if line.major > 0 {
        line.minor = 0;
    }
    if line.major > 0 || line.minor > 0 {
        line.patch = 0;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_answers_what_fits_it() {
        for (name, answered, other) in [
            ("plain", &["plain"][..], &["plain2", "x:y/plain", "plain@1.0.0"][..]),
            ("x:y", &["x:y/a", "x:y/b@1.0.0", "x:y/b@0.2.0-rc"], &["x:z/a", "y", "x:y", "x:yy/a"]),
            ("x:y/a", &["x:y/a", "x:y/a@3.1.0"], &["x:y/b", "x:y/ab"]),
            ("x:y@1.2.0", &["x:y/a@1.0.0", "x:y/b@1.9.3"], &["x:y/a", "x:y/a@2.0.0", "x:y/a@0.1.0", "x:y/a@1.2"]),
            ("x:y/a@0.2.1", &["x:y/a@0.2.0", "x:y/a@0.2.9"], &["x:y/a@0.3.0", "x:y/b@0.2.1", "x:y/a@0.2.1-rc"]),
            ("x:y/a@0.2.0-rc", &["x:y/a@0.2.0-rc"], &["x:y/a@0.2.0", "x:y/a@0.2.0-rd"]),
        ] {
            let name = parse_name(name).unwrap();
            for import in answered {
                assert!(name.answers(import), "{name} {import}");
            }
            for import in other {
                assert!(!name.answers(import), "{name} {import}");
            }
        }
    }
}
