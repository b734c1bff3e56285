//! Checks a layout as a tool that pushes it would: every digest, size and media type, and that no blob is left over.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{CONFIG, INDEX, LAYER_GZIP, MANIFEST, digest};

/// What a layout holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Platform, and bytes that are pulled for it.
    pub(crate) images: Vec<(String, u64)>,
}

/// Checks the layout in a folder.
pub(crate) fn layout(dir: &Path) -> Result<Found> {
    let version = &json(&std::fs::read(dir.join("oci-layout"))?)?;
    ensure!(version["imageLayoutVersion"] == "1.0.0", "oci-layout: {version}");
    let index = &json(&std::fs::read(dir.join("index.json"))?)?;
    ensure!(
        index["schemaVersion"] == 2 && index["mediaType"] == INDEX,
        "index.json: {index}"
    );
    let mut blobs = Blobs {
        dir: dir.join("blobs/sha256"),
        seen: BTreeSet::new(),
    };
    let manifests = index["manifests"].as_array().context("no manifests")?;
    ensure!(!manifests.is_empty(), "the index is empty");
    let images = manifests.iter().map(|entry| image(&mut blobs, entry));
    let images = images.collect::<Result<_>>()?;
    blobs.none_left_over()?;
    Ok(Found { images })
}

fn image(blobs: &mut Blobs, entry: &Value) -> Result<(String, u64)> {
    let bytes = blobs.read(entry, MANIFEST)?;
    let manifest = &json(&bytes)?;
    ensure!(
        manifest["schemaVersion"] == 2 && manifest["mediaType"] == MANIFEST,
        "manifest: {manifest}"
    );
    let config_bytes = blobs.read(&manifest["config"], CONFIG)?;
    let config = &json(&config_bytes)?;
    for part in ["architecture", "os"] {
        ensure!(
            entry.pointer(&format!("/platform/{part}")) == config.get(part),
            "{part}: {config} is not that of {entry}"
        );
    }
    let layers = manifest["layers"].as_array().context("no layers")?;
    let ids = config.pointer("/rootfs/diff_ids").and_then(Value::as_array);
    let ids = ids.context("no diff_ids")?;
    ensure!(
        layers.len() == ids.len(),
        "{} layers, {} diff_ids",
        layers.len(),
        ids.len()
    );
    let mut size = (bytes.len() + config_bytes.len()) as u64;
    for (layer, id) in layers.iter().zip(ids) {
        let compressed = blobs.read(layer, LAYER_GZIP)?;
        let mut root = Vec::new();
        GzDecoder::new(compressed.as_slice()).read_to_end(&mut root)?;
        ensure!(
            *id == digest(&root).as_str(),
            "a layer is not that of its diff_id {id}"
        );
        size += compressed.len() as u64;
    }
    let text = |part: &str| config[part].as_str().unwrap_or_default().to_owned();
    Ok((format!("{}/{}", text("os"), text("architecture")), size))
}

struct Blobs {
    dir: PathBuf,
    seen: BTreeSet<String>,
}

impl Blobs {
    fn read(&mut self, descriptor: &Value, media_type: &str) -> Result<Vec<u8>> {
        ensure!(
            descriptor["mediaType"] == media_type,
            "media type is not {media_type}: {descriptor}"
        );
        let expected = descriptor["digest"].as_str().context("no digest")?;
        let name = expected
            .strip_prefix("sha256:")
            .context("the digest is not sha256")?;
        let bytes = std::fs::read(self.dir.join(name)).with_context(|| format!("no blob {expected}"))?;
        ensure!(
            digest(&bytes) == expected,
            "the blob {expected} is {}",
            digest(&bytes)
        );
        ensure!(
            descriptor["size"] == bytes.len(),
            "the size of {expected} is {}, not {}",
            bytes.len(),
            descriptor["size"]
        );
        self.seen.insert(name.to_owned());
        Ok(bytes)
    }

    fn none_left_over(&self) -> Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !self.seen.contains(&name) {
                bail!("nothing refers to the blob {name}");
            }
        }
        Ok(())
    }
}

fn json(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("not JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::oci::layout::{Image, write};
    use crate::oci::root::Root;

    fn image(architecture: &str) -> Image {
        let mut root = Root::new(0);
        root.program("manager", architecture.as_bytes()).unwrap();
        Image {
            architecture: architecture.into(),
            root: root.finish().unwrap(),
            config: json!({"User": "65534:65534"}),
            created: "1970-01-01T00:00:00Z".into(),
            annotations: json!({}),
        }
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kruise-layout-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_written_layout_is_valid_and_written_again_has_the_same_digest() {
        let dir = folder("valid");
        let images = [image("amd64"), image("arm64")];
        let first = write(&dir, "v1", &images).unwrap();
        let found = layout(&dir).unwrap();
        let platforms: Vec<&str> = found.images.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
        assert_eq!(write(&dir, "v1", &images).unwrap(), first);
        assert_ne!(write(&dir, "v1", &images[..1]).unwrap(), first);
        layout(&dir).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn every_change_of_a_layout_is_found() {
        let dir = folder("changed");
        let blobs = dir.join("blobs/sha256");
        let anew = || write(&dir, "v1", &[image("amd64")]).unwrap();
        let error = || format!("{:#}", layout(&dir).unwrap_err());
        let replace = |file: &Path, from: &str, to: &str| {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(file, text.replace(from, to)).unwrap();
        };
        anew();
        std::fs::write(blobs.join("0".repeat(64)), "more").unwrap();
        assert!(error().contains("nothing refers to"), "{}", error());
        for entry in std::fs::read_dir(&blobs).unwrap() {
            let blob = entry.unwrap().path();
            anew();
            if blob.exists() {
                let mut bytes = std::fs::read(&blob).unwrap();
                bytes.push(b' ');
                std::fs::write(&blob, bytes).unwrap();
                assert!(error().contains("the blob sha256:"), "{}", error());
                std::fs::remove_file(&blob).unwrap();
                assert!(error().contains("no blob"), "{}", error());
            }
        }
        for (from, to, expected) in [
            (MANIFEST, CONFIG, "media type"),
            ("\"amd64\"", "\"arm64\"", "architecture"),
            ("\"size\":", "\"size\":1", "the size of"),
        ] {
            anew();
            replace(&dir.join("index.json"), from, to);
            assert!(error().contains(expected), "{}", error());
        }
        anew();
        replace(&dir.join("oci-layout"), "1.0.0", "9");
        assert!(error().contains("oci-layout"), "{}", error());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
