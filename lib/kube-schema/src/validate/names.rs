//! Syntax of names, label keys and label values.

/// Lower-case letters, digits and inner dashes, at most 63; otherwise what is wrong.
pub fn dns_label(text: &str) -> Option<&'static str> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    (!framed(text, inner, |c| c != '-')).then_some(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
         end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    )
}

/// DNS labels with dots between them, at most 253 characters.
pub(super) fn dns_subdomain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= 253 && text.split('.').all(|part| framed(part, inner, |c| c != '-'))
}

/// `[prefix/]name`; otherwise what is wrong.
pub fn qualified_name(text: &str) -> Option<&'static str> {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if name.contains('/') {
        return Some(
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' \
             (e.g. 'example.com/MyName')",
        );
    }
    if prefix.is_some_and(|prefix| !dns_subdomain(prefix)) {
        return Some(
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
             '.', and must start and end with an alphanumeric character",
        );
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 characters");
    }
    (!framed(name, is_name_character, |c| c.is_ascii_alphanumeric())).then_some(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    )
}

/// Empty, or a name of at most 63 characters.
pub(super) fn label_value(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    let good = text.is_empty() || framed(text, is_name_character, |c| c.is_ascii_alphanumeric());
    (!good).then_some(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
         start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    )
}

/// An IANA service name: at most 15 characters, at least one of them a letter, no doubled or outer dashes.
pub fn port_name(text: &str) -> Option<&'static str> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() > 15 {
        return Some("must be no more than 15 characters");
    }
    if !text.chars().all(inner) {
        return Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.chars().any(|c| c.is_ascii_lowercase()) {
        return Some("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        return Some("must not contain consecutive hyphens");
    }
    (text.starts_with('-') || text.ends_with('-')).then_some("must not begin or end with a hyphen")
}

/// Printable ASCII without `=`: the widest rule any supported server applies.
pub(super) fn environment_name(text: &str) -> Option<&'static str> {
    let good = text.chars().all(|c| (' '..='~').contains(&c) && c != '=');
    (!good).then_some(
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
    )
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Not empty, of `inner` characters, with `outer` ones at both ends.
fn framed(text: &str, inner: impl Fn(char) -> bool, outer: impl Fn(char) -> bool) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    text.chars().all(inner) && ends.into_iter().all(|end| end.is_some_and(&outer))
}

#[cfg(test)]
mod tests {
    use super::{dns_label, environment_name, label_value, port_name, qualified_name};

    #[test]
    fn names_as_kubernetes_takes_them() {
        for good in ["a", "0", "a-b", "1a"] {
            assert_eq!(dns_label(good), None, "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a.b", "a_b", &"a".repeat(64)] {
            assert!(dns_label(bad).is_some(), "{bad}");
        }
        for good in ["a", "A.b_c-d", "example.com/Key", "a.b.c/1"] {
            assert_eq!(qualified_name(good), None, "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "A/b",
            "a/b/c",
            "-a",
            "a b",
            "a..b/c",
            &"a".repeat(64),
        ] {
            assert!(qualified_name(bad).is_some(), "{bad}");
        }
        assert!(label_value("").is_none() && label_value("A_1.b").is_none());
        assert!(label_value("a b").is_some() && label_value("-").is_some() && label_value("é").is_some());
        assert!(port_name("http").is_none() && port_name("h2-c").is_none());
        for bad in ["HTTP", "80", "a--b", "-a", "a-", "averyveryverylong", "a_b"] {
            assert!(port_name(bad).is_some(), "{bad}");
        }
        assert!(environment_name("a.B-c 1").is_none() && environment_name("a=b").is_some());
    }
}
