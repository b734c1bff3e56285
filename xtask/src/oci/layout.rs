//! An image layout: a folder with an index, and blobs under their digests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{CONFIG, INDEX, LAYER_GZIP, MANIFEST, digest, root};

/// An image for one platform.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// Name of the processor, such as `amd64`.
    pub(crate) architecture: String,
    /// The root folder, not compressed.
    pub(crate) root: Vec<u8>,
    /// Settings of its containers: user, entry point, labels.
    pub(crate) config: Value,
    /// Date of the image.
    pub(crate) created: String,
    /// Annotations of the manifest.
    pub(crate) annotations: Value,
}

/// Writes a layout with these images, one for each platform, under one tag. What the folder held before is removed.
/// Returns the digest of the index.
pub(crate) fn write(dir: &Path, tag: &str, images: &[Image]) -> Result<String> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    let layout = Layout {
        blobs: dir.join("blobs/sha256"),
    };
    std::fs::create_dir_all(&layout.blobs)?;
    let manifests = images.iter().map(|image| layout.image(image, tag));
    let manifests: Vec<Value> = manifests.collect::<Result<_>>()?;
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}).to_string();
    std::fs::write(dir.join("index.json"), &index)?;
    std::fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(digest(index.as_bytes()))
}

struct Layout {
    blobs: PathBuf,
}

impl Layout {
    /// Writes one image and returns its entry of the index.
    fn image(&self, image: &Image, tag: &str) -> Result<Value> {
        let layer = self.blob(LAYER_GZIP, &root::compress(&image.root)?)?;
        let config = json!({
            "architecture": image.architecture, "os": "linux", "created": image.created, "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [digest(&image.root)]},
            "history": [{"created": image.created, "created_by": "cargo xtask image"}],
        });
        let config = self.blob(CONFIG, config.to_string().as_bytes())?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
            "annotations": image.annotations,
        });
        let mut entry = self.blob(MANIFEST, manifest.to_string().as_bytes())?;
        if let Some(entry) = entry.as_object_mut() {
            let platform = json!({"architecture": image.architecture, "os": "linux"});
            entry.insert("platform".into(), platform);
            let name = json!({"org.opencontainers.image.ref.name": tag});
            entry.insert("annotations".into(), name);
        }
        Ok(entry)
    }

    /// Writes bytes under their digest and returns their descriptor.
    fn blob(&self, media_type: &str, bytes: &[u8]) -> Result<Value> {
        let digest = digest(bytes);
        let (_, name) = digest.split_once(':').context("a digest has a colon")?;
        std::fs::write(self.blobs.join(name), bytes)?;
        Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
    }
}
