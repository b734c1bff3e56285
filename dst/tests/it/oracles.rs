//! Each oracle was seen to fail: by an injected bug, or in a play whose requests are altered on their way.

use std::{collections::BTreeSet, path::Path, sync::Mutex};

use kruise_dst::{engine::play::altered, subjects::ALL};

/// Seeds of subjects, and the oracles that fail there when the requests are altered that managers, agents and commands send.
/// `kruise-dst alter` finds them.
const ALTERED: &[(&str, &[&str])] = &[
    (
        "advancedcronjob/3",
        &[
            "jobs name their activation",
            "no activation before one that had a job",
        ],
    ),
    ("advancedcronjob/5", &["the history is kept"]),
    ("advancedcronjob/6", &["jobs that run stay"]),
    ("broadcastjob/1", &["nodes that may run a pod of a job"]),
    ("broadcastjob/5", &["a paused job creates nothing"]),
    (
        "broadcastjob/14",
        &[
            "a pod of a job has its form",
            "a reason for each deletion of a job",
        ],
    ),
    ("containerrecreaterequest/2", &["a request ends for a reason"]),
    (
        "containerrecreaterequest/5",
        &[
            "a request ends when its containers are dealt with",
            "a request is written as often as it needs",
            "an end is final",
        ],
    ),
    ("containerrecreaterequest/8", &["a grace period begins once"]),
    (
        "containerrecreaterequest/11",
        &["a container that succeeded is a new one"],
    ),
    (
        "containerrecreaterequest/33",
        &[
            "a pod is out of service while its request runs",
            "a request holds its pod until it ends",
        ],
    ),
    (
        "daemonset/14",
        &["a second pod is for an update", "revisions before pods"],
    ),
    ("daemonset/24", &["a pod has its form"]),
    (
        "ephemeraljob/3",
        &[
            "a job writes ephemeral containers only",
            "a pod gets the container once",
        ],
    ),
    (
        "imagepulljob/1",
        &[
            "an agent writes twice for an image that it pulls",
            "originals stay",
        ],
    ),
    (
        "persistentpodstate/8",
        &[
            "claims go with pods that are scaled away",
            "pods, nodes and workloads are only read",
            "unavailable first",
        ],
    ),
    (
        "persistentpodstate/17",
        &["labels of a record are those of its node"],
    ),
    ("persistentpodstate/26", &["available when its hook allows"]),
    ("persistentpodstate/29", &["released when it left"]),
    (
        "podprobemarker/1",
        &[
            "a marker that is deleted probes nothing",
            "conditions are results",
        ],
    ),
    ("podunavailablebudget/5", &["pods of a budget are only named"]),
    (
        "resourcedistribution/1",
        &["foreign objects stay", "only copies are written"],
    ),
    ("resourcedistribution/24", &["excluded namespaces get no copy"]),
    (
        "restart/4",
        &[
            "a request is what the command line says",
            "a run restarts a pod once",
        ],
    ),
    (
        "restart/6",
        &[
            "a request is deleted when its time to live is over",
            "a request with a key is held back",
            "a restart creates requests and nothing else",
            "nothing foreign is touched",
            "one pod for one place",
            "requests write conditions of pods only",
            "the agent learns what the pod reports",
        ],
    ),
    (
        "sidecarset/8",
        &["status of a set fits together", "upgrades go to the newest"],
    ),
    ("sidecarset/9", &["injection keeps the pod"]),
    (
        "sidecarset/16",
        &[
            "a set touches nothing foreign",
            "a specification is its author's",
            "pods of no set are left alone",
            "pods of others are only changed",
            "revisions of a set are stable",
            "sets take turns",
            "status of a set reports what was",
        ],
    ),
    (
        "sidecarterminator/5",
        &[
            "a pod ends before sidecars that do not count",
            "one request of a pod after the other",
            "pods are patched only",
            "requests are created and ended",
            "what has ended is not stopped",
        ],
    ),
    ("sidecarterminator/6", &["a request belongs to its pod"]),
    (
        "sidecarterminator/21",
        &["only images of sidecars on virtual nodes change"],
    ),
    (
        "statefulset/26",
        &[
            "a pod has its identity",
            "a reason for each change",
            "claims are not deleted",
            "claims before their pod",
            "claims have their names",
            "stale claims are waited for",
        ],
    ),
    (
        "uniteddeployment/17",
        &["pods are left to their workloads", "revisions of others stay"],
    ),
    (
        "uniteddeployment/30",
        &["a UnitedDeployment that is deleted writes nothing"],
    ),
    ("workloadspread/8", &["pods move when no node takes them in time"]),
    ("workloadspread/32", &["pods of a spread get metadata only"]),
];

/// Oracles that were never seen to fail. This list may only become shorter.
const UNSEEN: &[&str] = &[
    "a container is stopped out of service",
    "a job completes when every node has run",
    "a job fails for a reason",
    "a job with a failed pod has failed",
    "a main container is never stopped",
    "a paused schedule creates no jobs",
    "a pod nobody wants is let go",
    "a restart that succeeds has restarted every pod",
    "adopted for one that is there",
    "adopted if it fits",
    "adopted without an owner",
    "annotations of a record are those of its pod",
    "both versions agree",
    "budget of scaling",
    "claims grow with their pods",
    "claims only grow",
    "every watch is served",
    "first creations in parts",
    "held until it is deleted",
    "labels that a node lost stay recorded",
    "late when the deadline is over",
    "liveness",
    "new pods get their sidecars",
    "no job before its time",
    "nothing keeps a restart from its end while nothing fails",
    "nothing panics",
    "only images change",
    "only selected pods",
    "pods pass without a subset only if none has room",
    "pods that have ended stay",
    "sidecars on virtual nodes get their image",
    "the latest due activation has a job",
    "two plays are equal",
    "unavailable while it is held",
    "what annotations ask for stays",
    "what is generated is what annotations ask for",
    "workloads follow the newest template",
];
const UNSEEN_AT_MOST: usize = 37;

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
    let seen: BTreeSet<&str> = by_bugs.chain(by_alterations).copied().collect();
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

#[test]
fn oracles_fail_where_requests_are_altered() {
    let rest = Mutex::new(ALTERED.iter());
    let next = || rest.lock().unwrap().next();
    let play_some = || {
        while let Some((seed, oracles)) = next() {
            let seed = ALL.seed(seed).unwrap();
            let found = altered(ALL, &ALL.scenario(seed).unwrap(), seed.number).unwrap();
            let missing: Vec<_> = oracles.iter().filter(|oracle| !found.contains(*oracle)).collect();
            assert!(missing.is_empty(), "{seed}: {missing:?} of {found:?}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(play_some);
        }
    });
}
