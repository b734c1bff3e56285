//! Decides who leads, without I/O. Durations are time of our own clock since a fixed start.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

/// The election's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Our holder identity.
    pub identity: String,
    /// Others may take over after this long without renewal.
    pub lease_duration: Duration,
    /// A leader stops after this long without a renewal.
    pub renew_deadline: Duration,
    /// Time between attempts.
    pub retry_period: Duration,
    /// Annotations that the leader writes with the lease.
    pub annotations: BTreeMap<String, String>,
}

impl Settings {
    /// Sets the leader's annotations on a lease and keeps all others.
    pub fn annotate(&self, lease: &mut Value) {
        if self.annotations.is_empty() {
            return;
        }
        let annotations = json!(self.annotations);
        let metadata = lease.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { return };
        match (
            metadata.get_mut("annotations").and_then(Value::as_object_mut),
            annotations,
        ) {
            (Some(have), Value::Object(ours)) => have.extend(ours),
            (_, ours) => drop(metadata.insert("annotations".into(), ours)),
        }
    }
}

/// The part of a lease's `spec` that the election uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Identity of the leader; empty when released.
    pub holder: String,
    /// Seconds after which others may take over.
    pub duration_seconds: i64,
    /// When the holder became leader.
    pub acquired: Option<String>,
    /// When it last renewed.
    pub renewed: Option<String>,
    /// Changes of holder so far.
    pub transitions: i64,
}

/// What to do about the lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Another replica leads: read again after a retry period.
    Wait,
    /// Write this `spec`. If that succeeds, this replica is leader.
    Write(Record),
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Elector {
    settings: Settings,
    observed: Option<Record>,
    observed_at: Duration,
}

impl Elector {
    /// A candidate that has not read the lease yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            observed: None,
            observed_at: Duration::ZERO,
        }
    }

    /// Decides what to do with the stored record, `None` if there is no lease.
    pub fn decide(&mut self, stored: Option<Record>, now: Duration, wall: Timestamp) -> Decision {
        if self.observed != stored {
            self.observed.clone_from(&stored);
            self.observed_at = now;
        }
        let Some(stored) = stored else {
            return Decision::Write(self.record(wall, Some(wall), 0));
        };
        let ours = stored.holder == self.settings.identity;
        if ours {
            let mut record = self.record(wall, None, stored.transitions);
            record.acquired = stored.acquired;
            return Decision::Write(record);
        }
        // A healthy holder may renew as rarely as its own duration allows. Our duration is the minimum for every
        // holder.
        let promised = u64::try_from(stored.duration_seconds).map_or(Duration::ZERO, Duration::from_secs);
        let expiry = self.settings.lease_duration.max(promised);
        let is_expired = now.saturating_sub(self.observed_at) >= expiry;
        if stored.holder.is_empty() || is_expired {
            return Decision::Write(self.record(wall, Some(wall), stored.transitions.saturating_add(1)));
        }
        Decision::Wait
    }

    /// The record of a graceful stop: no holder, and a duration of one second. `None` if the lease is not ours.
    pub fn release(&self, stored: &Record, wall: Timestamp) -> Option<Record> {
        (stored.holder == self.settings.identity).then(|| Record {
            holder: String::new(),
            duration_seconds: 1,
            acquired: Some(micro_time(wall)),
            renewed: Some(micro_time(wall)),
            transitions: stored.transitions,
        })
    }

    fn record(&self, wall: Timestamp, acquired: Option<Timestamp>, transitions: i64) -> Record {
        Record {
            holder: self.settings.identity.clone(),
            duration_seconds: i64::try_from(self.settings.lease_duration.as_secs())
                .unwrap_or(i64::MAX)
                .max(1),
            acquired: acquired.map(micro_time),
            renewed: Some(micro_time(wall)),
            transitions,
        }
    }
}

/// RFC 3339 with six digits, Kubernetes' `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

impl Record {
    /// Reads a lease object.
    pub fn of(lease: &Value) -> Self {
        let member = |name: &str| lease.get("spec").and_then(|spec| spec.get(name));
        let text = |name: &str| member(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| member(name).and_then(Value::as_i64).unwrap_or(0);
        Self {
            holder: text("holderIdentity").unwrap_or_default(),
            duration_seconds: number("leaseDurationSeconds"),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    /// Writes the record into a lease object and keeps unknown fields.
    pub fn write(&self, lease: &mut Value) {
        let spec = json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        });
        match (lease.get_mut("spec").and_then(Value::as_object_mut), spec) {
            (Some(have), Value::Object(want)) => have.extend(want),
            (_, spec) => lease["spec"] = spec,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Decision, Elector, Record, Settings};

    fn elector(identity: &str) -> Elector {
        elector_with(identity, 15)
    }

    fn elector_with(identity: &str, lease_seconds: u64) -> Elector {
        Elector::new(Settings {
            namespace: "n".into(),
            name: "l".into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(lease_seconds),
            renew_deadline: Duration::from_secs(lease_seconds * 2 / 3),
            retry_period: Duration::from_secs(2),
            annotations: std::collections::BTreeMap::default(),
        })
    }

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn written(decision: Decision) -> Record {
        match decision {
            Decision::Write(record) => record,
            Decision::Wait => panic!("no write"),
        }
    }

    #[test]
    fn a_holder_without_renewals_is_replaced_after_a_lease_duration_of_our_clock_whatever_its_timestamps() {
        let hours_ahead = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9);
        let held = written(elector("go").decide(None, at(0), hours_ahead));
        let mut us = elector("us");
        assert_eq!(
            us.decide(Some(held.clone()), at(100), Timestamp::UNIX_EPOCH),
            Decision::Wait
        );
        assert_eq!(
            us.decide(Some(held.clone()), at(114), Timestamp::UNIX_EPOCH),
            Decision::Wait
        );
        let taken = written(us.decide(Some(held), at(115), Timestamp::UNIX_EPOCH));
        assert_eq!((taken.holder.as_str(), taken.transitions), ("us", 1));
    }

    #[test]
    fn a_holder_with_a_longer_duration_than_ours_expires_after_its_own() {
        let mut held = written(elector("go").decide(None, at(0), Timestamp::UNIX_EPOCH));
        held.duration_seconds = 60;
        let mut us = elector("us");
        for second in [0, 20, 59] {
            let decision = us.decide(Some(held.clone()), at(second), Timestamp::UNIX_EPOCH);
            assert_eq!(decision, Decision::Wait, "{second}");
        }
        let taken = written(us.decide(Some(held), at(60), Timestamp::UNIX_EPOCH));
        assert_eq!(taken.duration_seconds, 15);
    }

    #[test]
    fn a_holder_with_a_shorter_duration_or_none_expires_after_ours() {
        let mut held = written(elector("go").decide(None, at(0), Timestamp::UNIX_EPOCH));
        for seconds in [1, 0, -60] {
            held.duration_seconds = seconds;
            let mut us = elector("us");
            us.decide(Some(held.clone()), at(0), Timestamp::UNIX_EPOCH);
            let decision = us.decide(Some(held.clone()), at(14), Timestamp::UNIX_EPOCH);
            assert_eq!(decision, Decision::Wait);
            written(us.decide(Some(held.clone()), at(15), Timestamp::UNIX_EPOCH));
        }
    }

    #[test]
    fn a_renewal_restarts_the_wait() {
        let mut held = written(elector("go").decide(None, at(0), Timestamp::UNIX_EPOCH));
        let mut us = elector("us");
        us.decide(Some(held.clone()), at(0), Timestamp::UNIX_EPOCH);
        held.renewed = Some("later".into());
        assert_eq!(
            us.decide(Some(held.clone()), at(14), Timestamp::UNIX_EPOCH),
            Decision::Wait
        );
        assert_eq!(
            us.decide(Some(held), at(28), Timestamp::UNIX_EPOCH),
            Decision::Wait
        );
    }

    #[test]
    fn a_released_lease_is_acquired_at_once() {
        let mut first = elector("first");
        let held = written(first.decide(None, at(0), Timestamp::UNIX_EPOCH));
        let free = first.release(&held, Timestamp::UNIX_EPOCH).unwrap();
        let taken = written(elector("second").decide(Some(free), at(1), Timestamp::UNIX_EPOCH));
        assert_eq!((taken.holder.as_str(), taken.transitions), ("second", 1));
        assert_eq!(elector("third").release(&taken, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn annotations_of_the_leader_are_added_to_those_of_others() {
        let mut settings = elector("us").settings;
        let mut lease = json!({"metadata": {"annotations": {"theirs": "a", "leader": "before"}}});
        settings.annotate(&mut lease);
        assert_eq!(lease["metadata"]["annotations"]["leader"], "before");
        settings.annotations = [("leader".to_owned(), "now".to_owned())].into();
        settings.annotate(&mut lease);
        assert_eq!(
            lease["metadata"]["annotations"],
            json!({"theirs": "a", "leader": "now"})
        );
        let mut bare = json!({"metadata": {"name": "l"}});
        settings.annotate(&mut bare);
        assert_eq!(
            bare,
            json!({"metadata": {"name": "l", "annotations": {"leader": "now"}}})
        );
    }

    #[test]
    fn a_renewal_keeps_the_acquire_time_and_unknown_fields() {
        let mut us = elector("us");
        let first = written(us.decide(None, at(0), Timestamp::UNIX_EPOCH));
        assert_eq!(first.acquired.as_deref(), Some("1970-01-01T00:00:00.000000Z"));
        let later = Timestamp::from_millisecond(1500).unwrap();
        let second = written(us.decide(Some(first.clone()), at(2), later));
        assert_eq!((second.acquired, second.transitions), (first.acquired, 0));
        assert_eq!(second.renewed.as_deref(), Some("1970-01-01T00:00:01.500000Z"));
        let mut lease = json!({"spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "x"}});
        let record = Record {
            holder: "us".into(),
            ..Record::default()
        };
        record.write(&mut lease);
        assert_eq!(lease["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(Record::of(&lease), record);
    }

    proptest! {
        /// Each candidate reads and writes at random times, and leads from a write until its renew deadline. The server
        /// refuses a write based on an old record, as with `resourceVersion`.
        #[test]
        fn two_candidates_never_lead_at_once(steps in proptest::collection::vec((0..2usize, 0..4u64, any::<bool>()), 1..200), seconds in [3..60u64, 3..60u64]) {
            let mut electors = [elector_with("a", seconds[0]), elector_with("b", seconds[1])];
            let mut leads_until = [None::<Duration>, None];
            let (mut stored, mut now): (Option<Record>, _) = (None, at(0));
            let mut wall = 0_i64;
            for (who, pause, reaches) in steps {
                now += at(pause);
                wall += 1;
                let seen = stored.clone();
                let time = Timestamp::from_second(wall).unwrap();
                if let Decision::Write(record) = electors[who].decide(seen.clone(), now, time) && reaches && stored == seen {
                    stored = Some(record);
                    leads_until[who] = Some(now + at(seconds[who] * 2 / 3));
                }
                let leading = leads_until.iter().flatten().filter(|until| **until > now).count();
                prop_assert!(leading <= 1);
            }
        }
    }
}
