//! Which request of a pod runs: one at a time, one that has begun first, then the oldest.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::request::{RECREATING, RequestView};

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Runs,
    /// It waits for the request with this name.
    Waits(Box<str>),
}

/// A request, and whether this agent has begun to carry it out, which its phase says later.
pub(super) type Candidate<'a> = (&'a RequestView, bool);

/// The turns of requests that are not over.
pub(super) fn turns<'a>(requests: impl Iterator<Item = Candidate<'a>> + Clone) -> Vec<(Box<str>, Turn)> {
    let mut first: BTreeMap<(&str, &str), Candidate<'_>> = BTreeMap::new();
    let open = requests.filter(|(request, _)| !request.is_over());
    for candidate in open.clone() {
        let (request, _) = candidate;
        let running = first
            .entry((&request.namespace, &request.pod))
            .or_insert(candidate);
        if rank(candidate) < rank(*running) {
            *running = candidate;
        }
    }
    let turn = |(request, _): Candidate<'_>| {
        let (running, _) = first.get(&(&*request.namespace, &*request.pod))?;
        let turn = if running.uid == request.uid {
            Turn::Runs
        } else {
            Turn::Waits(running.name.clone())
        };
        Some((request.uid.clone(), turn))
    };
    open.filter_map(turn).collect()
}

fn rank((request, has_begun): Candidate<'_>) -> (u8, Option<Timestamp>, &str, &str) {
    let state = match &*request.status.phase {
        _ if has_begun => 0,
        RECREATING => 1,
        _ => 2,
    };
    (state, request.created, &request.name, &request.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestStatus;

    fn request(name: &str, pod: &str, phase: &str, second: i64) -> RequestView {
        RequestView {
            namespace: "shop".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            created: Timestamp::from_second(second).ok(),
            is_active: true,
            pod: pod.into(),
            status: RequestStatus {
                phase: phase.into(),
                ..RequestStatus::default()
            },
            ..RequestView::default()
        }
    }

    #[test]
    fn s4_7_a_running_request_comes_first_and_then_the_oldest_of_each_pod() {
        let all = [
            request("done", "a", "Completed", 0),
            request("old", "a", "", 1),
            request("waiting", "a", "Pending", 3),
            request("running", "a", "Recreating", 9),
            request("young", "b", "", 2),
            request("same-age", "b", "", 2),
        ];
        let turns_of = |all: &[RequestView], begun: &str| {
            let candidates: Vec<Candidate<'_>> = all.iter().map(|one| (one, &*one.name == begun)).collect();
            turns(candidates.into_iter())
        };
        let names = |all: &[RequestView], begun: &str| -> Vec<String> {
            let turns = turns_of(all, begun).into_iter();
            let running = turns.filter(|(_, turn)| *turn == Turn::Runs);
            running
                .map(|(uid, _)| uid.trim_start_matches("uid-").to_owned())
                .collect()
        };
        assert_eq!(names(&all, ""), ["running", "same-age"]);
        assert_eq!(names(&all[..3], ""), ["old"]);
        assert_eq!(names(&all, "waiting"), ["waiting", "same-age"]);
        let turns = turns_of(&all[..3], "");
        assert_eq!(turns[1], ("uid-waiting".into(), Turn::Waits("old".into())));
    }
}
