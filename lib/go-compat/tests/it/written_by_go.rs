//! What Go programs printed: templates, of which both orders of members must come out byte for byte, and activations of
//! schedules.

use go_compat::{
    pod_template::{CoreType, revision_data},
    schedule::Schedule,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

#[test]
fn random_templates_come_out_as_go_wrote_them() {
    let vectors = include_str!("../go-templates.tsv");
    assert!(vectors.lines().count() >= 40);
    for (index, line) in vectors.lines().enumerate() {
        let (typed, data) = line.split_once('\t').unwrap();
        let template: Value = serde_json::from_str(typed).unwrap();
        assert_eq!(
            CoreType::PodTemplate.typed_json(&template),
            typed,
            "line {}",
            index + 1
        );
        assert_eq!(revision_data(&template), data, "line {}", index + 1);
    }
}

#[test]
fn the_next_activations_of_random_schedules_are_those_of_go_where_clocks_are_changed_too() {
    let vectors = include_str!("../go-schedules.tsv");
    assert!(vectors.lines().count() >= 2000);
    for (index, line) in vectors.lines().enumerate() {
        let [text, after, next] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let schedule: Schedule = text.parse().unwrap();
        let after: Timestamp = after.parse().unwrap();
        let expected = (next != "-").then(|| next.parse::<Timestamp>().unwrap());
        assert_eq!(
            schedule.next(after, &TimeZone::UTC),
            expected,
            "line {}: {line}",
            index + 1
        );
    }
}
