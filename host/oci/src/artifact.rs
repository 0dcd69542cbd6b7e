//! How a component is laid out in a registry.

use std::collections::BTreeMap;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};

use crate::digest::Digest;
use crate::error::{Error, shown};
use crate::reference::Reference;

/// The media type of a component's config.
pub(crate) const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type of a component.
pub(crate) const LAYER: &str = "application/wasm";
/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What names the parts of an artifact; of what else may stand there nothing matters here.
///
/// Source: <https://github.com/opencontainers/image-spec/blob/main/manifest.md>.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
}

/// What a part is.
///
/// Source: <https://github.com/opencontainers/image-spec/blob/main/descriptor.md>.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: i64,
}

/// What a config says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    created: String,
    author: Option<String>,
    architecture: &'static str,
    os: &'static str,
    layer_digests: Vec<String>,
    component: World,
}

/// What a component asks for and offers, by the names of its interfaces.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct World {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
    target: Option<String>,
}

/// All that is pushed beside the component.
pub(crate) struct Artifact {
    pub(crate) layer_digest: Digest,
    pub(crate) config: Vec<u8>,
    pub(crate) config_digest: Digest,
    pub(crate) manifest: Vec<u8>,
}

impl Artifact {
    /// Describes a component.
    pub(crate) fn of(
        bytes: &[u8],
        annotations: &BTreeMap<String, String>,
        created: SystemTime,
        reference: &Reference,
    ) -> Result<Self, Error> {
        let layer_digest = Digest::of(bytes);
        let config = Config {
            created: DateTime::<Utc>::from(created).to_rfc3339_opts(SecondsFormat::Secs, true),
            author: None,
            architecture: "wasm",
            os: "wasip2",
            layer_digests: vec![layer_digest.to_string()],
            component: world(bytes, reference)?,
        };
        let json = |error: serde_json::Error| Error::Client(error.to_string());
        let config = serde_json::to_vec(&config).map_err(json)?;
        let config_digest = Digest::of(&config);
        let manifest = Manifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            config: descriptor(CONFIG, &config_digest, config.len()),
            layers: vec![descriptor(LAYER, &layer_digest, bytes.len())],
            annotations: (!annotations.is_empty()).then(|| annotations.clone()),
        };
        let manifest = serde_json::to_vec(&manifest).map_err(json)?;
        Ok(Self { layer_digest, config, config_digest, manifest })
    }
}

fn descriptor(media_type: &str, digest: &Digest, bytes: usize) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: digest.to_string(),
        size: i64::try_from(bytes).unwrap_or(i64::MAX),
    }
}

/// The layer that is the component, as a manifest names it: its digest and its size in
/// bytes.
pub(crate) fn layer(manifest: &[u8], reference: &Reference) -> Result<(Digest, u64), Error> {
    let registry = || reference.registry().to_owned();
    let wrong = |why: String| Error::Registry { registry: registry(), why };
    let mismatch = |part, found: &str, wanted| Error::WrongMediaType {
        reference: reference.to_string(),
        part,
        found: shown(found),
        wanted,
    };
    let kind: Kind = serde_json::from_slice(manifest).map_err(|error| wrong(format!("no manifest: {error}")))?;
    if let Some(found) = kind.media_type.as_deref().filter(|found| *found != MANIFEST) {
        return Err(mismatch("manifest", found, MANIFEST));
    }
    let manifest: Manifest =
        serde_json::from_slice(manifest).map_err(|error| wrong(format!("no manifest of an artifact: {error}")))?;
    if manifest.config.media_type != CONFIG {
        return Err(mismatch("config", &manifest.config.media_type, CONFIG));
    }
    let [layer] = manifest.layers.as_slice() else {
        return Err(mismatch("content", &format!("{} layers", manifest.layers.len()), "one layer"));
    };
    if layer.media_type != LAYER {
        return Err(mismatch("layer", &layer.media_type, LAYER));
    }
    let digest = layer.digest.parse().map_err(|error: crate::InvalidDigest| wrong(error.to_string()))?;
    let size = u64::try_from(layer.size).map_err(|_| wrong(format!("a layer of {} bytes", layer.size)))?;
    Ok((digest, size))
}

/// What tells an artifact from an index.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    media_type: Option<String>,
}

/// Reads what a component asks for and offers. It is read through, not validated.
pub(crate) fn world(bytes: &[u8], reference: &Reference) -> Result<World, Error> {
    let no_component = |why: String| Error::NoComponent { reference: reference.to_string(), why };
    if !Parser::is_component(bytes) {
        let why = if Parser::is_core_wasm(bytes) { "it is a core module" } else { "it is something else" };
        return Err(no_component(why.to_owned()));
    }
    let mut world = World { exports: Vec::new(), imports: Vec::new(), target: None };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let damaged = |error: wasmparser::BinaryReaderError| no_component(format!("it is damaged: {error}"));
        match payload.map_err(damaged)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    world.imports.push(import.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    world.exports.push(export.map_err(damaged)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(world)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Reference {
        Reference::parse("oci://registry.example/shop:1").unwrap()
    }

    const COMPONENT: &str = r#"(component
        (import "wasi:http/types@0.2.0" (instance))
        (component (import "inner:only/x" (instance)))
        (core module)
        (instance $i)
        (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#;

    #[test]
    fn the_interfaces_of_a_component_are_read() {
        let world = world(&wat::parse_str(COMPONENT).unwrap(), &reference()).unwrap();
        assert_eq!(world.imports, ["wasi:http/types@0.2.0"]);
        assert_eq!(world.exports, ["wasi:http/incoming-handler@0.2.0"]);
    }

    #[test]
    fn what_is_no_component_is_told() {
        let cut = |bytes: &[u8]| bytes[..bytes.len() - 3].to_vec();
        for (bytes, why) in [
            (wat::parse_str("(module)").unwrap(), "it is a core module; build one for wasm32-wasip2"),
            (b"hello".to_vec(), "it is something else"),
            (Vec::new(), "it is something else"),
            (cut(&wat::parse_str(COMPONENT).unwrap()), "it is damaged: "),
        ] {
            let error = world(&bytes, &reference()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_layout_is_that_of_wkg_and_says_the_same_each_time() {
        let bytes = wat::parse_str(COMPONENT).unwrap();
        let annotations = BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1".to_owned())]);
        let artifact = Artifact::of(&bytes, &annotations, SystemTime::UNIX_EPOCH, &reference()).unwrap();
        let config: serde_json::Value = serde_json::from_slice(&artifact.config).unwrap();
        let digest = Digest::of(&bytes).to_string();
        let expected = serde_json::json!({
            "created": "1970-01-01T00:00:00Z", "author": null, "architecture": "wasm", "os": "wasip2",
            "layerDigests": [digest],
            "component": {
                "exports": ["wasi:http/incoming-handler@0.2.0"], "imports": ["wasi:http/types@0.2.0"], "target": null
            },
        });
        assert_eq!(config, expected);
        let manifest: serde_json::Value = serde_json::from_slice(&artifact.manifest).unwrap();
        let expected = serde_json::json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.wasm.config.v0+json",
                "digest": Digest::of(&artifact.config).to_string(), "size": artifact.config.len()
            },
            "layers": [{ "mediaType": "application/wasm", "digest": digest, "size": bytes.len() }],
            "annotations": { "org.opencontainers.image.version": "1" },
        });
        assert_eq!(manifest, expected);
        assert_eq!(layer(&artifact.manifest, &reference()).unwrap(), (Digest::of(&bytes), bytes.len() as u64));
    }

    #[test]
    fn other_artifacts_are_refused_by_name() {
        let manifest = |config: &str, layers: &[&str]| {
            let descriptor =
                |kind: &str| serde_json::json!({"mediaType": kind, "digest": Digest::of(b"").as_str(), "size": 1});
            let layers: Vec<_> = layers.iter().copied().map(descriptor).collect();
            serde_json::json!({"schemaVersion": 2, "config": descriptor(config), "layers": layers})
        };
        let image = "application/vnd.oci.image.layer.v1.tar+gzip";
        let index = serde_json::json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []});
        let mut negative = manifest(CONFIG, &[LAYER]);
        negative["layers"][0]["size"] = serde_json::json!(-1);
        for (manifest, why) in [
            (
                manifest("application/vnd.oci.image.config.v1+json", &[image]),
                "its config is `application/vnd.oci.image.config.v1+json`",
            ),
            (manifest(CONFIG, &[image]), "its layer is `application/vnd.oci.image.layer.v1.tar+gzip`"),
            (manifest(CONFIG, &[]), "its content is `0 layers`"),
            (manifest(CONFIG, &[LAYER, LAYER]), "its content is `2 layers`"),
            (index, "its manifest is `application/vnd.oci.image.index.v1+json`"),
            (negative, "a layer of -1 bytes"),
            (serde_json::json!([]), "no manifest"),
        ] {
            let error = layer(manifest.to_string().as_bytes(), &reference()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
