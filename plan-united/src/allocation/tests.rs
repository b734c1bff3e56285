//! The tables of the specification.

use go_compat::IntOrString;
use kruise_api::uniteddeployment::{Subset, UnitedDeploymentSpec};
use serde_json::json;

use super::{Seen, allocate};

/// Subsets of these sizes: current replicas, then `min..max` or `=replicas`.
fn subsets(sizes: &[&str]) -> Vec<Subset> {
    let value = |text: &str| match text {
        "" => None,
        text => Some(
            text.parse()
                .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int),
        ),
    };
    let named = sizes.iter().enumerate().map(|(index, size)| {
        let mut subset = Subset {
            name: format!("t{}", index + 1),
            ..Subset::default()
        };
        if let Some((min, max)) = size.split_once("..") {
            (subset.min_replicas, subset.max_replicas) = (value(min), value(max));
        } else {
            subset.replicas = value(size.trim_start_matches('='));
        }
        subset
    });
    named.collect()
}

fn spec(total: i32, strategy: &serde_json::Value) -> UnitedDeploymentSpec {
    serde_json::from_value(json!({"replicas": total, "topology": {"scheduleStrategy": strategy}})).unwrap()
}

fn fixed(total: i32, current: &[i32], sizes: &[&str]) -> Result<Vec<i32>, String> {
    let subsets = subsets(sizes);
    let seen: Vec<Seen<'_>> = subsets
        .iter()
        .zip(current)
        .map(|(subset, current)| Seen {
            subset,
            workload: (*current > 0).then_some((*current, *current)),
            unschedulable: false,
            marked: false,
            reserved: 0,
        })
        .collect();
    allocate(&spec(total, &json!({})), &seen)
}

#[test]
fn what_no_subset_names_is_shared_and_the_largest_get_what_is_over() {
    let current = [1, 4, 2, 2];
    assert_eq!(fixed(5, &current, &["", "", "", ""]), Ok(vec![1, 2, 1, 1]));
    assert_eq!(fixed(17, &current, &["", "", "", ""]), Ok(vec![4, 5, 4, 4]));
    assert_eq!(fixed(27, &current, &["=4", "", "=4", ""]), Ok(vec![4, 10, 4, 9]));
    assert_eq!(fixed(5, &[0, 0], &["", ""]), Ok(vec![2, 3]));
    assert_eq!(fixed(10, &[0, 0, 0], &["", "", ""]), Ok(vec![3, 3, 4]));
    assert_eq!(fixed(6, &[0, 0, 0], &["=1", "=50%", ""]), Ok(vec![1, 3, 2]));
}

#[test]
fn percentages_are_rounded_half_up_and_contradictions_are_refused() {
    assert_eq!(fixed(7, &[2, 3, 5], &["=20%", "=30%", "=50%"]), Ok(vec![1, 2, 4]));
    for (total, sizes) in [
        (3, ["=50%", "=50%"]),
        (3, ["=1", "=1"]),
        (3, ["=4", ""]),
        (3, ["=-1", ""]),
        (3, ["=101%", ""]),
        (3, ["=half", ""]),
    ] {
        assert!(fixed(total, &[0, 0], &sizes).is_err(), "{sizes:?}");
    }
    assert!(fixed(1, &[], &[]).is_err());
    assert_eq!(fixed(0, &[], &[]), Ok(Vec::new()));
}

#[test]
fn bounded_subsets_are_filled_in_order_and_emptied_in_reverse() {
    let sizes = ["..4", ".."];
    for (total, expected) in [(5, [4, 1]), (3, [3, 0]), (8, [4, 4])] {
        assert_eq!(fixed(total, &[0, 0], &sizes), Ok(expected.to_vec()));
    }
    assert_eq!(fixed(5, &[0, 0], &["2..4", "2.."]), Ok(vec![3, 2]));
    assert_eq!(
        fixed(9, &[0, 0], &["..2", "..2"]),
        Ok(vec![2, 2]),
        "the rest is dropped"
    );
    assert!(fixed(5, &[0, 0], &["3..2", ".."]).is_err());
}

/// `pending` pods of each are not Ready; -1: the subset is marked and has none of them.
fn adaptive(total: i32, pods: &[i32], sizes: &[&str], pending: &[i32]) -> Vec<i32> {
    let subsets = subsets(sizes);
    let seen: Vec<Seen<'_>> = subsets
        .iter()
        .zip(pods.iter().zip(pending))
        .map(|(subset, (pods, pending))| Seen {
            subset,
            workload: Some((*pods, pods - (*pending).max(0))),
            unschedulable: *pending != 0,
            marked: *pending != 0,
            reserved: 0,
        })
        .collect();
    allocate(&spec(total, &json!({"type": "Adaptive"})), &seen).unwrap()
}

#[test]
fn pods_move_away_from_subsets_that_cannot_take_them() {
    for pending in [5, 4, 3, 2] {
        assert_eq!(adaptive(10, &[5, 5], &["3..5", "0.."], &[pending, 0]), [3, 7]);
    }
    assert_eq!(adaptive(3, &[2, 2], &["1..2", "0.."], &[0, 0]), [2, 1]);
    assert_eq!(adaptive(1, &[2, 1], &["1..2", "0.."], &[0, 0]), [1, 0]);
    assert_eq!(adaptive(3, &[1, 3], &["0..2", "0.."], &[1, 0]), [0, 3]);
    let sizes = ["0..2", "0..", "0..", "0.."];
    assert_eq!(adaptive(4, &[2, 2, 0, 0], &sizes, &[0, 2, 0, 0]), [2, 0, 2, 0]);
    assert_eq!(adaptive(8, &[2, 0, 0, 2], &sizes, &[0, -1, -1, 0]), [2, 0, 0, 6]);
    assert_eq!(adaptive(8, &[2, 0, 0, 2], &sizes, &[0, 0, 0, 0]), [2, 4, 0, 2]);
}

#[test]
fn more_ready_pods_than_a_subset_may_have_stay_only_where_it_takes_no_others() {
    let sizes = ["1..2", "0.."];
    assert_eq!(adaptive(6, &[5, 0], &sizes, &[0, 0]), [2, 4]);
    assert_eq!(adaptive(6, &[5, 1], &sizes, &[2, 0]), [3, 3]);
    assert_eq!(adaptive(6, &[5, 1], &sizes, &[5, 0]), [1, 5]);
}

/// -1: marked, and without reserved pods.
fn reserved(total: i32, sizes: &[&str], current: &[i32], reserved: &[i32]) -> Vec<i32> {
    let subsets = subsets(sizes);
    let seen: Vec<Seen<'_>> = subsets
        .iter()
        .zip(current.iter().zip(reserved))
        .map(|(subset, (current, reserved))| Seen {
            subset,
            workload: (*current > 0).then_some((*current, *current)),
            unschedulable: *reserved > 0,
            marked: *reserved != 0,
            reserved: (*reserved).max(0),
        })
        .collect();
    let strategy = json!({"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": true}});
    allocate(&spec(total, &strategy), &seen).unwrap()
}

#[test]
fn reserved_pods_count_for_nothing() {
    let bounded = ["1..2", "1..2", "1..2", "1.."];
    assert_eq!(reserved(8, &bounded, &[0; 4], &[0; 4]), [2, 2, 2, 2]);
    assert_eq!(reserved(8, &bounded, &[2, 2, 2, 2], &[0, 2, 2, 0]), [2, 2, 2, 6]);
    assert_eq!(reserved(8, &bounded, &[2, 2, 2, 6], &[0, 1, 1, 0]), [2, 2, 2, 4]);
    assert_eq!(reserved(8, &bounded, &[2, 2, 2, 4], &[0, -1, 1, 0]), [2, 2, 2, 3]);
    let wider = ["2..4", "2..4", "2..4", "2.."];
    assert_eq!(reserved(16, &wider, &[2, 2, 2, 6], &[0, 1, 1, 0]), [4, 2, 2, 10]);
    assert_eq!(
        reserved(16, &wider, &[4, 2, 2, 10], &[0, -1, -1, 0]),
        [4, 4, 4, 8]
    );
    let free = ["..", "..", ".."];
    assert_eq!(reserved(2, &free, &[2, 2, 0], &[2, 2, 0]), [2, 2, 2]);
    assert_eq!(reserved(4, &free, &[2, 2, 2], &[2, 2, 0]), [2, 2, 4]);
    assert_eq!(reserved(4, &free, &[2, 2, 4], &[2, -1, 0]), [2, 4, 2]);
    assert_eq!(reserved(2, &free, &[2, 2, 1], &[0, 1, 0]), [2, 0, 0]);
    assert_eq!(reserved(4, &free, &[2, 2, 4], &[-1, 2, 0]), [4, 2, 2]);
    let least = ["1..", "1..", "0.."];
    assert_eq!(reserved(2, &least, &[1, 1, 0], &[1, 1, 0]), [1, 1, 2]);
    assert_eq!(reserved(2, &least, &[2, 1, 0], &[0, -1, 0]), [1, 1, 0]);
}
