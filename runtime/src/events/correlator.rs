//! Aggregates, counts and rate-limits events, without I/O. The limits are client-go's. Times are durations since a
//! fixed start.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::{EventKind, EventNote};

/// Different messages of one kind after which they are combined.
const SIMILAR: usize = 10;
/// Time without a similar event after which the count restarts.
const WINDOW: Duration = Duration::from_mins(10);
/// Burst of events of one object.
const BURST: f64 = 25.0;
/// Time after which an object may have one more event.
const REFILL: Duration = Duration::from_mins(5);
/// Largest number of entries; beyond it the least recently used ones are dropped.
const REMEMBERED: usize = 4096;
/// Prefix of a combined message; clients match on it.
const COMBINED: &str = "(combined from similar events): ";

type Kind = (String, EventKind, &'static str);

/// What to do with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A new event.
    Create(Occurrence),
    /// An event that exists happened again.
    Repeat(Occurrence),
    /// The object has too many events.
    Drop,
}

/// One event as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Identifies the stored event; pass it to [`Correlator::stored`].
    pub key: (String, EventKind, &'static str, String),
    /// Name of the stored event, if it exists.
    pub name: String,
    /// Message, possibly combined.
    pub message: String,
    /// Occurrences so far, this one included.
    pub count: i32,
}

/// The recently written events.
#[derive(Debug, Default)]
pub struct Correlator {
    similar: BTreeMap<Kind, Similar>,
    written: BTreeMap<(String, EventKind, &'static str, String), Written>,
    buckets: BTreeMap<String, Bucket>,
}

#[derive(Debug, Default)]
struct Similar {
    messages: Vec<String>,
    last: Duration,
}

#[derive(Debug)]
struct Written {
    name: String,
    count: i32,
    last: Duration,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    last: Duration,
}

impl Correlator {
    /// Processes an event of the object with this uid.
    pub fn take(&mut self, object: &str, note: &EventNote, now: Duration) -> Decision {
        self.forget_old();
        let kind = (object.to_owned(), note.reason.kind, note.reason.name);
        let combined = self.is_combined(kind, &note.message, now);
        if !self.has_room(object, now) {
            return Decision::Drop;
        }
        let (filed_under, message) = if combined {
            (String::new(), format!("{COMBINED}{}", note.message))
        } else {
            (note.message.clone(), note.message.clone())
        };
        let key = (object.to_owned(), note.reason.kind, note.reason.name, filed_under);
        match self.written.get_mut(&key) {
            Some(written) => {
                written.count = written.count.saturating_add(1);
                written.last = now;
                let (name, count) = (written.name.clone(), written.count);
                Decision::Repeat(Occurrence {
                    key,
                    name,
                    message,
                    count,
                })
            }
            None => Decision::Create(Occurrence {
                key,
                name: String::new(),
                message,
                count: 1,
            }),
        }
    }

    /// Records that the event is stored under this name. Equal events increase its count from now on.
    pub fn stored(&mut self, occurrence: Occurrence, name: String, now: Duration) {
        self.written.insert(
            occurrence.key,
            Written {
                name,
                count: occurrence.count,
                last: now,
            },
        );
    }

    /// Records that the stored event was deleted. The next equal event is created.
    pub fn lost(&mut self, occurrence: &Occurrence) {
        self.written.remove(&occurrence.key);
    }

    fn is_combined(&mut self, kind: Kind, message: &str, now: Duration) -> bool {
        let similar = self.similar.entry(kind).or_default();
        if now.saturating_sub(similar.last) > WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        if similar.messages.iter().any(|have| have == message) {
            return false;
        }
        if similar.messages.len() >= SIMILAR {
            return true;
        }
        similar.messages.push(message.to_owned());
        false
    }

    fn has_room(&mut self, object: &str, now: Duration) -> bool {
        let bucket = self.buckets.entry(object.to_owned()).or_insert(Bucket {
            tokens: BURST,
            last: now,
        });
        let gained = now.saturating_sub(bucket.last).as_secs_f64() / REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + gained).min(BURST);
        bucket.last = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn forget_old(&mut self) {
        trim(&mut self.similar, |similar| similar.last);
        trim(&mut self.written, |written| written.last);
        trim(&mut self.buckets, |bucket| bucket.last);
    }
}

/// Drops the least recently used half once there are too many entries.
fn trim<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, last: impl Fn(&V) -> Duration) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut times: Vec<Duration> = map.values().map(&last).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    map.retain(|_, value| last(value) > median);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kruise_plan_kit::{EventNote, events};

    use super::{Correlator, Decision};

    fn note(message: &str) -> EventNote {
        EventNote::new(&events::SUCCESSFUL_CREATE, message)
    }

    fn send(correlator: &mut Correlator, message: &str, second: u64) -> Decision {
        let now = Duration::from_secs(second);
        let decision = correlator.take("uid", &note(message), now);
        if let Decision::Create(occurrence) = &decision {
            correlator.stored(occurrence.clone(), format!("event-{message}"), now);
        }
        decision
    }

    #[test]
    fn the_same_event_again_is_counted() {
        let mut correlator = Correlator::default();
        assert!(matches!(send(&mut correlator, "a", 0), Decision::Create(_)));
        match send(&mut correlator, "a", 1) {
            Decision::Repeat(again) => assert_eq!((again.name.as_str(), again.count), ("event-a", 2)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_eleventh_similar_event_is_combined_until_ten_quiet_minutes_have_passed() {
        let mut correlator = Correlator::default();
        for number in 0..10 {
            assert!(matches!(
                send(&mut correlator, &number.to_string(), 0),
                Decision::Create(_)
            ));
        }
        match send(&mut correlator, "eleven", 1) {
            Decision::Create(combined) => {
                assert_eq!(combined.message, "(combined from similar events): eleven");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(send(&mut correlator, "twelve", 2), Decision::Repeat(_)));
        match send(&mut correlator, "much later", 603) {
            Decision::Create(single) => assert_eq!(single.message, "much later"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_has_a_burst_of_twenty_five_events_and_then_one_in_five_minutes() {
        let mut correlator = Correlator::default();
        let sent = (0..100)
            .filter(|n| send(&mut correlator, &n.to_string(), 0) != Decision::Drop)
            .count();
        assert_eq!(sent, 25);
        assert_eq!(send(&mut correlator, "x", 299), Decision::Drop);
        assert_ne!(send(&mut correlator, "x", 300), Decision::Drop);
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::default();
        for number in 0..20_000_u64 {
            let now = Duration::from_secs(number);
            if let Decision::Create(new) = correlator.take(&number.to_string(), &note("a"), now) {
                correlator.stored(new, "e".into(), now);
            }
        }
        assert!(
            correlator.written.len() <= super::REMEMBERED && correlator.buckets.len() <= super::REMEMBERED
        );
    }
}
