//! Images in the format of the Open Container Initiative, made without a daemon.
//!
//! | module | what |
//! |---|---|
//! | [`root`] | a root folder as a tar archive |
//! | [`layout`] | an image layout: a folder that every OCI tool can push |
//! | [`validate`] | checks a layout |

pub(crate) mod layout;
pub(crate) mod root;
pub(crate) mod validate;

use sha2::{Digest, Sha256};

/// Media type of an index.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a configuration.
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer that is not compressed.
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Media type of a compressed layer.
pub(crate) const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The digest by which these bytes are known.
pub(crate) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The name that images have for a processor, by the first part of a compiler's target.
pub(crate) fn architecture(processor: &str) -> &str {
    match processor {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn digests_are_those_of_registries() {
        assert_eq!(
            super::digest(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
