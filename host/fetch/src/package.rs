//! Which repository of which registry a package is, by the rule of wkg.
//!
//! `namespace:name` is the repository `namespace/name` of the registry, behind a prefix
//! and at another host where the registry says so of itself, under the path below. Each
//! version is the tag of that name.
//!
//! Source: <https://github.com/bytecodealliance/wasm-pkg-tools>, the crate
//! `wasm-pkg-client`.

use nala_oci::Reference;
use serde::Deserialize;

use crate::error::Error;

/// Where a registry says how it is used.
pub(crate) const WELL_KNOWN: &str = "/.well-known/wasm-pkg/registry.json";

/// What a registry says of itself. What it says beside is not of use here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    preferred_protocol: Option<String>,
    #[serde(default)]
    oci: Oci,
    // As it was first written.
    oci_registry: Option<String>,
    oci_namespace_prefix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Oci {
    registry: Option<String>,
    namespace_prefix: Option<String>,
}

impl Metadata {
    pub(crate) fn read(registry: &str, document: &[u8]) -> Result<Self, Error> {
        let wrong = |why: String| Error::Metadata { registry: registry.to_owned(), why };
        let metadata: Self = serde_json::from_slice(document).map_err(|error| wrong(error.to_string()))?;
        match metadata.preferred_protocol.as_deref() {
            None | Some("oci") => Ok(metadata),
            // One that can be spoken to in two ways is spoken to in ours.
            Some(_) if metadata.oci.registry.is_some() || metadata.oci_registry.is_some() => Ok(metadata),
            Some(other) => {
                Err(wrong(format!("it is spoken to by `{}`, and not as an OCI registry", other.escape_debug())))
            }
        }
    }

    /// The repository of a package with a tag.
    pub(crate) fn reference(&self, registry: &str, package: &str, tag: &str) -> Result<Reference, Error> {
        let host = self.oci.registry.as_ref().or(self.oci_registry.as_ref()).map_or(registry, String::as_str);
        let prefix = self.oci.namespace_prefix.as_ref().or(self.oci_namespace_prefix.as_ref());
        let prefix = prefix.map_or("", String::as_str);
        Ok(Reference::parse(&format!("oci://{host}/{prefix}{}:{tag}", package.replace(':', "/")))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(document: &str) -> Result<String, Error> {
        let metadata = Metadata::read("r.example", document.as_bytes())?;
        Ok(metadata.reference("r.example", "acme:shop", "1.0.0")?.to_string())
    }

    #[test]
    fn packages_are_where_the_registry_says() {
        for (document, expected) in [
            ("{}", "oci://r.example/acme/shop:1.0.0"),
            (r#"{"preferredProtocol":"oci","other":{"x":[1]}}"#, "oci://r.example/acme/shop:1.0.0"),
            (
                r#"{"oci":{"registry":"ghcr.io","namespacePrefix":"web/"},"warg":{"url":"https://w.example"}}"#,
                "oci://ghcr.io/web/acme/shop:1.0.0",
            ),
            (r#"{"preferredProtocol":"warg","oci":{"registry":"ghcr.io"}}"#, "oci://ghcr.io/acme/shop:1.0.0"),
            (r#"{"ociRegistry":"ghcr.io","ociNamespacePrefix":"web/"}"#, "oci://ghcr.io/web/acme/shop:1.0.0"),
        ] {
            assert_eq!(reference(document).unwrap(), expected, "{document}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        for (document, why) in [
            ("", "r.example says of itself what cannot be used"),
            ("[]", "r.example says of itself"),
            (r#"{"preferredProtocol":"warg"}"#, "spoken to by `warg`"),
            (r#"{"oci":{"registry":"../../etc"}}"#, "names no component"),
            (r#"{"oci":{"namespacePrefix":"../"}}"#, "names no component"),
        ] {
            let error = reference(document).unwrap_err().to_string();
            assert!(error.contains(why), "{document}: {error}");
        }
    }
}
