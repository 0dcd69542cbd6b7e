//! Where a component is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::digest::Digest;

/// The beginning of every reference.
const SCHEME: &str = "oci://";
/// What stands for the newest where neither a tag nor a digest is named.
const NEWEST: &str = "latest";

/// `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]`.
///
/// The host has to be named, since a reference without one would silently be one
/// of Docker's registry. Without a tag and a digest the tag is `latest`. A digest
/// is what is pulled, whatever the tag stands for by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    inner: oci_spec::distribution::Reference,
    digest: Option<Digest>,
}

/// Text that is no reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` names no component in a registry: {why}; write oci://HOST/REPOSITORY:TAG or \
     oci://HOST/REPOSITORY@sha256:DIGEST"
)]
pub struct InvalidReference {
    shown: String,
    why: String,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    /// The text is not one; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        let invalid = |why: &str| InvalidReference {
            shown: text.chars().take(200).flat_map(char::escape_debug).collect(),
            why: why.to_owned(),
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| invalid("it does not begin with oci://"))?;
        let (host, repository) = rest.split_once('/').ok_or_else(|| invalid("it names no repository"))?;
        let is_host = host == "localhost" || host.contains(['.', ':']);
        if !is_host {
            return Err(invalid("it does not begin with a host, which has a dot or a port, or is localhost"));
        }
        if let Some((_, port)) = host.split_once(':')
            && port.parse::<u16>().is_err()
        {
            return Err(invalid("its port is not a number up to 65535"));
        }
        // Looked at first, since the message of the library does not name it.
        let digest = match repository.split_once('@') {
            Some((_, digest)) => Some(digest.parse::<Digest>().map_err(|error| invalid(&error.to_string()))?),
            None => None,
        };
        let inner: oci_spec::distribution::Reference =
            rest.parse().map_err(|error: oci_spec::distribution::ParseError| invalid(&error.to_string()))?;
        if inner.registry() != host {
            return Err(invalid("its host is another name of one that is written differently"));
        }
        Ok(Self { inner, digest })
    }

    /// Host and port.
    #[must_use]
    pub fn registry(&self) -> &str {
        self.inner.registry()
    }

    /// The repository within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        self.inner.repository()
    }

    /// What a component is called there: the last part of the repository.
    #[must_use]
    pub fn name(&self) -> &str {
        self.repository().rsplit('/').next().unwrap_or_default()
    }

    /// The tag, if one is named or meant.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.inner.tag().or_else(|| self.digest.is_none().then_some(NEWEST))
    }

    /// The digest that is pinned.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same component, pinned.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Self {
        Self { inner: self.inner.clone_with_digest(digest.to_string()), digest: Some(digest.clone()) }
    }

    /// Host and port of whoever answers for the registry, which for Docker's is another.
    pub(crate) fn authority(&self) -> &str {
        self.inner.resolve_registry()
    }

    /// The host without its port.
    pub(crate) fn host(&self) -> &str {
        self.registry().split(':').next().unwrap_or_default()
    }

    /// Whether the registry is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        Self::parse(text)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_read_and_written() {
        for (text, registry, tag) in [
            ("oci://ghcr.io/acme/shop:1.2", "ghcr.io", Some("1.2")),
            ("oci://127.0.0.1:5000/shop:x", "127.0.0.1:5000", Some("x")),
            ("oci://localhost/a/b/c:1", "localhost", Some("1")),
            (&format!("oci://ghcr.io/acme/shop@{DIGEST}"), "ghcr.io", None),
            (&format!("oci://ghcr.io/acme/shop:1@{DIGEST}"), "ghcr.io", Some("1")),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!((reference.registry(), reference.tag()), (registry, tag), "{text}");
            assert_eq!(reference.digest().is_some(), text.contains('@'));
        }
        assert_eq!(Reference::parse("oci://ghcr.io/acme/shop").unwrap().tag(), Some("latest"));
    }

    #[test]
    fn other_text_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("ghcr.io/acme/shop", "does not begin with oci://"),
            ("https://ghcr.io/acme/shop", "does not begin with oci://"),
            ("oci://ghcr.io", "names no repository"),
            ("oci://acme/shop:1", "does not begin with a host"),
            ("oci://ghcr.io:99999/shop", "port"),
            ("oci://ghcr.io/Acme/shop", "invalid reference format"),
            ("oci://ghcr.io/acme/../shop", "invalid reference format"),
            ("oci://ghcr.io/acme/shop?x=1", "invalid reference format"),
            ("oci://user@ghcr.io/acme/shop", "invalid reference format"),
            ("oci://ghcr.io/acme/shop@sha256:12", "`sha256:12` is not a digest"),
            ("oci://ghcr.io/acme/shop@sha512:12", "`sha512:12` is not a digest"),
            ("oci://index.docker.io/acme/shop", "another name"),
        ] {
            let error = Reference::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("write oci://HOST/REPOSITORY:TAG"), "{error}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (text, loopback) in [
            ("oci://localhost:5000/x", true),
            ("oci://127.8.9.1:5000/x", true),
            ("oci://10.0.0.1:5000/x", false),
            ("oci://localhost.example.org/x", false),
            ("oci://127.0.0.1.example.org/x", false),
        ] {
            assert_eq!(Reference::parse(text).unwrap().is_loopback(), loopback, "{text}");
        }
    }
}
