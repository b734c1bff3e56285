//! Identifiers that a container runtime makes up: equal inputs, equal ids.

/// The id of an image: its repository and a digest of its name, in place of its content.
pub(super) fn image_id(image: &str) -> String {
    let repository = repository(image);
    match image.split_once('@') {
        Some((_, digest)) => format!("{repository}@{digest}"),
        None => format!("{repository}@{}", manifest_digest(image)),
    }
}

/// The digest of the manifest of an image that is named so.
pub(super) fn manifest_digest(image: &str) -> String {
    format!("sha256:{}", digest(&["image", image]))
}

/// The digest of the configuration of an image, given that of its manifest.
pub(super) fn config_digest(manifest: &str) -> String {
    format!("sha256:{}", digest(&["configuration", manifest]))
}

/// An image's name without tag and digest.
pub(super) fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// The name of the runtime, with which ids of containers begin in the status of pods.
pub(super) const RUNTIME: &str = "containerd";

/// The id of one run of a container, as the status of its pod has it.
pub(super) fn container_id(pod_uid: &str, container: &str, run: u32) -> String {
    format!("{RUNTIME}://{}", plain_container_id(pod_uid, container, run))
}

/// The id of one run of a container, as the runtime has it.
pub(super) fn plain_container_id(pod_uid: &str, container: &str, run: u32) -> String {
    digest(&["container", pod_uid, container, &run.to_string()])
}

/// 64 hexadecimal digits that spread well (FNV-1a with four bases); not a cryptographic digest.
fn digest(parts: &[&str]) -> String {
    let text = parts.join("\0");
    let [a, b, c, d] = [1, 2, 3, 4].map(|base| lane(base, &text));
    format!("{a:016x}{b:016x}{c:016x}{d:016x}")
}

fn lane(base: u64, text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ base.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 29)
}

/// A number for a draw, out of a seed and texts.
pub(super) fn draw(seed: u64, parts: &[&str]) -> u64 {
    lane(1, &[&[seed.to_string().as_str()], parts].concat().join("\0"))
}

#[cfg(test)]
mod tests {
    use super::repository;

    #[test]
    fn tags_and_digests_are_not_part_of_the_repository() {
        for image in [
            "h:5000/a/web",
            "h:5000/a/web:1",
            "h:5000/a/web@sha256:ab",
            "h:5000/a/web:1@sha256:ab",
        ] {
            assert_eq!(repository(image), "h:5000/a/web", "{image}");
        }
    }
}
