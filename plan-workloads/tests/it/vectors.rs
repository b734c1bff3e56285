//! The published arithmetic, row by row.

use kruise_api::cloneset::CloneSetSpec;
use kruise_plan_workloads::cloneset::{Counts, Limits, Numbers, numbers};
use serde_json::{Value, json};

/// One side of the rollout: available, unavailable, specified and available, held before deletion.
type Side = [i32; 4];

struct Row {
    case: &'static str,
    replicas: i32,
    /// `spec.updateStrategy.rollingUpdate`; null leaves it out.
    rolling: Value,
    /// `spec.scaleStrategy`.
    scale: Value,
    old: Side,
    new: Side,
    /// up, up on the current revision, up limit, down, down old, available ones deletable, surge, surge old, updates,
    /// unavailable during updates.
    expected: [i32; 10],
    /// What OpenKruise computes, where we deliberately differ.
    upstream: Option<[i32; 10]>,
}

fn row(case: &'static str, replicas: i32, rolling: Value, old: Side, new: Side, expected: [i32; 10]) -> Row {
    let scale = json!({});
    Row {
        case,
        replicas,
        rolling,
        scale,
        old,
        new,
        expected,
        upstream: None,
    }
}

fn rows() -> Vec<Row> {
    let u = |max: Value| json!({"maxUnavailable": max});
    let none: Side = [0, 0, 0, 0];
    vec![
        row(
            "no pods",
            5,
            u(json!(1)),
            none,
            none,
            [5, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        ),
        Row {
            scale: json!({"maxUnavailable": 2}),
            ..row(
                "limited creation, one of two is out of service",
                5,
                u(json!(1)),
                none,
                [1, 1, 0, 0],
                [3, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            )
        },
        row(
            "surge 2 of 5, all old",
            5,
            json!({"maxSurge": 2, "maxUnavailable": 0}),
            [5, 0, 0, 0],
            none,
            [2, 0, 2, 0, 0, 0, 2, 0, 5, 0],
        ),
        row(
            "surge reached",
            5,
            json!({"maxSurge": 2, "maxUnavailable": 0}),
            [5, 0, 0, 0],
            [2, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 2, 0, 3, 2],
        ),
        row(
            "surge reached, two old ones specified",
            5,
            json!({"maxSurge": 2, "maxUnavailable": 0}),
            [3, 0, 2, 0],
            [2, 0, 0, 0],
            [0, 0, 0, 0, 0, 2, 2, 0, 3, 2],
        ),
        row(
            "surge is over",
            5,
            json!({"maxSurge": 2, "maxUnavailable": 0}),
            [1, 0, 0, 0],
            [5, 0, 0, 0],
            [0, 0, 0, 1, 1, 1, 0, 0, 0, 0],
        ),
        row(
            "surge is no more than new pods are missing",
            5,
            json!({"maxSurge": 2, "maxUnavailable": 0}),
            [3, 0, 0, 0],
            [4, 0, 0, 0],
            [0, 0, 0, 1, 3, 2, 1, 0, 1, 2],
        ),
        row(
            "surge of a set that was scaled in during its rollout",
            3,
            json!({"maxSurge": 5, "maxUnavailable": 0}),
            [8, 0, 0, 0],
            [2, 0, 0, 0],
            [0, 0, 0, 6, 8, 7, 1, 0, 1, 7],
        ),
        row(
            "surge is no more than the partition leaves to do",
            5,
            json!({"partition": 3, "maxSurge": 3, "maxUnavailable": 0}),
            [5, 0, 0, 0],
            none,
            [2, 0, 2, 0, 0, 0, 2, 0, 2, 0],
        ),
        row(
            "20 % of 5",
            5,
            u(json!("20%")),
            [5, 0, 0, 0],
            none,
            [0, 0, 0, 0, 0, 0, 0, 0, 5, 1],
        ),
        row(
            "20 % of 4 with surge rounds down",
            4,
            json!({"maxSurge": 1, "maxUnavailable": "20%"}),
            [4, 0, 0, 0],
            none,
            [1, 0, 1, 0, 0, 0, 1, 0, 4, 0],
        ),
        row(
            "a specified pod waits for its substitute",
            5,
            json!({"maxSurge": 1, "maxUnavailable": 1}),
            none,
            [3, 1, 1, 0],
            [1, 0, 1, 0, 0, 0, 1, 0, 0, 0],
        ),
        row(
            "more pods than replicas on both sides",
            3,
            json!({"partition": 2, "maxUnavailable": 1}),
            [3, 0, 0, 0],
            [2, 0, 0, 0],
            [0, 0, 0, 2, 1, 3, 0, 0, 0, 0],
        ),
        row(
            "partition 99 % of 5 updates one",
            5,
            json!({"partition": "99%", "maxUnavailable": 1}),
            [5, 0, 0, 0],
            none,
            [0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
        ),
        row(
            "partition 0.5 % of 5 updates four",
            5,
            json!({"partition": "0.5%", "maxUnavailable": 1}),
            [5, 0, 0, 0],
            none,
            [0, 0, 0, 0, 0, 0, 0, 0, 4, 1],
        ),
        Row {
            upstream: Some([0, 0, 0, 0, 0, 0, 0, 0, 16, 0]),
            ..row(
                "a fraction of a percent is a number",
                16,
                u(json!("12.5%")),
                [16, 0, 0, 0],
                none,
                [0, 0, 0, 0, 0, 0, 0, 0, 16, 2],
            )
        },
        Row {
            upstream: Some([0, 0, 0, 0, 0, 0, 0, 0, 3, 0]),
            ..row(
                "without a rollingUpdate block 20 % rounds up too",
                3,
                Value::Null,
                [2, 0, 1, 0],
                none,
                [0, 0, 0, 0, 0, 1, 0, 0, 3, 1],
            )
        },
        Row {
            scale: json!({"maxUnavailable": 1, "excludePreparingDelete": true}),
            upstream: Some([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            ..row(
                "a pod on its way out takes no place from a new one",
                3,
                u(json!(1)),
                none,
                [2, 0, 0, 1],
                [1, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            )
        },
    ]
}

fn tally([available, unavailable, specified_available, preparing_delete]: Side) -> Counts {
    Counts {
        available,
        unavailable,
        specified_available,
        preparing_delete,
        ..Counts::default()
    }
}

fn limits(row: &Row) -> Limits {
    let mut strategy = json!({"type": "RollingUpdate"});
    if !row.rolling.is_null() {
        strategy["rollingUpdate"] = row.rolling.clone();
    }
    let spec: CloneSetSpec = serde_json::from_value(json!({
        "replicas": row.replicas, "updateStrategy": strategy, "scaleStrategy": row.scale,
        "selector": {"matchLabels": {"app": "web"}}, "template": {},
    }))
    .unwrap();
    Limits::of(&spec, false)
}

fn list(n: Numbers) -> [i32; 10] {
    [
        n.up,
        n.up_old,
        n.up_limit,
        n.down,
        n.down_old,
        n.delete_available,
        n.surge,
        n.surge_old,
        n.update,
        n.update_max_unavailable,
    ]
}

#[test]
fn the_published_vectors_hold() {
    for row in rows() {
        let computed = list(numbers(limits(&row), tally(row.old), tally(row.new)));
        assert_eq!(computed, row.expected, "{}", row.case);
    }
}

#[test]
fn every_deliberate_difference_is_one() {
    let differing: Vec<&str> = rows()
        .iter()
        .filter(|row| row.upstream.is_some_and(|upstream| upstream != row.expected))
        .map(|row| row.case)
        .collect();
    assert_eq!(
        differing.len(),
        3,
        "a row that says it differs does not: {differing:?}"
    );
}

#[test]
fn a_specified_pod_out_of_service_lends_its_place_to_nobody() {
    // Five pods, one may be out of service, one specified pod already is: no available pod may follow it.
    let limits = limits(&row("", 5, json!({"maxUnavailable": 1}), [0; 4], [0; 4], [0; 10]));
    let new = Counts {
        available: 3,
        specified_available: 1,
        specified_unavailable: 1,
        ..Counts::default()
    };
    assert_eq!(numbers(limits, Counts::default(), new).delete_available, 0);
}

#[test]
fn broken_old_pods_use_up_the_room_for_new_ones_unless_an_update_replaces_them() {
    let old = Counts {
        available: 1,
        unavailable: 2,
        ..Counts::default()
    };
    let up_limit = |rolling: Value, kind: &str| {
        let spec: CloneSetSpec = serde_json::from_value(json!({
            "replicas": 6, "updateStrategy": {"type": kind, "rollingUpdate": rolling},
            "scaleStrategy": {"maxUnavailable": 2}, "selector": {"matchLabels": {"app": "web"}}, "template": {},
        }))
        .unwrap();
        let numbers = numbers(Limits::of(&spec, false), old, Counts::default());
        assert_eq!(numbers.up, 3);
        numbers.up_limit
    };
    assert_eq!(up_limit(json!({}), "RollingUpdate"), 2);
    assert_eq!(up_limit(json!({"partition": 2}), "RollingUpdate"), 1);
    assert_eq!(up_limit(json!({"paused": true}), "RollingUpdate"), 0);
    assert_eq!(up_limit(Value::Null, "OnDelete"), 0);
}

#[test]
fn a_paused_rollout_has_no_surge_and_rounds_unavailability_up() {
    let paused = json!({"maxSurge": 2, "maxUnavailable": "20%", "paused": true});
    let limits = limits(&row("", 4, paused, [0; 4], [0; 4], [0; 10]));
    assert_eq!((limits.max_surge, limits.max_unavailable), (0, 1));
}

#[test]
fn no_replicas_means_one() {
    let spec: CloneSetSpec = serde_json::from_value(json!({"template": {}})).unwrap();
    assert_eq!(Limits::of(&spec, false).replicas, 1);
}
