//! Identifiers that a container runtime makes up: equal inputs, equal ids.

/// The id of an image: its repository and a digest of its name, in place of its content.
pub(super) fn image_id(image: &str) -> String {
    if let Some((_, digest)) = image.split_once('@') {
        return format!("{}@{digest}", super::images::repository(image));
    }
    format!(
        "{}@sha256:{}",
        super::images::repository(image),
        digest(&["image", image])
    )
}

/// The id of one run of a container.
pub(super) fn container_id(pod_uid: &str, container: &str, run: u32) -> String {
    format!(
        "containerd://{}",
        digest(&["container", pod_uid, container, &run.to_string()])
    )
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
pub(in crate::nodes) fn draw(seed: u64, parts: &[&str]) -> u64 {
    lane(1, &[&[seed.to_string().as_str()], parts].concat().join("\0"))
}
