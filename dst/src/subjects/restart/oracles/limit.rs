//! *"At each moment no more pods are out of service than `maxUnavailable` of the workload allows; a pod counts until the workload
//! calls it available again, and as long as any request for it is open. A pod that is out of service already costs nothing."*

use super::open::Open;
use super::order::Found;
use crate::rules::belief::Knowledge;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// What a version of the CloneSet allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    wanted: i64,
    most_out: i64,
    min_ready_seconds: i64,
}

impl Limits {
    /// A restart needs one pod out of service. Percentages are rounded up; no scenario has a surge.
    fn of(set: &Object) -> Self {
        let spec = &set.value()["spec"];
        let wanted = spec["replicas"].as_i64().unwrap_or(1);
        let most_out = match &spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] {
            Value::Number(number) => number.as_i64().unwrap_or(0),
            text => {
                let percent = text.as_str().unwrap_or("20%").trim_end_matches('%');
                let percent: i64 = percent.parse().unwrap_or(0);
                (percent * wanted + 99) / 100
            }
        };
        Self {
            wanted,
            most_out: most_out.max(1),
            min_ready_seconds: number(&spec["minReadySeconds"]),
        }
    }
}

/// A request that takes one pod too many out of service, whatever may have been so since the run looked last.
pub fn exceeded(write: &Write<'_>, open: &Open<'_>) -> Found {
    let known = Knowledge::of(write, open.mirror, CLONESETS, Limits::of)?;
    let looked = open
        .mirror
        .time_of(write.sent.floors.of(PODS))
        .unwrap_or(write.now);
    let serves = |pod: &Object, limits: &Limits, at: Timestamp| {
        known.owns(pod) && pod.is_available(limits.min_ready_seconds, at)
    };
    let own = known.pods.iter().find(|pod| *pod.truth().uid == *open.pod())?;
    let others = |limits: &Limits| {
        let others = known.pods.iter().filter(|pod| *pod.truth().uid != *open.pod());
        let in_service = others.filter(|pod| {
            open.certain(&pod.truth().uid).is_none() && pod.may_be(|one| serves(one, limits, write.now))
        });
        in_service.count() as i64
    };
    let is_allowed = known.allows(|limits| {
        let may_be_out = own.may_be(|one| !serves(one, limits, looked));
        may_be_out || limits.wanted - others(limits) <= limits.most_out
    });
    (!is_allowed).then(|| {
        let said = known
            .specs
            .iter()
            .map(|limits| format!("{} in service beside it of {limits:?}", others(limits)));
        let said: Vec<String> = said.collect();
        (
            "restarts within the limit",
            format!("{}: {}", own.name(), said.join("; ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_percentage_is_rounded_up_and_one_pod_may_always_be_restarted() {
        let of = |share: Value| {
            let set = json!({"spec": {"replicas": 7, "updateStrategy": {"rollingUpdate": {"maxUnavailable": share}}}});
            Limits::of(&Object::new(
                Arc::new(set),
                bytes::Bytes::new(),
                false,
                Timestamp::UNIX_EPOCH,
            ))
            .most_out
        };
        assert_eq!(
            [of(json!("20%")), of(json!(2)), of(json!(0)), of(json!(null))],
            [2, 2, 1, 2]
        );
    }
}
