//! `source`: where the Wasm of a component is.
//!
//! Source: <https://spinframework.dev/writing-apps#the-component-source>.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use semver::Version;
use url::Url;

use crate::names;
use crate::reader::{Node, Table};

/// Where the Wasm of a component is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, joined to the manifest's folder.
    Path(PathBuf),
    /// A file to download.
    Url(Download),
    /// A package of a registry.
    Registry(Package<Version>),
    /// What is in a registry under a digest. It is Nala's own: Spin takes it for a path.
    Oci(Pinned),
    /// One that the host carries. It is Nala's own as well.
    Builtin(Builtin),
}

/// A component that the host carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Serves tools by the Model Context Protocol: `nala:mcp`.
    Mcp,
}

impl Builtin {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "nala:mcp",
        }
    }
}

impl Source {
    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Url(_) | Self::Registry(_) | Self::Oci(_) | Self::Builtin(_) => None,
        }
    }
}

/// What a person needs to know it by.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Url(Download { url, .. }) => f.write_str(url),
            Self::Oci(pinned) => f.write_str(pinned.as_str()),
            Self::Builtin(builtin) => f.write_str(builtin.name()),
            Self::Registry(Package { registry, package, version }) => {
                write!(f, "{package}@{version} of ")?;
                match registry {
                    Some(registry) => f.write_str(registry),
                    None => f.write_str("the default registry"),
                }
            }
        }
    }
}

/// `oci://HOST/REPOSITORY@sha256:…`: with a digest, so that it is the same for ever.
/// Whether the rest can be a reference is for whoever asks the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned(String);

impl Pinned {
    /// The whole reference.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file of the web, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Where: http or https, with a host.
    pub url: String,
    /// What its bytes must have.
    pub digest: Sha256,
}

/// A package of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package<V> {
    /// The registry's host, with a port if it has one; none is the default of
    /// whoever loads it.
    pub registry: Option<String>,
    /// `namespace:name`
    pub package: String,
    /// Which version.
    pub version: V,
}

/// A SHA-256 digest, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256(pub [u8; 32]);

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits")]
pub struct InvalidDigest;

impl FromStr for Sha256 {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix("sha256:").ok_or(InvalidDigest)?.as_bytes();
        let mut bytes = [0; 32];
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(InvalidDigest) };
        if pairs.len() != bytes.len() {
            return Err(InvalidDigest);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn digit(ascii: u8) -> Result<u8, InvalidDigest> {
    let value = char::from(ascii).to_digit(16).ok_or(InvalidDigest)?;
    u8::try_from(value).map_err(|_| InvalidDigest)
}

/// What a source in a registry begins with.
const OCI: &str = "oci://";
/// What a component of the host's own begins with.
const BUILTIN: &str = "nala:";

/// Reads a `source`; paths start at `base`.
pub(crate) fn read(node: Node<'_>, base: &Path) -> Option<Source> {
    if node.is_text() {
        let text = node.full_text()?;
        return match () {
            () if text.starts_with(OCI) => pinned(node, text).map(Source::Oci),
            () if text == Builtin::Mcp.name() => Some(Source::Builtin(Builtin::Mcp)),
            () if text.starts_with(BUILTIN) => node
                .fail(format!("the host carries no component `{text}`"), "write \"nala:mcp\", or the path of a file"),
            () => Some(Source::Path(base.join(text))),
        };
    }
    if !node.is_table() {
        return node.fail(
            "`source` must be the path of a Wasm component, or a table that says where it is",
            "write \"path/to/component.wasm\", \"oci://HOST/REPOSITORY@sha256:…\", { url = \"…\", digest = \
             \"sha256:…\" } or { registry = \"…\", package = \"namespace:name\", version = \"1.0.0\" }",
        );
    }
    let table = node.table("`source`")?;
    let source = match table.has("url") || table.has("digest") {
        true => download(&table).map(Source::Url),
        false => registered(&table).map(Source::Registry),
    };
    table.close();
    source
}

fn pinned(node: Node<'_>, text: &str) -> Option<Pinned> {
    let digest = text.split_once('@').map(|(_, digest)| digest);
    match digest.map(str::parse::<Sha256>) {
        Some(Ok(_)) => Some(Pinned(text.to_owned())),
        Some(Err(error)) => {
            let help = "write the digest as `nala-host push` and `nala-host pull` print it";
            node.fail(format!("`{text}` is not pinned: {error}"), help)
        }
        None => node.fail(
            format!("`{text}` may be another component tomorrow, since a tag can be moved"),
            format!("name its digest, {OCI}HOST/REPOSITORY@sha256:…, which `nala-host pull {text}` prints"),
        ),
    }
}

/// Reads `url` and `digest`.
pub(crate) fn download(table: &Table<'_>) -> Option<Download> {
    let url = table.need("url", "write `url = \"https://…\"`").and_then(url);
    let help = "write `digest = \"sha256:…\"`, as `sha256sum` prints it for the file";
    let digest = table.need("digest", help).and_then(|node| match node.text()?.parse() {
        Ok(digest) => Some(digest),
        Err(error) => node.fail(format!("`{}` is no digest: {error}", node.text()?), help),
    });
    Some(Download { url: url?, digest: digest? })
}

fn url(node: Node<'_>) -> Option<String> {
    let text = node.text()?;
    let help = "write the whole address, such as \"https://example.com/component.wasm\"";
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Some(text.to_owned()),
        Ok(url) => node.fail(format!("a source cannot be fetched by `{}`", url.scheme()), help),
        Err(error) => node.fail(format!("`{text}` is no URL: {error}"), help),
    }
}

fn registered(table: &Table<'_>) -> Option<Package<Version>> {
    let registry = table.get("registry").map(registry);
    let package = table.need("package", "write `package = \"namespace:name\"`").and_then(package);
    let version = table.need("version", "write `version = \"1.0.0\"`").and_then(|node| match node.text()?.parse() {
        Ok(version) => Some(version),
        Err(error) => {
            let message = format!("`{}` is no version: {error}", node.text()?);
            node.fail(message, "write all three numbers, such as \"1.0.0\"")
        }
    });
    Some(Package {
        registry: registry.map_or(Some(None), |read| read.map(Some))?,
        package: package?,
        version: version?,
    })
}

/// Reads the host of a registry.
pub(crate) fn registry(node: Node<'_>) -> Option<String> {
    let text = node.text()?;
    let authority = Url::parse(&format!("https://{text}/"));
    let plain = !text.contains(['/', '@', '?', '#', '\\']) && !text.trim().is_empty();
    match authority {
        Ok(_) if plain => Some(text.to_owned()),
        _ => node.fail(format!("`{text}` is no registry"), "write its host alone, such as \"registry.example.com\""),
    }
}

/// Reads the name of a package.
pub(crate) fn package(node: Node<'_>) -> Option<String> {
    let text = node.text()?;
    match names::check_package(text) {
        Ok(()) => Some(text.to_owned()),
        Err(why) => node.fail(format!("`{text}` is no package: {why}"), "write `package = \"namespace:name\"`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_and_written() {
        let text = format!("sha256:{}", "0aF9".repeat(16));
        let digest: Sha256 = text.parse().unwrap();
        assert_eq!(digest.0[..2], [0x0a, 0xf9]);
        assert_eq!(digest.to_string(), text.to_lowercase());
        for wrong in ["", "sha256:", "sha256:0a", &text[7..], &text[..70], &format!("{text}0"), &text.replace('F', "g")]
        {
            assert_eq!(wrong.parse::<Sha256>(), Err(InvalidDigest), "{wrong}");
        }
        // Two bytes of one character are no two digits.
        assert_eq!(text.replacen("0a", "é", 1).parse::<Sha256>(), Err(InvalidDigest));
    }
}
