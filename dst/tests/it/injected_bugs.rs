//! Injected bugs: each is found by simulation, and in a list of one subject.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Mutex,
};

use kruise_dst::{engine::injected::hunt, subjects::ALL};

/// Names of bugs in the sources below a folder: what [`is_injected`](kruise_plan_kit::injected::is_injected) is
/// asked for.
fn injected(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            injected(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let behind = text.split("is_injected(\"").skip(1);
        names.extend(behind.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
}

#[test]
fn every_bug_that_is_injected_is_in_the_list_of_one_subject() {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), ".."].iter().collect();
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let sources = entry.unwrap().path().join("src");
        if sources.is_dir() {
            injected(&sources, &mut names);
        }
    }
    let listed: Vec<&str> = ALL.bugs().map(|(_, bug)| bug.name).collect();
    let once: BTreeSet<String> = listed.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(once.len(), listed.len(), "a bug is listed twice");
    assert_eq!(names, once);
}

/// `KRUISE_DST_BUG=RequestKeyLeft` looks for that one alone. `kruise-dst injected-bugs` begins at the first seed
/// for all.
#[test]
#[ignore = "minutes"]
fn every_injected_bug_is_found_within_a_thousand_scenarios() {
    let only = std::env::var("KRUISE_DST_BUG").ok();
    let bugs = ALL.bugs();
    let bugs: Vec<_> = bugs
        .filter(|(_, bug)| only.as_ref().is_none_or(|only| bug.name == only))
        .collect();
    assert!(!bugs.is_empty(), "there is no bug {only:?}");
    let rest = Mutex::new(bugs.into_iter());
    let next = || rest.lock().unwrap().next();
    let wrong = Mutex::new(Vec::new());
    let find_some = || {
        while let Some((of, bug)) = next() {
            let name = bug.name;
            let found = hunt(ALL, of, name, bug.first, 1000).unwrap();
            let Some(found) = found else {
                wrong.lock().unwrap().push(format!("{name} was not found"));
                continue;
            };
            let (took, seed) = (found.took.as_secs_f64(), found.seed);
            println!("{name}: {took:.1} s, {seed}: {:?}", found.violation);
            if !bug.oracles.contains(&found.violation.oracle) {
                wrong
                    .lock()
                    .unwrap()
                    .push(format!("{name} at {seed}: {:?}", found.violation));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(find_some);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
