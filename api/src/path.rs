//! Paths of requests. Names in them may come from users: from flags, from objects that were stored before webhooks
//! validated them, and from reviews, which anybody who reaches the webhook can send.

use std::fmt::Write as _;

/// Path of all definitions.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A name as one segment of a path, or a value of a query: everything but letters, digits and `-._~` is
/// percent-encoded. `.` and `..` are encoded too, so that no proxy resolves them.
pub fn segment(name: &str) -> String {
    if matches!(name, "." | "..") {
        return name.replace('.', "%2E");
    }
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn a_name_stays_one_segment() {
        for (name, escaped) in [
            ("aZ0-._~+/=", "aZ0-._~%2B%2F%3D"),
            ("../x?y", "..%2Fx%3Fy"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("a%2Fb#c", "a%252Fb%23c"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(segment(name), escaped);
        }
    }
}
