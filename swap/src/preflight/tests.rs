//! The report of findings of any check.

use super::*;

fn report(findings: Vec<Finding>, pods: Option<usize>) -> Report {
    Report {
        pods_that_would_change: pods,
        checks: vec![Check::new("objects", "3 objects of 1 kinds", findings)],
    }
}

#[test]
fn the_exit_code_is_that_of_the_most_serious_finding() {
    let note = Finding::note("CloneSet shop/web", "note");
    let unknown = Finding::unknown("CloneSet shop/web", "unknown");
    let problem = Finding::problem("CloneSet shop/web", "problem");
    assert_eq!(report(vec![note.clone()], Some(0)).exit_code(), 0);
    assert_eq!(report(vec![note.clone(), unknown.clone()], None).exit_code(), 2);
    assert_eq!(report(vec![note, unknown, problem], None).exit_code(), 1);
}

#[test]
fn people_read_problems_first_and_the_advice_last() {
    let findings = vec![
        Finding::note("client helm", "writes v1alpha1"),
        Finding::problem("CloneSet shop/web", "nothing acts on it").advising("keep OpenKruise"),
    ];
    assert_eq!(
        report(findings, Some(0)).text(),
        "objects: 3 objects of 1 kinds\n  problem CloneSet shop/web: nothing acts on it\n    do: keep OpenKruise\n  note \
         client helm: writes v1alpha1\npods that would change: 0\ndo not swap before the problems are solved: 1 problems, \
         0 unknown, 1 notes\n"
    );
}

#[test]
fn programs_read_whether_the_swap_is_advised() {
    let json = report(vec![Finding::unknown("pods", "forbidden")], None)
        .json()
        .unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["advised"], false);
    assert_eq!(json["podsThatWouldChange"], serde_json::Value::Null);
    assert_eq!(json["checks"][0]["findings"][0]["severity"], "unknown");
}
