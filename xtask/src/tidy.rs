//! The rules of ARCHITECTURE.md that a compiler does not hold. Each is a function from a file to its violations.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Folders of the pure crates.
const CORES: &[&str] = &[
    "lib/",
    "api/",
    "views/",
    "plan-kit/",
    "plan-workloads/",
    "admission/",
    "sim/",
];
/// The one part of a pure crate that does I/O, behind a feature.
const SHELL_OF_SIM: &str = "sim/src/http";
/// What a pure crate must not name.
const IMPURE: &[&str] = &[
    concat!("tok", "io::"),
    concat!("kube_", "client::"),
    concat!("System", "Time::now"),
    concat!("Instant", "::now"),
    concat!("Timestamp", "::now"),
    concat!("uu", "id::"),
    concat!("Hash", "Map"),
    concat!("Hash", "Set"),
];
/// Leftovers of work in progress.
const LEFTOVERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("dbg", "!("),
    concat!("#[ign", "ore]"),
];
/// Paths of one machine.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("../sha", "red"),
    concat!("/ro", "ot/"),
];
/// Longest source file, in lines.
const LONGEST: usize = 700;

/// Tables, which are read by looking up one line: their length costs nobody anything.
const TABLES: &[&str] = &["lib/go-compat/src/pod_template/core_v1.rs"];

/// Crate folder, and the workspace crates it may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("lib/go-compat", &[]),
    ("lib/kube-queue", &[]),
    ("lib/kube-cache", &[]),
    ("lib/kube-schema", LIBS),
    ("api", LIBS),
    (
        "views",
        &[
            "go-compat",
            "kube-cache",
            "kube-queue",
            "kube-schema",
            "kruise-api",
        ],
    ),
    ("plan-kit", PLAN),
    ("plan-workloads", PLAN),
    ("admission", PLAN),
    ("sim", LIBS),
];
const LIBS: &[&str] = &["go-compat", "kube-cache", "kube-queue", "kube-schema"];
const PLAN: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kube-queue",
    "kube-schema",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
];

/// Checks every tracked file; fails with the list of violations.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root();
    let output = Command::new("git")
        .args(["ls-files"])
        .current_dir(&root)
        .output()
        .context("git is needed")?;
    let mut violations = Vec::new();
    for path in String::from_utf8(output.stdout)?.lines() {
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            violations.extend(check(path, &text));
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    bail!("{} violations:\n{}", violations.len(), violations.join("\n"))
}

fn check(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !path.starts_with("fixtures/") {
        found.extend(names(path, text, MACHINE_PATHS, "is a path of one machine"));
    }
    if Path::new(path).ends_with("Cargo.toml") {
        found.extend(edges(path, text));
    }
    if Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
    {
        found.extend(names(path, text, LEFTOVERS, "is a leftover"));
        found.extend(purity(path, text));
        found.extend(length(path, text));
        found.extend(documented(path, text));
    }
    found
}

fn names(path: &str, text: &str, words: &[&str], what: &str) -> Vec<String> {
    let hits = text.lines().enumerate().flat_map(|(index, line)| {
        let hits = words.iter().filter(move |word| line.contains(**word));
        hits.map(move |word| format!("{path}:{}: {word} {what}", index + 1))
    });
    hits.collect()
}

fn purity(path: &str, text: &str) -> Vec<String> {
    let in_core = CORES.iter().any(|core| path.starts_with(core))
        && path.contains("/src/")
        && !path.starts_with(SHELL_OF_SIM);
    if !in_core || path.ends_with("tests.rs") || path.contains("/tests/") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code
        .lines()
        .map(|line| {
            if line.trim_start().starts_with("//") {
                ""
            } else {
                line
            }
        })
        .collect();
    names(
        path,
        &code.join("\n"),
        IMPURE,
        "does not belong into a pure crate",
    )
}

fn length(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LONGEST && !TABLES.contains(&path))
        .then(|| format!("{path}: {lines} lines, {LONGEST} are the limit"))
}

fn documented(path: &str, text: &str) -> Option<String> {
    let is_module = path.contains("/src/") && !path.ends_with("tests.rs") && !path.contains("/tests/");
    (is_module && !text.starts_with("//!")).then(|| format!("{path}: no module documentation"))
}

fn edges(path: &str, text: &str) -> Vec<String> {
    let folder = path.trim_end_matches("/Cargo.toml");
    let Some((_, allowed)) = EDGES.iter().find(|(of, _)| *of == folder) else {
        return Vec::new();
    };
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = LIBS.contains(&name) || name.starts_with("kruise-");
        if section == "[dependencies]" && is_ours && !allowed.contains(&name) {
            found.push(format!("{path}: {name} is not in a layer below"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        run().unwrap();
    }

    #[test]
    fn a_core_may_not_read_the_clock_outside_its_tests() {
        let read = format!("//! m\nlet t = {};\n", IMPURE[3]);
        assert_eq!(purity("lib/kube-queue/src/a.rs", &read).len(), 1);
        assert!(purity("runtime/src/a.rs", &read).is_empty());
        assert!(purity("lib/kube-queue/src/a.rs", &format!("//! m\n#[cfg(test)]\n{read}")).is_empty());
    }

    #[test]
    fn leftovers_machine_paths_long_files_and_missing_documentation_are_found() {
        assert_eq!(
            check("x/src/a.rs", &format!("//! m\n// {}", LEFTOVERS[0])).len(),
            1
        );
        assert_eq!(check("README.md", &format!("see {}x", MACHINE_PATHS[0])).len(), 1);
        assert_eq!(
            check("x/src/a.rs", &format!("//! m{}", "\n".repeat(701))).len(),
            1
        );
        assert_eq!(check("x/src/a.rs", "fn f() {}").len(), 1);
    }

    #[test]
    fn a_crate_may_not_depend_on_a_layer_above() {
        let manifest = "[dependencies]\nkruise-runtime.workspace = true\ngo-compat.workspace = true\n";
        assert_eq!(
            edges("api/Cargo.toml", manifest),
            ["api/Cargo.toml: kruise-runtime is not in a layer below"]
        );
    }
}
