//! What makes a manager repeatable: order and injected bugs come from outside. That time and randomness do, clippy
//! holds (`clippy.toml`).

/// Crates that a simulation runs.
const SIMULATED: &[&str] = &[
    "runtime/src/",
    "frame/src/",
    "kinds/src/",
    "manager/src/",
    "cli/src/restart/",
    "agent-core/src/",
    "agent/src/",
    "agent-sim/src/",
];
/// Manifests that may name the feature with the bugs.
const INJECTORS: &[&str] = &["plan-kit/Cargo.toml", "dst/Cargo.toml"];

/// Lines that would make two runs of one seed differ.
pub(super) fn unrepeatable(path: &str, text: &str) -> Vec<String> {
    if !SIMULATED.iter().any(|of| path.starts_with(of)) || path.ends_with("tests.rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map_or("", |next| next.trim());
        if line.contains("tokio::select! {") && next != "biased;" {
            found.push(format!(
                "{path}:{}: a select is random unless it is biased",
                index + 1
            ));
        }
    }
    found
}

/// Manifests through which injected bugs could get into a build that is not the simulation's.
pub(super) fn injected(path: &str, text: &str) -> Vec<String> {
    let names = |line: &&str| line.contains("injected-bugs") && !line.starts_with('#');
    let mut lines = text.lines().filter(names);
    // Tests of the simulation find them: they are there wherever these are built.
    let own_tests = "kruise-dst = { path = \".\", features = [\"injected-bugs\"] }";
    let allowed =
        |line: &str| INJECTORS.contains(&path) && (line.starts_with("injected-bugs = ") || line == own_tests);
    lines
        .find(|line| !allowed(line))
        .map(|line| format!("{path}: {line:?} would inject bugs into other builds"))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_select_says_that_it_is_biased() {
        let fair = "    tokio::select! {\n        () = a => {}\n";
        assert_eq!(unrepeatable("runtime/src/follow.rs", fair).len(), 1);
        let biased = "    tokio::select! {\n        biased;\n        () = a => {}\n";
        assert!(unrepeatable("runtime/src/follow.rs", biased).is_empty());
        assert!(unrepeatable("server/src/listen.rs", fair).is_empty());
    }

    #[test]
    fn bugs_are_injected_by_the_simulation_alone() {
        assert!(
            injected(
                "dst/Cargo.toml",
                "injected-bugs = [\"kruise-plan-kit/injected-bugs\"]"
            )
            .is_empty()
        );
        let own_tests = "kruise-dst = { path = \".\", features = [\"injected-bugs\"] }";
        assert!(injected("dst/Cargo.toml", own_tests).is_empty());
        assert_eq!(injected("kruise/Cargo.toml", own_tests).len(), 1);
        assert_eq!(
            injected("dst/Cargo.toml", "default = [\"injected-bugs\"]").len(),
            1
        );
        assert_eq!(
            injected(
                "kruise/Cargo.toml",
                "injected-bugs = [\"kruise-plan-kit/injected-bugs\"]"
            )
            .len(),
            1
        );
    }
}
