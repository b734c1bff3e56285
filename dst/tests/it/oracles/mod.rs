//! Each oracle was seen to fail: by an injected bug, where requests are altered on their way, where something is
//! forged, or where it is shown what it is to find.

mod altered;
mod broken;
mod forged;

use std::{collections::BTreeSet, path::Path, sync::Mutex};

use kruise_dst::{
    engine::{forgery::Altering, play::altered, subject::Seed},
    subjects::ALL,
};

use altered::ALTERED;
use broken::SHOWN;
use forged::FORGED;

/// Oracles that were never seen to fail. This list may only become shorter.
const UNSEEN: &[&str] = &[
    "a pod nobody wants is let go",
    "claims grow with their pods",
    "claims only grow",
    "pods pass without a subset only if none has room",
    "pods that have ended stay",
    "what annotations ask for stays",
    "what is generated is what annotations ask for",
    "workloads follow the newest template",
];
const UNSEEN_AT_MOST: usize = 8;

/// What stands before the name of an oracle in the source.
const BEFORE: [&str; 6] = [
    "oracle: \"",
    "oracle = \"",
    "ORACLE: &str = \"",
    "Violation::of(\"",
    ".breaks(\"",
    "breaks!(\"",
];

/// Names of oracles in the source.
fn named(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, names);
            continue;
        }
        // As if an argument were never on the next line.
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.lines().map(str::trim).collect::<String>();
        let mut behind: Vec<&str> = BEFORE
            .iter()
            .flat_map(|before| text.split(before).skip(1))
            .collect();
        // `never!(write, "name", ...)`
        let rules = text
            .split("never!(")
            .skip(1)
            .filter_map(|rule| rule.split_once(','));
        behind.extend(rules.filter_map(|(_, rest)| rest.trim_start().strip_prefix('"')));
        // `kept_by!(specs, |spec| "name": ...; "other name": ...;)`
        let lists = text.split("kept_by!(").skip(1);
        let lists = lists.filter_map(|list| list.split_once(";)"));
        let rules = lists.flat_map(|(list, _)| list.split("\":"));
        let rules = rules.filter_map(|rule| rule.rsplit_once('"'));
        let ends = behind.iter().filter_map(|rest| Some(rest.split_once('"')?.0));
        names.extend(ends.chain(rules.map(|(_, name)| name)).map(str::to_owned));
    }
    // Members of a status have no spaces.
    names.retain(|name| name.contains(' ') && !name.contains(['{', '"']));
}

#[test]
fn every_oracle_was_seen_to_fail_but_for_those_of_a_list_that_becomes_shorter() {
    let by_bugs = ALL.bugs().flat_map(|(_, bug)| bug.oracles);
    let by_alterations = ALTERED.iter().flat_map(|(_, oracles)| *oracles);
    let by_forgeries = FORGED.iter().flat_map(|forged| forged.oracles);
    let shown = SHOWN.iter().map(|(oracle, _)| oracle);
    let seen = by_bugs.chain(by_alterations).chain(by_forgeries).chain(shown);
    let seen: BTreeSet<&str> = seen.copied().collect();
    let unseen: BTreeSet<&str> = UNSEEN.iter().copied().collect();
    let both: Vec<_> = seen.intersection(&unseen).collect();
    assert!(both.is_empty(), "no longer unseen: {both:?}");
    let mut names = BTreeSet::new();
    named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    assert!(names.len() > 100, "{names:?}");
    let is_known = |name: &&String| seen.contains(name.as_str()) || unseen.contains(name.as_str());
    let unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "not in a list: {unknown:?}");
    assert!(UNSEEN.len() <= UNSEEN_AT_MOST, "{}", UNSEEN.len());
}

/// Does something to each of some things, on as many threads as a small machine has processors.
fn each<T: Sync>(all: &[T], act: impl Fn(&T) + Sync) {
    let rest = Mutex::new(all.iter());
    let next = || rest.lock().unwrap().next();
    let act_on_some = || {
        while let Some(one) = next() {
            act(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(act_on_some);
        }
    });
}

#[test]
fn oracles_fail_where_requests_are_altered() {
    each(ALTERED, |(seed, oracles)| {
        let seed = ALL.seed(seed).unwrap();
        let altering = Altering::drawn(seed.number);
        let found = altered(ALL, &ALL.scenario(seed).unwrap(), altering, oracles).unwrap();
        let missing: Vec<_> = oracles
            .iter()
            .filter(|oracle| !found.contains_key(*oracle))
            .collect();
        assert!(missing.is_empty(), "{seed}: {missing:?} of {found:?}");
    });
}

/// Later seeds are tried, for so many: a forgery needs objects that allow it.
const SEEDS: usize = 8;

#[test]
fn oracles_fail_where_something_is_forged() {
    let failed = Mutex::new(Vec::new());
    each(FORGED, |forged| {
        let first = ALL.seed(forged.seed).unwrap();
        let shows = |seed: &Seed| {
            let altering = Altering::forged(forged.forgeries);
            let found = altered(ALL, &ALL.scenario(*seed).unwrap(), altering, forged.oracles).unwrap();
            forged.oracles.iter().all(|oracle| found.contains_key(oracle))
        };
        let mut seeds = ALL.seeds(Some(first.of), first.number).unwrap();
        match seeds.by_ref().take(SEEDS).find(shows) {
            Some(seed) => println!("{seed}: {:?}", forged.oracles),
            None => failed.lock().unwrap().push(forged.oracles),
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn oracles_of_the_simulation_find_what_they_are_shown() {
    for (oracle, show) in SHOWN {
        let found = show().map(|violation| violation.oracle);
        assert_eq!(found, Some(*oracle));
    }
}
