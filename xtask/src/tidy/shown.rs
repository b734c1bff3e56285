//! What tests show: examples in documentation run, and random cases are the same for everybody.

/// The variable that `.cargo/config.toml` sets, and what only it may decide.
const SEED: &str = "PROPTEST_RNG_SEED";
const OWN_SEEDS: &[&str] = &[concat!("rng", "_seed"), concat!("Rng", "Seed::")];

/// Tests that draw other random cases than their neighbours, or than the run before.
pub(super) fn seeds(path: &str, text: &str) -> Vec<String> {
    let own = OWN_SEEDS.iter().filter(|word| text.contains(**word));
    own.map(|word| format!("{path}: {word}: {SEED} decides for all tests"))
        .collect()
}

/// The pinned seed, which the configuration of cargo has to name.
pub(super) fn pinned(configuration: &str) -> Option<String> {
    let pins = |line: &str| line.starts_with(SEED) && line.contains('=');
    (!configuration.lines().any(pins)).then(|| format!(".cargo/config.toml: {SEED} is not pinned"))
}

/// Manifests that leave out examples of their library, or run rustdoc for a library without any. `sources` are the
/// files of `src`.
pub(super) fn examples<'a>(
    path: &str,
    manifest: &str,
    mut sources: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let off = manifest.contains("[lib]\ndoctest = false");
    match (off, sources.any(has_example)) {
        (true, true) => Some(format!("{path}: its library has an example, which nobody runs")),
        (false, false) => Some(format!(
            "{path}: its library has no example: [lib] doctest = false"
        )),
        _ => None,
    }
}

/// Whether a comment has a fence that is no plain text.
fn has_example(text: &str) -> bool {
    let mut fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
        line.trim_start().strip_prefix("```")
    });
    // The first of each two begins a block.
    while let Some(language) = fences.next() {
        if !language.starts_with("text") {
            return true;
        }
        fences.next();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_test_has_a_seed_of_its_own() {
        let own = format!("ProptestConfig {{ {}: 1 }}", OWN_SEEDS[0]);
        assert_eq!(seeds("x/tests/it/a.rs", &own).len(), 1);
        assert!(seeds("x/tests/it/a.rs", "ProptestConfig::with_cases(96)").is_empty());
        assert!(pinned("[env]\n").is_some());
        assert_eq!(pinned("[env]\nPROPTEST_RNG_SEED = \"1\"\n"), None);
    }

    #[test]
    fn examples_run_where_there_are_some() {
        let (on, off) = ("[package]\n", "[lib]\ndoctest = false\n");
        let example = "//! ```\n//! assert!(true);\n//! ```\n";
        let text = "//! ```text\n//! a -> b\n//! ```\n";
        let check = |manifest, source| examples("x/Cargo.toml", manifest, [source].into_iter());
        assert_eq!(check(on, example), None);
        assert_eq!(check(off, text), None);
        assert!(check(off, example).is_some());
        assert!(check(on, text).is_some());
    }
}
