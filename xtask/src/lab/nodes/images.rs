//! The images of the suite: each holds busybox and little else, under names that exist nowhere but in the lab.
//!
//! | name | what it does |
//! |---|---|
//! | `lab.test/web:1`, `:2`, `:3` | serves its version on port 80, or `PORT`, at `/version` |
//! | `lab.test/web:two` | another name of `lab.test/web:2` |
//! | `lab.test/tool:1` | nothing; has a shell and a few commands |
//! | `lab.test/kruise:dev` | the image of the manager, if it is tested |
//! | `lab.test/pause:1` | what keeps a pod's sandbox |
//!
//! Beside them is the image of the manager, under its own name, where managers run as pods.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::registry::Registry;
use crate::oci::root::{Owner, Root};
use crate::oci::{CONFIG, LAYER, MANIFEST, architecture};

/// The registry's name in the names of images.
pub(super) const HOST: &str = "lab.test";

const SERVE: &str = include_str!("../../../assets/nodes/serve.sh");
const PAUSE: &str = include_str!("../../../assets/nodes/pause.sh");
const COMMANDS: [&str; 10] = [
    "sh", "cat", "echo", "env", "httpd", "sleep", "test", "touch", "true", "wget",
];

/// Pushes every image.
pub(super) fn push_all(registry: &Registry<'_>, busybox: &Path) -> Result<()> {
    let busybox = std::fs::read(busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    push(
        registry,
        "pause",
        &["1"],
        &layer(&busybox, "pause")?,
        "/bin/pause",
    )?;
    push(registry, "tool", &["1"], &layer(&busybox, "tool")?, "/bin/pause")?;
    for (version, tags) in [("1", &["1"][..]), ("2", &["2", "two"]), ("3", &["3"])] {
        push(registry, "web", tags, &layer(&busybox, version)?, "/bin/serve")?;
    }
    Ok(())
}

/// A root folder. `version` makes it differ from that of every other image.
fn layer(busybox: &[u8], version: &str) -> Result<Vec<u8>> {
    let mut root = Root::new(0);
    for folder in ["bin", "dev", "etc", "proc", "sys", "tmp", "www"] {
        root.folder(folder, 0o755, Owner::Root)?;
    }
    root.program("bin/busybox", busybox)?;
    for command in COMMANDS {
        root.link(&format!("bin/{command}"), "/bin/busybox")?;
    }
    root.program("bin/serve", SERVE.as_bytes())?;
    root.program("bin/pause", PAUSE.as_bytes())?;
    root.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")?;
    root.file("www/version", version.as_bytes())?;
    root.finish()
}

fn push(registry: &Registry<'_>, name: &str, tags: &[&str], layer: &[u8], command: &str) -> Result<()> {
    let layer_digest = registry.push_blob(name, layer)?;
    let config = json!({
        "architecture": architecture(std::env::consts::ARCH),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": [command]},
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
    });
    let config = config.to_string();
    let config_digest = registry.push_blob(name, config.as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "size": config.len(), "digest": config_digest},
        "layers": [{"mediaType": LAYER, "size": layer.len(), "digest": layer_digest}],
    });
    let manifest = manifest.to_string();
    tags.iter()
        .try_for_each(|tag| registry.push_manifest(name, tag, &manifest))
}

/// The name and tag of the manager's image.
const MANAGER: (&str, &str) = ("kruise", "dev");

/// Pushes the image of a layout for this platform as that of the manager.
pub(super) fn push_layout(registry: &Registry<'_>, layout: &Path) -> Result<()> {
    let (name, tag) = MANAGER;
    let blob = |descriptor: &Value| -> Result<Vec<u8>> {
        let digest = descriptor
            .get("digest")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let path = layout.join("blobs").join(digest.replace(':', "/"));
        std::fs::read(&path).with_context(|| format!("no blob {}", path.display()))
    };
    let index: Value = serde_json::from_slice(&std::fs::read(layout.join("index.json"))?)?;
    let ours = architecture(std::env::consts::ARCH);
    let listed = |of: &Value, name: &str| {
        of.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let is_ours =
        |entry: &&Value| entry.pointer("/platform/architecture").and_then(Value::as_str) == Some(ours);
    let entries = listed(&index, "manifests");
    let entry = entries.iter().find(is_ours);
    let manifest = blob(entry.with_context(|| format!("the layout has no image for {ours}"))?)?;
    let parsed: Value = serde_json::from_slice(&manifest)?;
    let config = parsed.get("config").cloned();
    for descriptor in listed(&parsed, "layers").iter().chain(&config) {
        registry.push_blob(name, &blob(descriptor)?)?;
    }
    registry.push_manifest(name, tag, std::str::from_utf8(&manifest)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::digest;

    #[test]
    fn versions_make_different_images_and_the_same_version_the_same() {
        let one = layer(b"busybox", "1").unwrap();
        assert_eq!(one, layer(b"busybox", "1").unwrap());
        assert_ne!(digest(&one), digest(&layer(b"busybox", "2").unwrap()));
    }
}
