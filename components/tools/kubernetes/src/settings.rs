//! What the operator permits, in the component's `environment` of spin.toml:
//!
//! | variable | meaning | without it |
//! |---|---|---|
//! | `KUBERNETES_API` | the origin of the API server | `https://kubernetes.default.svc` |
//! | `KUBERNETES_NAMESPACES` | the namespaces that are looked at, between commas; `*` for all | none |
//! | `KUBERNETES_CLUSTER` | `read`: also what is in no namespace, such as nodes | not |
//! | `KUBERNETES_SCALE` | how many replicas a deployment may get, such as `1..10` | none are scaled |

use std::ops::RangeInclusive;

use url::Url;

use crate::name;
use crate::trouble::quoted;

const API: &str = "KUBERNETES_API";
const NAMESPACES: &str = "KUBERNETES_NAMESPACES";
const CLUSTER: &str = "KUBERNETES_CLUSTER";
const SCALE: &str = "KUBERNETES_SCALE";

/// Where pods find their API server.
const DEFAULT_API: &str = "https://kubernetes.default.svc";

/// Where settings are.
const PLACE: &str = "in `environment` of the component's table of spin.toml";

/// The namespaces that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Namespaces {
    All,
    /// At least one.
    These(Vec<String>),
}

/// What of the cluster is looked at that is in no namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cluster {
    Nothing,
    Read,
}

/// What the operator permits.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// An origin.
    pub(crate) api: Url,
    namespaces: Namespaces,
    cluster: Cluster,
    scale: Option<RangeInclusive<u32>>,
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// One cannot be read, or no namespace is granted.
    pub(crate) fn read(environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name: &str| environment(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let api = set(API).unwrap_or_else(|| DEFAULT_API.to_owned());
        let namespaces = set(NAMESPACES).ok_or_else(|| {
            format!(
                "no namespace is granted to this tool. Its operator can grant some with \
                 `{NAMESPACES} = \"default, shop\"`, or all with `\"*\"`, {PLACE}"
            )
        })?;
        Ok(Self {
            api: origin(&api)?,
            namespaces: read_namespaces(&namespaces)?,
            cluster: match set(CLUSTER).as_deref() {
                None => Cluster::Nothing,
                Some("read") => Cluster::Read,
                Some(other) => return Err(wrong(CLUSTER, other, "\"read\"")),
            },
            scale: set(SCALE).map(|text| range(&text)).transpose()?,
        })
    }

    /// The namespace to look in: that which is asked for, or the only one. None for all.
    ///
    /// # Errors
    /// It is not granted, or it cannot be told which is meant.
    pub(crate) fn namespace(&self, asked: Option<&str>) -> Result<Option<String>, String> {
        let asked = asked.map(|asked| name::label("namespace", asked)).transpose()?;
        match (&self.namespaces, asked) {
            (Namespaces::All, asked) => Ok(asked.map(str::to_owned)),
            (Namespaces::These(all), Some(asked)) if all.iter().any(|one| one == asked) => Ok(Some(asked.to_owned())),
            (Namespaces::These(all), Some(asked)) => Err(format!(
                "the namespace {} is not granted to this tool; it may look at {}. Its operator can grant it with \
                 `{NAMESPACES}` {PLACE}",
                quoted(asked),
                all.join(", ")
            )),
            (Namespaces::These(all), None) => match all.as_slice() {
                [one] => Ok(Some(one.clone())),
                _ => Err(format!("name a namespace; this tool may look at {}", all.join(", "))),
            },
        }
    }

    /// The namespace to look for one thing in.
    ///
    /// # Errors
    /// As for [`Settings::namespace`], and none is named where all are granted.
    pub(crate) fn one_namespace(&self, asked: Option<&str>) -> Result<String, String> {
        self.namespace(asked)?.ok_or_else(|| "name the namespace that it is in".to_owned())
    }

    /// Whether something that is in no namespace may be looked at.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn cluster(&self, kind: &str) -> Result<(), String> {
        match self.cluster {
            Cluster::Read => Ok(()),
            Cluster::Nothing => Err(format!(
                "{kind} are in no namespace, and not granted to this tool. Its operator can grant what is in none with \
                 `{CLUSTER} = \"read\"` {PLACE}"
            )),
        }
    }

    /// Whether a deployment may get so many replicas.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn replicas(&self, asked: u32) -> Result<(), String> {
        match &self.scale {
            None => Err(format!(
                "this tool may only look: nothing is scaled. Its operator can permit it with `{SCALE} = \"1..10\"`, \
                 which is from one replica to ten, {PLACE}"
            )),
            Some(range) if range.contains(&asked) => Ok(()),
            Some(range) => Err(format!(
                "{asked} replicas are not permitted: its operator permits {} to {}",
                range.start(),
                range.end()
            )),
        }
    }
}

fn wrong(variable: &str, value: &str, write: &str) -> String {
    format!("{variable} is {}, which means nothing; its operator has to write {write} {PLACE}", quoted(value))
}

fn origin(text: &str) -> Result<Url, String> {
    let wrong = || wrong(API, text, "an origin, such as \"https://kubernetes.default.svc\",");
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !matches!(url.scheme(), "http" | "https") || !is_origin || has_user {
        return Err(wrong());
    }
    Ok(url)
}

fn read_namespaces(text: &str) -> Result<Namespaces, String> {
    if text == "*" {
        return Ok(Namespaces::All);
    }
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    match names.iter().any(|one| name::label("namespace", one).is_err()) || names.is_empty() {
        true => Err(wrong(NAMESPACES, text, "names between commas, or \"*\",")),
        false => Ok(Namespaces::These(names)),
    }
}

/// `LEAST..MOST`, both of them in it.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = text.split_once("..").and_then(|(least, most)| Some(number(least)?..=number(most)?));
    range.filter(|range| !range.is_empty()).ok_or_else(|| wrong(SCALE, text, "LEAST..MOST, such as \"1..10\","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_granted_by_default() {
        let none = read(&[]).unwrap_err();
        assert!(none.contains("no namespace is granted") && none.contains("KUBERNETES_NAMESPACES"), "{none}");
        let some = read(&[(NAMESPACES, "shop")]).unwrap();
        assert_eq!(some.api.as_str(), "https://kubernetes.default.svc/");
        assert_eq!(some.namespace(None), Ok(Some("shop".to_owned())));
        assert!(some.namespace(Some("kube-system")).unwrap_err().contains("not granted"));
        assert!(some.cluster("nodes").unwrap_err().contains("KUBERNETES_CLUSTER"));
        assert!(some.replicas(1).unwrap_err().contains("KUBERNETES_SCALE"));
    }

    #[test]
    fn namespaces_are_those_that_are_named() {
        let some = read(&[(NAMESPACES, " shop,staging ,")]).unwrap();
        assert_eq!(some.namespace(Some("staging")), Ok(Some("staging".to_owned())));
        assert_eq!(some.namespace(None), Err("name a namespace; this tool may look at shop, staging".to_owned()));
        let all = read(&[(NAMESPACES, "*"), (CLUSTER, "read")]).unwrap();
        assert_eq!((all.namespace(None), all.cluster("nodes")), (Ok(None), Ok(())));
        assert!(all.one_namespace(None).is_err());
        assert!(all.namespace(Some("a/../b")).is_err());
    }

    #[test]
    fn replicas_are_within_a_range() {
        let some = read(&[(NAMESPACES, "shop"), (SCALE, "1..3")]).unwrap();
        assert_eq!((some.replicas(1), some.replicas(3)), (Ok(()), Ok(())));
        for asked in [0, 4, u32::MAX] {
            assert!(some.replicas(asked).unwrap_err().contains("permits 1 to 3"), "{asked}");
        }
    }

    #[test]
    fn what_means_nothing_is_told_with_its_name() {
        for (name, value) in [
            (API, "kubernetes"),
            (API, "https://a.example/api"),
            (API, "ftp://a.example"),
            (API, "https://me:pass@a.example"),
            (NAMESPACES, ","),
            (NAMESPACES, "Shop"),
            (NAMESPACES, "shop,*"),
            (CLUSTER, "write"),
            (SCALE, "yes"),
            (SCALE, "3"),
            (SCALE, "3..1"),
            (SCALE, "-1..3"),
        ] {
            let error = read(&[(NAMESPACES, "shop"), (name, value)].iter().rev().copied().collect::<Vec<_>>());
            let error = error.unwrap_err();
            assert!(error.starts_with(name), "{name} {value}: {error}");
        }
    }
}
