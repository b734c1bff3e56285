//! What preflight says of a cluster.

use std::collections::BTreeSet;

use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::openkruise;
use crate::older::problems;

/// The report, and the exit code.
pub(super) fn preflight(api: &Cluster) -> (Value, Option<i32>) {
    let ended = api.kruise(&["preflight", "--output=json"]);
    let mut values = serde_json::Deserializer::from_str(&ended.output).into_iter::<Value>();
    let report = values.next().and_then(Result::ok);
    (report.unwrap_or_else(|| panic!("{}", ended.output)), ended.code)
}

fn summary<'r>(report: &'r Value, check: &str) -> &'r str {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|one| one["name"] == check).unwrap();
    found["summary"].as_str().unwrap()
}

fn findings<'r>(report: &'r Value, check: &str) -> impl Iterator<Item = &'r Value> {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|one| one["name"] == check).unwrap();
    found["findings"].as_array().unwrap().iter()
}

/// What the findings of a check are about.
fn about(report: &Value, check: &str) -> BTreeSet<String> {
    let about = findings(report, check).map(|finding| finding["about"].as_str().unwrap().to_owned());
    about.collect()
}

/// The notes of a check: what they are about, and what they say.
pub(super) fn notes<'r>(report: &'r Value, check: &str) -> Vec<(&'r str, &'r str)> {
    let notes = findings(report, check).filter(|finding| finding["severity"] == "note");
    let text = |finding: &'r Value, field: &str| finding[field].as_str().unwrap();
    notes
        .map(|finding| (text(finding, "about"), text(finding, "text")))
        .collect()
}

/// Nothing is against the swap, and everything is counted.
pub(super) fn assert_advised(api: &Cluster, fleet: &Fleet) {
    let (report, code) = preflight(api);
    assert_eq!(problems(&report), [""; 0]);
    assert_eq!(code, Some(0));
    assert_eq!(report["podsThatWouldChange"], 0);
    let (objects, kinds) = fleet.counted();
    assert_eq!(
        summary(&report, "objects"),
        format!("{objects} objects of {kinds} kinds")
    );
    let settings = summary(&report, "settings");
    assert!(settings.starts_with(&openkruise::image(fleet)), "{settings}");
    assert_eq!(summary(&report, "managers"), "run in kruise-system");
    let planned = summary(&report, "plans");
    assert!(
        planned.ends_with("; metadata or conditions of 0 pods would be written"),
        "{planned}"
    );
    assert_eq!(
        about(&report, "plans"),
        BTreeSet::new(),
        "no rollout goes on by itself"
    );
    let older: BTreeSet<String> = fleet.only_older().into_iter().collect();
    assert!(
        about(&report, "definitions").is_superset(&older),
        "{:#?}",
        report["checks"][1]
    );
    assert_eq!(report["advised"], json!(true));
}
