//! A new kind is a room: `fixtures/new-kind/sample.patch` adds one, and touches nothing but its folders and lists.

use std::path::Path;
use std::process::Command;

/// The patch that adds a kind with everything that a kind has.
pub(crate) const PATCH: &str = "fixtures/new-kind/sample.patch";

/// Places of the kind's own: its room, the subject that simulates it, its page and its sample.
const OWN: &[&str] = &[
    "kinds/src/sample/",
    "dst/src/subjects/sample/",
    "docs/sample.md",
    "samples/v1alpha1/sample.yaml",
];
/// Lists that name each kind, with the lines that one more adds: its module and its registration; the module of its
/// subject and the subject; how many scenarios are played and the test that plays them; its page.
const LISTS: &[(&str, usize)] = &[
    ("kinds/src/lib.rs", 2),
    ("dst/src/subjects/mod.rs", 2),
    ("dst/tests/it/scenarios.rs", 6),
    ("docs/SUMMARY.md", 1),
];

/// What a new kind touches that is not its own.
pub(super) fn touched(patch: &str) -> Vec<String> {
    let mut found = Vec::new();
    for file in patch.split("diff --git a/").skip(1) {
        let path = file.split_whitespace().next().unwrap_or_default();
        let changed = file.split_once("\n@@").map_or("", |(_, lines)| lines);
        let starting = |sign: char| {
            changed
                .lines()
                .skip(1)
                .filter(|line| line.starts_with(sign))
                .count()
        };
        let (added, removed) = (starting('+'), starting('-'));
        if OWN.iter().any(|own| path.starts_with(own)) && file.contains("\nnew file mode") {
            continue;
        }
        let most = LISTS
            .iter()
            .find(|(list, _)| *list == path)
            .map(|(_, lines)| *lines);
        if removed > 0 || most.is_none_or(|most| added > most) {
            found.push(format!(
                "{PATCH}: a new kind changes {path}: {added} lines added, {removed} removed"
            ));
        }
    }
    found
}

/// Why git would not apply the patch to the files of this folder.
pub(super) fn refused(root: &Path) -> Option<String> {
    let output = Command::new("git")
        .args(["apply", "--check", "-C1", PATCH])
        .current_dir(root)
        .output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("{PATCH}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Some(format!("{PATCH}: git is needed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, kind: &str, lines: &str) -> String {
        format!("diff --git a/{path} b/{path}\n{kind}\n--- a\n+++ b\n@@ -1,1 +1,2 @@\n{lines}")
    }

    #[test]
    fn a_kind_touches_its_room_and_a_line_of_each_list() {
        let own = file("kinds/src/sample/mod.rs", "new file mode 100644", "+a\n+b\n");
        let list = file("kinds/src/lib.rs", "index 1..2", " a\n+pub mod sample;\n");
        assert_eq!(touched(&format!("{own}{list}")), [""; 0]);
        for (path, lines) in [
            ("kinds/src/lib.rs", "-a\n+b\n"),
            ("kinds/src/lib.rs", "+a\n+b\n+c\n"),
            ("api/src/kinds.rs", "+a\n"),
            ("kinds/src/sample/mod.rs", "-a\n+b\n"),
        ] {
            assert_eq!(
                touched(&file(path, "index 1..2", lines)).len(),
                1,
                "{path} {lines}"
            );
        }
    }
}
