//! The rules of ARCHITECTURE.md that a compiler does not hold. Each is a function from a file to its violations.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

mod circles;
mod determinism;
mod keys;
mod kinds;
mod layers;
mod links;
mod room;
mod shown;

pub(crate) use room::PATCH;

/// Folders of the pure crates. That they read no clock and no random order, clippy holds (`clippy.toml`).
const CORES: &[&str] = &[
    "lib/",
    "api/",
    "views/",
    "plan-kit/",
    "plan-workloads/",
    "plan-sidecars/",
    "plan-nodes/",
    "plan-distribution/",
    "plan-podstate/",
    "plan-united/",
    "plan-spread/",
    "admission/",
    "agent-core/",
    "sim/",
];
/// Pure crates with a part that does I/O, and that part: real time and TLS of the simulator behind a feature, the
/// client of a container runtime, and the one module that runs plugins.
const SHELLS: &[(&str, &str)] = &[
    ("sim/", "sim/src/http"),
    ("lib/cri/", "lib/cri/src/"),
    (
        "lib/image-credentials/",
        "lib/image-credentials/src/plugin/exec.rs",
    ),
];
/// Crates that a pure crate does not depend on, nor name beside its shell.
const IMPURE: &[&str] = &["tokio", "kube-client", "uuid"];
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
/// Hosts of package registries: where packages come from is the user's configuration.
const REGISTRIES: &[&str] = &[
    concat!("index.crates", ".io"),
    concat!("proxy.golang", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("registry.k8s", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
];
/// Longest source file, in lines.
const LONGEST: usize = 700;
/// Widest comment, in columns.
const WIDEST: usize = 120;

/// Tables, which are read by looking up one line: their length costs nobody anything.
const TABLES: &[&str] = &["lib/go-compat/src/pod_template/core_v1.rs"];

/// The paths of all tracked files of this folder, one a line.
fn tracked(root: &Path) -> Result<String> {
    let output = Command::new("git")
        .args(["ls-files"])
        .current_dir(root)
        .output()
        .context("git is needed")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Checks every tracked file; fails with the list of violations.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root();
    let tracked = tracked(&root)?;
    if !tracked.lines().any(|path| path == "xtask/src/tidy/mod.rs") {
        bail!("git does not know the files of {}", root.display());
    }
    let mut violations = Vec::new();
    violations.extend(circles(&root, &tracked));
    let controllers = layers::controllers(tracked.lines());
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let kinds = tracked.lines().filter(|path| path.starts_with("api/src/"));
    let kinds = kinds.flat_map(|path| kinds::names(&read(path))).collect();
    let documents = tracked.lines().filter(|path| has_extension(path, "md"));
    let documents = documents.map(|path| (path, read(path))).collect();
    violations.extend(links::broken(&documents, &tracked.lines().collect()));
    violations.extend(room::touched(&read(PATCH)));
    violations.extend(room::refused(&root));
    violations.extend(shown::pinned(&read(".cargo/config.toml")));
    for (manifest, folder) in libraries(&tracked) {
        let sources = tracked
            .lines()
            .filter(|path| path.starts_with(&folder) && has_extension(path, "rs"));
        let sources: Vec<String> = sources.map(read).collect();
        let sources = sources.iter().map(String::as_str);
        violations.extend(shown::examples(manifest, &read(manifest), sources));
    }
    for path in tracked.lines() {
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            violations.extend(check(path, &text));
            violations.extend(layers::siblings(path, &text, &controllers));
            violations.extend(kinds::named(path, &text, &kinds));
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    bail!("{} violations:\n{}", violations.len(), violations.join("\n"))
}

/// Circles of imports.
fn circles(root: &Path, tracked: &str) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let sources: BTreeSet<&str> = tracked
        .lines()
        .filter(|path| has_extension(path, "rs"))
        .filter_map(|path| {
            path.split_inclusive("/src/")
                .next()
                .filter(|one| one.ends_with("/src/"))
        })
        .collect();
    let mut found = Vec::new();
    for source in sources {
        let of = tracked
            .lines()
            .filter(|path| path.starts_with(source) && has_extension(path, "rs"));
        let files = of.map(|path| (path, read(path))).collect();
        found.extend(circles::wrong(source, &files));
    }
    found
}

/// The manifests of libraries, and the folders of their sources.
fn libraries(tracked: &str) -> impl Iterator<Item = (&str, String)> {
    tracked.lines().filter_map(move |path| {
        let folder = path.strip_suffix("Cargo.toml")?;
        let root = format!("{folder}src/lib.rs");
        let is_library = tracked.lines().any(|path| path == root);
        is_library.then(|| (path, format!("{folder}src/")))
    })
}

fn check(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !path.starts_with("fixtures/") {
        found.extend(names(path, text, MACHINE_PATHS, "is a path of one machine"));
        found.extend(names(path, text, REGISTRIES, "is the host of a package registry"));
    }
    if Path::new(path).ends_with("Cargo.toml") {
        found.extend(layers::edges(path, text));
        found.extend(determinism::injected(path, text));
        found.extend(dependencies(path, text));
    }
    if has_extension(path, "rs") {
        found.extend(names(path, text, LEFTOVERS, "is a leftover"));
        found.extend(purity(path, text));
        found.extend(layers::writers(path, text));
        found.extend(keys::spelled(path, text));
        found.extend(shown::seeds(path, text));
        found.extend(determinism::unrepeatable(path, text));
        found.extend(length(path, text));
        found.extend(width(path, text));
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

/// Dependencies of a pure crate on what does I/O.
fn dependencies(path: &str, text: &str) -> Vec<String> {
    let has_shell = SHELLS.iter().any(|(of, _)| path.starts_with(of));
    if has_shell || !CORES.iter().any(|core| path.starts_with(core)) {
        return Vec::new();
    }
    let (_, text) = text.split_once("[dependencies]\n").unwrap_or_default();
    let (text, _) = text.split_once("\n[").unwrap_or((text, ""));
    let named = text.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let impure = named.filter(|name| IMPURE.contains(name));
    impure
        .map(|name| format!("{path}: {name} does not belong into a pure crate"))
        .collect()
}

/// Lines of a crate with a shell that do I/O beside it.
fn purity(path: &str, text: &str) -> Vec<String> {
    let beside = |(of, shell): &(&str, &str)| path.starts_with(of) && !path.starts_with(shell);
    if !SHELLS.iter().any(beside) || !path.contains("/src/") || path.contains("tests") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"));
    let paths: Vec<String> = IMPURE
        .iter()
        .map(|name| format!("{}::", name.replace('-', "_")))
        .collect();
    let hits = lines.flat_map(|(index, line)| {
        let hits = paths.iter().filter(move |word| line.contains(word.as_str()));
        hits.map(move |word| format!("{path}:{}: {word} does not belong beside the shell", index + 1))
    });
    hits.collect()
}

fn length(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LONGEST && !TABLES.contains(&path))
        .then(|| format!("{path}: {lines} lines, {LONGEST} are the limit"))
}

/// Comments that are wider than a screen. A row of a table stays one.
fn width(path: &str, text: &str) -> Vec<String> {
    let is_wide = |line: &str| {
        let comment = line.trim_start().strip_prefix("//");
        let words = comment.map(|comment| comment.trim_start_matches(['/', '!', ' ']));
        words.is_some_and(|words| !words.starts_with('|') && words.contains(' '))
            && line.chars().count() > WIDEST
    };
    let wide = text.lines().enumerate().filter(|(_, line)| is_wide(line));
    wide.map(|(index, _)| format!("{path}:{}: more than {WIDEST} columns", index + 1))
        .collect()
}

fn documented(path: &str, text: &str) -> Option<String> {
    let is_module = path.contains("/src/") && !path.ends_with("tests.rs") && !path.contains("/tests/");
    (is_module && !text.starts_with("//!")).then(|| format!("{path}: no module documentation"))
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|is| is == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        run().unwrap();
    }

    #[test]
    fn files_that_git_cannot_list_are_an_error() {
        let error = tracked(Path::new("/")).unwrap_err().to_string();
        assert!(error.starts_with("git ls-files: "), "{error}");
    }

    #[test]
    fn a_core_does_no_io_outside_its_shell() {
        let manifest = "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n\n[dev-dependencies]\nuuid = \"1\"\n";
        assert_eq!(dependencies("lib/kube-queue/Cargo.toml", manifest).len(), 1);
        assert!(dependencies("runtime/Cargo.toml", manifest).is_empty());
        assert!(dependencies("sim/Cargo.toml", manifest).is_empty());
        let sleep = format!("//! m\n{}::time::sleep(pause)\n", IMPURE[0]);
        assert_eq!(purity("sim/src/a.rs", &sleep).len(), 1);
        assert!(purity("sim/src/http/a.rs", &sleep).is_empty());
        assert!(purity("sim/src/a.rs", &format!("//! m\n#[cfg(test)]\n{sleep}")).is_empty());
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
        for (line, found) in [
            ("// word", 1),
            ("    /// word", 1),
            ("//! | cell", 0),
            ("let a", 0),
        ] {
            let text = format!("//! m\n{line} {}", "x".repeat(WIDEST));
            assert_eq!(check("x/src/a.rs", &text).len(), found, "{line}");
        }
    }
}
