//! Which pods get their request now: a pure function of what the cluster shows.
//!
//! Never more pods of the workload are out of service than it allows, unless others take them out. A pod that is
//! out of service already costs nothing, and comes first. A pod with an open request counts as out of service,
//! whoever created the request, and gets another one after that has ended.

use std::collections::BTreeMap;

use kruise_plan_kit::injected::is_injected;

use super::target::Limits;

/// A pod of the workload, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) uid: String,
    /// Does the workload count it as available?
    pub(super) is_available: bool,
    /// Is there an open request for it that this run did not create?
    pub(super) is_asked: bool,
}

/// What became of the request for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// It was sent, and nobody knows whether it exists.
    Sent,
    /// It has not ended.
    Running,
    /// All containers run anew.
    Succeeded,
    /// It ended otherwise, for this reason.
    Failed(String),
}

/// What became of the requests of a run, by name of the pod.
pub(super) type States = BTreeMap<String, Request>;

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// These pods get their requests now, by name. None: wait.
    Create(Vec<String>),
    /// All containers run anew, and no pod is out of service for it.
    Done,
    /// A request failed. No further pod is restarted.
    Failed(String),
}

/// A restart of the containers of a workload.
pub(super) struct Rollout {
    /// UIDs of the pods that are restarted, by name. Pods that are created later run new containers anyway.
    pub(super) pods: BTreeMap<String, String>,
}

impl Rollout {
    /// Decides by what the workload allows, by its pods, and by the requests, by name of their pods. Pods that are
    /// gone are done with, however their requests ended. The pods must have been read after the requests: a pod
    /// whose request has ended was restarted when they were.
    pub(super) fn next(&self, limits: Limits, pods: &[Pod], requests: &States) -> Next {
        if let Some(why) = self.failure(pods, requests) {
            return Next::Failed(why);
        }
        let mut own: Vec<&Pod> = pods
            .iter()
            .filter(|pod| self.pods.get(&pod.name) == Some(&pod.uid))
            .collect();
        let is_sent = |pod: &Pod| requests.get(&pod.name) == Some(&Request::Sent);
        let is_waiting = |pod: &Pod| is_sent(pod) || !requests.contains_key(&pod.name);
        if !own.iter().any(|pod| is_waiting(pod)) {
            return if own.iter().any(|pod| is_out(pod, requests)) {
                Next::Create(Vec::new())
            } else {
                Next::Done
            };
        }
        // `false` comes first.
        own.sort_by(|a, b| {
            let (first, second) = (!is_sent(a), !is_sent(b));
            (a.is_available, first, &a.name).cmp(&(b.is_available, second, &b.name))
        });
        own.retain(|pod| is_waiting(pod) && !pod.is_asked);
        let mut room = limits.room(pods.iter().filter(|pod| !is_out(pod, requests)).count());
        // What may exist has its room already, whether it is created again or not.
        let sent = own.iter().filter(|pod| pod.is_available && is_sent(pod)).count();
        let mut room_again = room.saturating_add(i32::try_from(sent).unwrap_or(i32::MAX));
        own.retain(|pod| {
            let room = if is_sent(pod) { &mut room_again } else { &mut room };
            let is_chosen = !pod.is_available || *room > 0;
            if is_chosen && pod.is_available {
                *room -= 1;
            }
            is_chosen
        });
        Next::Create(own.into_iter().map(|pod| pod.name.clone()).collect())
    }

    /// Why a pod that is there could not be restarted.
    fn failure(&self, pods: &[Pod], requests: &States) -> Option<String> {
        let is_there = |name: &str| {
            let mut pods = pods.iter();
            pods.any(|pod| pod.name == name && self.pods.get(name) == Some(&pod.uid))
        };
        requests.iter().find_map(|(pod, request)| match request {
            Request::Failed(why) if is_there(pod) && !is_injected("FailedRestartIgnored") => {
                Some(format!("pod {pod}: {why}"))
            }
            _ => None,
        })
    }
}

/// Does a pod count as out of service?
fn is_out(pod: &Pod, requests: &States) -> bool {
    match requests.get(&pod.name) {
        Some(Request::Sent | Request::Running) => true,
        Some(Request::Succeeded) if is_injected("RestartedPodUnawaited") => false,
        _ => !pod.is_available || pod.is_asked,
    }
}

impl Limits {
    /// How many more pods may go out of service, if so many are in service.
    fn room(self, in_service: usize) -> i32 {
        let in_service = i32::try_from(in_service).unwrap_or(i32::MAX);
        let out = self.wanted.saturating_sub(in_service);
        let more = i32::from(is_injected("RestartsOffByOne"));
        self.most_out.saturating_sub(out).saturating_add(more)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pods(available: &[bool]) -> Vec<Pod> {
        let pod = |(index, is_available): (usize, &bool)| Pod {
            name: format!("web-{index}"),
            uid: format!("uid-{index}"),
            is_available: *is_available,
            is_asked: false,
        };
        available.iter().enumerate().map(pod).collect()
    }

    /// A restart of these pods of a workload that wants so many, and so many of which may be out of service.
    struct Case(Rollout, Limits);

    impl Case {
        fn next(&self, pods: &[Pod], requests: &BTreeMap<String, Request>) -> Next {
            self.0.next(self.1, pods, requests)
        }
    }

    fn rollout(of: &[Pod], wanted: i32, most_out: i32) -> Case {
        let pods = of.iter().map(|pod| (pod.name.clone(), pod.uid.clone()));
        let limits = Limits {
            wanted,
            most_out,
            min_ready_seconds: 0,
        };
        Case(Rollout { pods: pods.collect() }, limits)
    }

    fn requests(of: &[(&str, Request)]) -> BTreeMap<String, Request> {
        of.iter()
            .map(|(pod, request)| ((*pod).to_owned(), request.clone()))
            .collect()
    }

    fn create(names: &[&str]) -> Next {
        Next::Create(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn as_many_pods_are_restarted_at_a_time_as_may_be_out_of_service() {
        let pods = pods(&[true; 4]);
        let rollout = rollout(&pods, 4, 2);
        assert_eq!(rollout.next(&pods, &requests(&[])), create(&["web-0", "web-1"]));
        let running = requests(&[("web-0", Request::Running), ("web-1", Request::Running)]);
        assert_eq!(rollout.next(&pods, &running), create(&[]));
        let one_ended = requests(&[("web-0", Request::Succeeded), ("web-1", Request::Running)]);
        assert_eq!(rollout.next(&pods, &one_ended), create(&["web-2"]));
    }

    #[test]
    fn a_pod_that_is_not_available_again_keeps_its_room() {
        let mut pods = pods(&[true; 3]);
        let rollout = rollout(&pods, 3, 1);
        pods[0].is_available = false;
        let ended = requests(&[("web-0", Request::Succeeded)]);
        assert_eq!(rollout.next(&pods, &ended), create(&[]));
        pods[0].is_available = true;
        assert_eq!(rollout.next(&pods, &ended), create(&["web-1"]));
    }

    #[test]
    fn pods_that_are_out_of_service_come_first_and_cost_nothing() {
        let pods = pods(&[true, false, true, false]);
        let rollout = rollout(&pods, 4, 2);
        assert_eq!(rollout.next(&pods, &requests(&[])), create(&["web-1", "web-3"]));
    }

    #[test]
    fn pods_that_the_workload_lacks_are_out_of_service() {
        let pods = pods(&[true; 3]);
        assert_eq!(rollout(&pods, 4, 1).next(&pods, &requests(&[])), create(&[]));
        assert_eq!(
            rollout(&pods, 4, 2).next(&pods, &requests(&[])),
            create(&["web-0"])
        );
    }

    #[test]
    fn pods_above_the_wanted_number_give_room() {
        let pods = pods(&[true; 3]);
        assert_eq!(
            rollout(&pods, 2, 1).next(&pods, &requests(&[])),
            create(&["web-0", "web-1"])
        );
    }

    #[test]
    fn after_a_failure_no_pod_is_restarted() {
        let pods = pods(&[true; 3]);
        let failed = requests(&[("web-1", Request::Failed("it does not stop".into()))]);
        let next = rollout(&pods, 3, 3).next(&pods, &failed);
        assert_eq!(next, Next::Failed("pod web-1: it does not stop".into()));
    }

    #[test]
    fn pods_that_were_replaced_are_done_with_and_new_ones_are_left_alone() {
        let mut pods = pods(&[true; 2]);
        let rollout = rollout(&pods, 2, 1);
        pods[1].uid = "another".into();
        let ended = requests(&[("web-0", Request::Succeeded)]);
        assert_eq!(rollout.next(&pods, &ended), Next::Done);
    }

    #[test]
    fn the_request_of_a_pod_that_is_gone_may_end_as_it_likes() {
        let mut pods = pods(&[true; 2]);
        let rollout = rollout(&pods, 2, 2);
        pods.remove(1);
        let gone = requests(&[
            ("web-0", Request::Succeeded),
            ("web-1", Request::Failed("pod has gone".into())),
        ]);
        assert_eq!(rollout.next(&pods, &gone), Next::Done);
    }

    #[test]
    fn a_workload_that_grows_meanwhile_lacks_its_new_pods() {
        let pods = pods(&[true; 3]);
        let Case(rollout, limits) = rollout(&pods, 3, 1);
        let grown = Limits { wanted: 6, ..limits };
        assert_eq!(rollout.next(grown, &pods, &requests(&[])), create(&[]));
    }

    #[test]
    fn it_ends_when_every_pod_is_available_again() {
        let mut pods = pods(&[true; 2]);
        let rollout = rollout(&pods, 2, 2);
        let ended = requests(&[("web-0", Request::Succeeded), ("web-1", Request::Succeeded)]);
        pods[1].is_available = false;
        assert_eq!(rollout.next(&pods, &ended), create(&[]));
        pods[1].is_available = true;
        assert_eq!(rollout.next(&pods, &ended), Next::Done);
    }

    #[test]
    fn open_requests_of_others_take_room_and_their_pods_wait_for_their_end() {
        let mut pods = pods(&[true; 3]);
        let one = rollout(&pods, 3, 1);
        let two = rollout(&pods, 3, 2);
        pods[0].is_asked = true;
        assert_eq!(one.next(&pods, &requests(&[])), create(&[]));
        assert_eq!(two.next(&pods, &requests(&[])), create(&["web-1"]));
        // Not even a pod that is out of service for that gets a second request beside the first.
        pods[0].is_available = false;
        assert_eq!(one.next(&pods, &requests(&[])), create(&[]));
        pods[0].is_asked = false;
        assert_eq!(one.next(&pods, &requests(&[])), create(&["web-0"]));
    }

    #[test]
    fn a_restart_does_not_end_before_requests_of_others_for_its_pods_have() {
        let mut pods = pods(&[true; 1]);
        let rollout = rollout(&pods, 1, 1);
        let ended = requests(&[("web-0", Request::Succeeded)]);
        pods[0].is_asked = true;
        assert_eq!(rollout.next(&pods, &ended), create(&[]));
        pods[0].is_asked = false;
        assert_eq!(rollout.next(&pods, &ended), Next::Done);
    }

    #[test]
    fn what_may_exist_takes_its_room_and_is_created_again_first() {
        let mut pods = pods(&[true; 3]);
        let one = rollout(&pods, 3, 1);
        let two = rollout(&pods, 3, 2);
        let sent = requests(&[("web-2", Request::Sent)]);
        assert_eq!(one.next(&pods, &sent), create(&["web-2"]));
        assert_eq!(two.next(&pods, &sent), create(&["web-2", "web-0"]));
        // Others took a pod out of service since.
        pods[0].is_available = false;
        assert_eq!(one.next(&pods, &sent), create(&["web-0"]));
        assert_eq!(two.next(&pods, &sent), create(&["web-0", "web-2"]));
    }

    /// Every order in which requests end and pods are taken out of service and come back.
    #[test]
    fn the_limit_holds_and_every_pod_is_restarted_once_in_every_history() {
        for (count, limit) in [(1, 1), (3, 1), (4, 2), (4, 4)] {
            let first = pods(&vec![true; count]);
            let rollout = rollout(&first, i32::try_from(count).unwrap(), limit);
            let (mut seen, mut ends) = (BTreeSet::new(), 0);
            let mut open = vec![(first, BTreeMap::new())];
            while let Some((pods, mut requests)) = open.pop() {
                match rollout.next(&pods, &requests) {
                    Next::Failed(why) => panic!("{why}"),
                    Next::Done => {
                        assert_eq!(requests.len(), count);
                        ends += 1;
                        continue;
                    }
                    Next::Create(names) => {
                        for name in names {
                            assert_eq!(requests.insert(name, Request::Running), None);
                        }
                    }
                }
                let is_out =
                    |pod: &&Pod| !pod.is_available || requests.get(&pod.name) == Some(&Request::Running);
                let out = pods.iter().filter(is_out).count();
                assert!(i32::try_from(out).unwrap() <= limit, "{out} of {limit}");
                for (index, pod) in pods.iter().enumerate() {
                    let (mut pods, mut after) = (pods.clone(), requests.clone());
                    match requests.get(&pod.name) {
                        Some(Request::Running) => {
                            after.insert(pod.name.clone(), Request::Succeeded);
                            if pod.is_available {
                                let mut stopped = pods.clone();
                                stopped[index].is_available = false;
                                open.push((stopped, requests.clone()));
                            }
                        }
                        Some(_) if !pod.is_available => pods[index].is_available = true,
                        _ => continue,
                    }
                    open.push((pods, after));
                }
                open.retain(|state| seen.insert(format!("{state:?}")));
            }
            assert_ne!(ends, 0);
        }
    }
}
