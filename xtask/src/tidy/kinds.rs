//! What serves every kind names none: how a kind is served follows from its registration.

use std::collections::BTreeSet;

/// Folders that know no kind.
const KNOW_NO_KIND: &[&str] = &["frame/src/", "manager/src/", "runtime/src/", "server/src/"];

/// Files that name flags, some of which are called as a kind.
const FLAGS: &[&str] = &["frame/src/leader.rs"];

/// Names of kinds that a source of `api` defines, in lower case: `cloneset`, `clonesets`.
pub(super) fn names(text: &str) -> BTreeSet<String> {
    if !text.contains(": Kind = Kind {") {
        return BTreeSet::new();
    }
    let member = |line: &str| {
        let line = line.trim();
        let value = line
            .strip_prefix("kind: \"")
            .or(line.strip_prefix("plural: \""))?;
        value.strip_suffix("\",").map(str::to_lowercase)
    };
    text.lines().filter_map(member).collect()
}

/// Kinds named where none may be, tests apart.
pub(super) fn named(path: &str, text: &str, kinds: &BTreeSet<String>) -> Vec<String> {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    let is_bound = KNOW_NO_KIND.iter().any(|folder| path.starts_with(folder));
    if is_test || !is_bound || FLAGS.contains(&path) {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let names_one = |line: &&str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric());
        words.any(|word| kinds.contains(&word.to_lowercase()))
    };
    let hits = code.lines().enumerate().filter(|(_, line)| names_one(line));
    hits.map(|(index, line)| format!("{path}:{}: names a kind: {}", index + 1, line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{named, names};

    const DEFINITION: &str =
        "pub const KIND: Kind = Kind {\n    kind: \"CloneSet\",\n    plural: \"clonesets\",\n};\n";

    #[test]
    fn a_kind_is_named_nowhere_in_the_parts_that_serve_all_of_them() {
        let kinds = names(DEFINITION);
        assert_eq!(kinds.len(), 2);
        for (path, text, violations) in [
            ("runtime/src/a.rs", "/// CloneSets, for example.\n", 1),
            ("manager/src/a.rs", "let path = \"/clonesets/x\";\n", 1),
            (
                "runtime/src/a.rs",
                "#[cfg(test)]\nmod tests;\nconst A: ResourceId = kruise_api::cloneset::RESOURCE;\n",
                1,
            ),
            ("manager/src/a.rs", "workers(\"cloneset-workers\")\n", 1),
            ("kinds/src/cloneset/mod.rs", "CloneSet", 0),
            (
                "frame/src/caches.rs",
                "pub const CLONESETS: CacheId<CloneSet>;",
                1,
            ),
            (
                "frame/src/leader.rs",
                "pub const FLAG: &str = \"cloneset-flag\";",
                0,
            ),
            (
                "runtime/src/a.rs",
                "fn a() {}\n#[cfg(test)]\nmod tests { const A: &str = \"CloneSet\"; }\n",
                0,
            ),
            ("runtime/src/a/tests.rs", "CloneSet", 0),
            ("server/src/a.rs", "let clone = set.clone();\n", 0),
        ] {
            assert_eq!(named(path, text, &kinds).len(), violations, "{path}: {text}");
        }
    }
}
