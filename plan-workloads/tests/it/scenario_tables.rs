//! The tables in `docs/scenarios` name only tests that exist, and leave out no scenario. A test that `cargo test`
//! ignores stands where the table says that it runs on a cluster, and nowhere else.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Tests that exist.
#[derive(Default)]
struct Known {
    /// Names of functions, and of the plan cases.
    run: BTreeSet<String>,
    /// Tests that `cargo test` ignores, because they need a cluster or another program.
    ignored: BTreeSet<String>,
}

fn known() -> Known {
    let mut names = Known::default();
    for folder in [
        "admission",
        "agent",
        "agent-core",
        "api",
        "cli",
        "dst",
        "frame",
        "install",
        "kinds",
        "kruise",
        "lib",
        "manager",
        "plan-distribution",
        "plan-podstate",
        "plan-kit",
        "plan-nodes",
        "plan-sidecars",
        "plan-spread",
        "plan-united",
        "plan-workloads",
        "playground",
        "program",
        "runtime",
        "server",
        "swap",
        "tests",
        "tour",
        "views",
        "xtask",
    ] {
        collect(&root().join(folder), &mut names);
    }
    names
}

fn collect(folder: &Path, names: &mut Known) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        if path.is_dir() {
            collect(&path, names);
        } else if kind == Some("yaml") && path.with_extension("plan").exists() {
            let case = path.file_stem().unwrap().to_str().unwrap();
            names.run.insert(case.to_owned());
        } else if kind == Some("rs") {
            tests_in(&fs::read_to_string(&path).unwrap(), names);
        }
    }
}

/// Functions that follow a `test` attribute.
fn tests_in(source: &str, names: &mut Known) {
    let (mut attribute, mut ignored) = (false, false);
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        match function {
            Some(rest) if attribute => {
                let name = rest.split(['(', '<']).next().unwrap_or_default();
                let of_kind = if ignored {
                    &mut names.ignored
                } else {
                    &mut names.run
                };
                of_kind.insert(name.to_owned());
                (attribute, ignored) = (false, false);
            }
            None if is_test(line) => attribute = true,
            None => ignored |= line.starts_with("#[ignore"),
            _ => {}
        }
    }
}

/// Is this the attribute of a test?
fn is_test(line: &str) -> bool {
    line.starts_with("#[") && ["test]", "test("].iter().any(|end| line.contains(end))
}

/// Cells of the rows whose number starts with the letter.
fn rows(document: &str, letter: char) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("docs/scenarios").join(document)).unwrap();
    let lines = text
        .lines()
        .filter(|line| line.starts_with(&format!("| {letter}")));
    lines
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect()
}

/// Names between backticks that look like tests.
fn names_in(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_named_test_exists_and_every_scenario_has_one_or_says_why_not() {
    let known = known();
    for (document, letter, count) in [
        ("cloneset.md", 'C', 43),
        ("in-place-update.md", 'U', 26),
        ("sidecarset.md", 'S', 41),
        ("statefulset.md", 'S', 43),
        ("daemonset.md", 'D', 36),
        ("broadcastjob.md", 'J', 17),
        ("admission.md", 'A', 31),
        ("launch-priority.md", 'L', 14),
        ("pod-webhook.md", 'P', 11),
        ("installation.md", 'I', 20),
        ("podunavailablebudget.md", 'B', 26),
        ("podunavailablebudget.md", 'U', 6),
        ("podunavailablebudget.md", 'H', 3),
        ("podunavailablebudget.md", 'N', 1),
        ("podunavailablebudget.md", 'L', 1),
        ("advancedcronjob.md", 'J', 16),
        ("advancedcronjob.md", 'M', 13),
        ("ephemeraljob.md", 'J', 16),
        ("ephemeraljob.md", 'M', 10),
        ("nodeimage.md", 'N', 7),
        ("nodeimage.md", 'M', 5),
        ("imagepulljob.md", 'P', 12),
        ("imagepulljob.md", 'M', 14),
        ("sidecarterminator.md", 'T', 11),
        ("sidecarterminator.md", 'M', 9),
        ("agent.md", 'A', 17),
        ("agent.md", 'R', 13),
        ("agent.md", 'P', 10),
        ("containerrecreaterequest.md", 'R', 13),
        ("containerrecreaterequest.md", 'M', 9),
        ("imagelistpulljob.md", 'L', 7),
        ("imagelistpulljob.md", 'M', 3),
        ("uniteddeployment.md", 'D', 25),
        ("uniteddeployment.md", 'M', 16),
        ("resourcedistribution.md", 'D', 18),
        ("resourcedistribution.md", 'M', 11),
        ("workloadspread.md", 'W', 25),
        ("workloadspread.md", 'M', 15),
        ("persistentpodstate.md", 'P', 16),
        ("persistentpodstate.md", 'M', 13),
        ("podprobemarker.md", 'P', 9),
        ("podprobemarker.md", 'M', 6),
        ("nodepodprobe.md", 'N', 4),
        ("nodepodprobe.md", 'M', 5),
    ] {
        let rows = rows(document, letter);
        let numbers: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
        let wanted: Vec<String> = (1..=count).map(|number| format!("{letter}{number}")).collect();
        assert_eq!(numbers, wanted, "{document}");
        for row in rows {
            assert_eq!(row.len(), 6, "{document} {}", row[0]);
            let shown: Vec<&str> = row[2..4].iter().flat_map(|cell| names_in(cell)).collect();
            for test in &shown {
                assert!(
                    known.run.contains(*test),
                    "{document} {}: `cargo test` does not run {test}",
                    row[0]
                );
            }
            for test in names_in(&row[4]) {
                assert!(
                    known.ignored.contains(test),
                    "{document} {}: no test on a cluster {test}",
                    row[0]
                );
            }
            assert!(
                !shown.is_empty() || !row[5].is_empty(),
                "{document} {}: `cargo test` does not show it, and nothing says why",
                row[0]
            );
        }
    }
}

#[test]
fn whatever_is_better_here_has_a_test() {
    assert_tested("cloneset.md", 'M', (1..=7).chain(10..=21).chain([23]), 2);
    let in_place = (1..=10).chain(12..=16).chain(18..=20);
    assert_tested("in-place-update.md", 'N', in_place, 2);
    assert_tested("statefulset.md", 'M', (1..=13).chain(17..=29), 2);
    let of_daemonsets = [
        1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 16, 17, 18, 20, 21, 22, 23, 24, 26, 27,
    ];
    assert_tested("daemonset.md", 'M', of_daemonsets.into_iter(), 2);
    assert_tested("broadcastjob.md", 'M', 1..=11, 2);
}

/// The tests in the last cell of each row of a table whose rows are `wanted`.
fn assert_tested(document: &str, letter: char, wanted: impl Iterator<Item = u32>, cell: usize) {
    let known = known();
    let rows = rows(document, letter);
    let numbers: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    let wanted: Vec<String> = wanted.map(|number| format!("{letter}{number}")).collect();
    assert_eq!(numbers, wanted, "{document}");
    for row in rows {
        let (shown, others): (Vec<_>, Vec<_>) = names_in(&row[cell])
            .into_iter()
            .partition(|test| known.run.contains(*test));
        assert!(
            !shown.is_empty(),
            "{document} {}: `cargo test` does not show it",
            row[0]
        );
        for test in others {
            assert!(
                known.ignored.contains(test),
                "{document} {}: no test {test}",
                row[0]
            );
        }
    }
}

#[test]
fn every_gate_that_concerns_sets_has_a_test() {
    assert_tested("gates.md", 'G', 1..=13, 3);
}

#[test]
fn workloads_under_a_budget_have_tests() {
    assert_tested("podunavailablebudget.md", 'W', 1..=15, 2);
}

#[test]
fn whatever_sidecarsets_do_better_has_a_test() {
    assert_tested("sidecarset.md", 'D', 1..=12, 2);
}

#[test]
fn whatever_budgets_do_better_has_a_test() {
    let better = (1..=5).chain(8..=22);
    assert_tested("podunavailablebudget.md", 'M', better, 2);
    assert_tested("podunavailablebudget.md", 'P', [4, 6, 7, 8].into_iter(), 2);
    assert_tested("podunavailablebudget.md", 'T', 1..=1, 2);
}

#[test]
fn every_case_stands_in_a_table_and_every_case_there_exists() {
    let documents = [
        "cloneset.md",
        "daemonset.md",
        "broadcastjob.md",
        "in-place-update.md",
        "gates.md",
        "statefulset.md",
        "podunavailablebudget.md",
        "advancedcronjob.md",
        "ephemeraljob.md",
        "nodeimage.md",
        "imagepulljob.md",
        "imagelistpulljob.md",
    ];
    let text: String = documents
        .iter()
        .map(|document| fs::read_to_string(root().join("docs/scenarios").join(document)).unwrap())
        .collect();
    let mentioned: BTreeSet<&str> = names_in(&text).into_iter().collect();
    let mut known = Known::default();
    for cases in ["plan-workloads/tests/cases", "plan-nodes/tests/cases"] {
        collect(&root().join(cases), &mut known);
    }
    for name in &known.run {
        assert!(mentioned.contains(&**name), "{name} is in no table");
    }
    for name in mentioned.into_iter().filter(|name| is_case(name)) {
        assert!(known.run.contains(name), "there is no case {name}");
    }
}

/// Is it the name of a case: a letter, a number, and words, joined by dashes?
fn is_case(name: &str) -> bool {
    let Some((first, words)) = name.split_once('-') else {
        return false;
    };
    let number = first.strip_prefix(|letter: char| letter.is_ascii_lowercase());
    let number = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    number && words.bytes().all(plain)
}
