//! Pods that a workload controls and that are not its own any more, such as one whose labels left the selector.
//!
//! A pod that is labelled otherwise for a reason, to keep it for a look, is let go and replaced at once. A pod that
//! leaves the selector moments after it was made was changed by something that changes the next one, too: a
//! workload that went on would make pods without end, which nobody owns. So no further pod is made for a while, and
//! longer each time.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_views::PodView;

use crate::{EventNote, Intent, Memory, Plan, Why, events, pod_writes};

/// A pod of this age is hardly one that somebody has looked at.
const YOUNG: SignedDuration = SignedDuration::from_secs(10);
/// How long no pod is made after the first time, and at most.
const WAITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(5)];
/// What is counted.
const KEY: &str = "pods-left-at-once";

/// Why no pod is made, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    left: Duration,
}

/// Removes the owner reference of this uid from these pods, for this reason. Returns a hold if pods of the workload
/// leave it as soon as they are made.
pub fn release(
    pods: &[&Arc<PodView>],
    (owner_uid, reason): (&str, &str),
    memory: &Memory,
    now: Timestamp,
    plan: &mut Plan,
) -> Option<Hold> {
    let writes = pods.iter().map(|pod| pod_writes::release(pod, owner_uid, reason));
    plan.writes.extend(writes);
    let is_young = |pod: &&&Arc<PodView>| {
        pod.created
            .is_some_and(|created| now.duration_since(created) < YOUNG)
    };
    let mut young = pods.iter().filter(is_young);
    let before = memory.attempts.get(KEY);
    let count = before.map_or(0, |before| before.count);
    let Some(first) = young.next() else {
        let until = before?.last.checked_add(wait(count)).ok()?;
        let left = until.duration_since(now);
        return left.is_positive().then(|| Hold {
            left: left.unsigned_abs(),
        });
    };
    let left = wait(count.saturating_add(1));
    let others = young.count();
    let others = if others > 0 {
        format!(" and {others} more")
    } else {
        String::new()
    };
    let message = format!(
        "pod {}{others} left within {} s after it was created: {reason}; something changes new pods, and none is created for {} s",
        first.name,
        YOUNG.as_secs(),
        left.as_secs()
    );
    plan.events.push(EventNote::new(&events::FAILED_CREATE, message));
    plan.attempts.push(KEY.to_owned());
    Some(Hold { left })
}

/// How long no pod is made after so many times.
fn wait(count: u32) -> Duration {
    let [first, most] = WAITS;
    let doubled = 1_u32.checked_shl(count.saturating_sub(1)).unwrap_or(u32::MAX);
    first.saturating_mul(doubled).min(most)
}

impl Hold {
    /// Takes the creations of pods, and what precedes them, out of the plan.
    pub fn keep(&self, plan: &mut Plan) {
        let before = plan.writes.len();
        plan.writes.retain(|object| {
            let mut steps = object.steps.iter();
            !steps.any(|step| step.write.intent() == Intent::CREATE_POD)
        });
        let held = before - plan.writes.len();
        if held > 0 {
            let seconds = self.left.as_secs();
            plan.why.push(Why::of_set(format!(
                "{held} pods are not created for {seconds} s: those before them left the set as soon as they were made"
            )));
        }
        plan.requeue_after([self.left]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Attempts;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(created: i64) -> Arc<PodView> {
        let pod =
            json!({"metadata": {"name": "web-a", "uid": "u1", "creationTimestamp": at(created).to_string()}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    /// The hold after a release at this second, and the plan.
    fn released(pods: &[Arc<PodView>], memory: &Memory, second: i64) -> (Option<u64>, Plan) {
        let mut plan = Plan::default();
        let pods: Vec<&Arc<PodView>> = pods.iter().collect();
        let hold = release(&pods, ("set-uid", "because"), memory, at(second), &mut plan);
        (hold.map(|hold| hold.left.as_secs()), plan)
    }

    #[test]
    fn a_pod_that_served_for_a_while_is_let_go_and_replaced_at_once() {
        let (hold, plan) = released(&[pod(0)], &Memory::default(), 10);
        assert_eq!((hold, plan.writes.len(), plan.attempts.len()), (None, 1, 0));
        assert!(plan.events.is_empty());
        assert_eq!(released(&[], &Memory::default(), 10).0, None);
    }

    #[test]
    fn pods_that_leave_as_soon_as_they_are_made_hold_the_next_ones_longer_each_time() {
        let mut memory = Memory::default();
        let mut waits = Vec::new();
        let mut now = 0;
        for _ in 0..8 {
            let (hold, plan) = released(&[pod(now), pod(now)], &memory, now + 1);
            let hold = hold.unwrap();
            assert_eq!(plan.writes.len(), 2);
            let message = &plan.events[0].message;
            assert!(
                message.starts_with("pod web-a and 1 more left within 10 s"),
                "{message}"
            );
            memory.count(plan.attempts, at(now + 1));
            let last = i64::try_from(hold).unwrap();
            assert_eq!(
                released(&[], &memory, now + last).0,
                Some(1),
                "one second before the end"
            );
            assert_eq!(released(&[], &memory, now + 1 + last).0, None);
            waits.push(hold);
            now += 1 + last;
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
        let known = Attempts {
            count: u32::MAX,
            last: at(now),
        };
        memory.attempts.insert(KEY.into(), known);
        assert_eq!(released(&[pod(now)], &memory, now).0, Some(300));
    }
}
