//! A UnitedDeployment and its workloads, as the documentation explains them.

use std::ops::RangeInclusive;

use super::super::start::UNITED;
use crate::rules::prelude::*;

/// What is compared of a template: nothing else of it is ever edited.
pub type Container<'v> = [&'v Value; 2];

/// The container in a specification of pods.
fn container(pods: &Value) -> Container<'_> {
    let container = &pods["containers"][0];
    [&container["image"], &container["env"]]
}

/// The container that a UnitedDeployment, or one of its revisions, wants: `template` is where its template is.
pub fn wanted(template: &Value) -> Container<'_> {
    container(&template["cloneSetTemplate"]["spec"]["template"]["spec"])
}

/// The container in the template of a workload.
pub fn given(set: &Object) -> Container<'_> {
    container(&set.spec()["template"]["spec"])
}

/// The template that a revision holds.
pub fn of_revision(revision: &Object) -> Container<'_> {
    wanted(&revision.value()["data"]["spec"]["template"])
}

/// Is a workload controlled by a UnitedDeployment that is there, or was?
pub fn is_of_any(set: &Object, mirror: &Mirror) -> bool {
    mirror.of(UNITED).objects.contains_key(set.owner())
}

/// The subsets of a specification.
pub fn subsets(spec: &Value) -> &[Value] {
    list(&spec["topology"]["subsets"])
}

/// How many pods of a subset stay at older revisions, of so many.
pub fn partition(spec: &Value, subset: &str, replicas: i64) -> i64 {
    let held = spec["updateStrategy"]["manualUpdate"]["partitions"][subset].as_i64();
    held.unwrap_or(0).min(replicas)
}

/// The replicas of a specification.
pub fn replicas(spec: &Value) -> i64 {
    spec["replicas"].as_i64().unwrap_or(1)
}

/// Least and most pods of each subset, in the order of the topology; nothing if the specification contradicts itself.
pub fn shares(spec: &Value) -> Option<Vec<(&str, RangeInclusive<i64>)>> {
    let (total, subsets) = (replicas(spec), subsets(spec));
    let is_bounded = |subset: &Value| !(subset["minReplicas"].is_null() && subset["maxReplicas"].is_null());
    let shares = if subsets.iter().any(is_bounded) {
        let shares = bounded(subsets, total).into_iter();
        shares.map(|share| share..=share).collect()
    } else {
        named(subsets, total)?
    };
    let names = subsets.iter().map(|subset| text(&subset["name"]));
    Some(names.zip(shares).collect())
}

/// A number of pods, or a percentage of all of them, rounded half up; nothing if there is none.
fn count(value: &Value, total: i64) -> Option<i64> {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            Some((percent * total + 50) / 100)
        }
        number => number.as_i64(),
    }
}

/// *"Give each its least in order, and then what is left, up to its most."*
fn bounded(subsets: &[Value], total: i64) -> Vec<i64> {
    let least = |subset: &Value| count(&subset["minReplicas"], total).unwrap_or(0);
    let mut left = total;
    let mut shares = Vec::new();
    for subset in subsets {
        let share = least(subset).min(left);
        left -= share;
        shares.push(share);
    }
    for (subset, share) in subsets.iter().zip(&mut shares) {
        let most = count(&subset["maxReplicas"], total);
        let more = most.map_or(left, |most| left.min(most - least(subset)));
        left -= more;
        *share += more;
    }
    shares
}

/// *"Specified get their value. The rest share the remainder."* Which of them get one more depends on what was before.
fn named(subsets: &[Value], total: i64) -> Option<Vec<RangeInclusive<i64>>> {
    let named: Vec<Option<i64>> = subsets
        .iter()
        .map(|subset| count(&subset["replicas"], total))
        .collect();
    let rest = total - named.iter().flatten().sum::<i64>();
    let free = named.iter().filter(|count| count.is_none()).count() as i64;
    if rest < 0 || (rest > 0 && free == 0) {
        return None;
    }
    let free = free.max(1);
    let equal = rest / free..=(rest + free - 1) / free;
    let shares = named
        .into_iter()
        .map(|count| count.map_or(equal.clone(), |count| count..=count));
    Some(shares.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(replicas: i64, subsets: &Value) -> Value {
        json!({"replicas": replicas, "topology": {"subsets": subsets}})
    }

    #[test]
    fn shares_are_those_of_the_examples_of_the_documentation() {
        let of = |spec: &Value| {
            let shares = shares(spec)?.into_iter();
            Some(
                shares
                    .map(|(_, share)| (*share.start(), *share.end()))
                    .collect::<Vec<_>>(),
            )
        };
        let named = json!([{"name": "a", "replicas": 1}, {"name": "b", "replicas": "50%"}, {"name": "c"}]);
        assert_eq!(of(&spec(6, &named)), Some(vec![(1, 1), (3, 3), (2, 2)]));
        let halves = json!([{"name": "a", "replicas": "50%"}, {"name": "b", "replicas": "50%"}]);
        assert_eq!(of(&spec(3, &halves)), None);
        assert_eq!(of(&spec(4, &halves)), Some(vec![(2, 2), (2, 2)]));
        let free = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        assert_eq!(of(&spec(10, &free)), Some(vec![(3, 4); 3]));
        let bounded =
            json!([{"name": "a", "minReplicas": 2, "maxReplicas": 4}, {"name": "b", "minReplicas": 2}]);
        assert_eq!(of(&spec(5, &bounded)), Some(vec![(3, 3), (2, 2)]));
        assert_eq!(of(&spec(1, &bounded)), Some(vec![(1, 1), (0, 0)]));
        assert_eq!(of(&spec(9, &bounded)), Some(vec![(4, 4), (5, 5)]));
    }
}
