//! What a plan reads from the API server, a limited number of objects at a time. Objects for which that failed before
//! come after those that were never tried, each after a pause of its own that grows: those that fail keep no others
//! waiting.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{Attempts, Explain, Memory, Need, injected::is_injected};

/// Objects that one reconcile reads: they are in memory until it ends.
pub const MOST: usize = 32;

/// What is known of an object that caches do not have whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Read<'m> {
    /// It was read a moment ago; `None` if it does not exist.
    Object(Option<&'m Value>),
    /// It could not be read, and is read again after a pause.
    Failed(&'m str),
    /// It has yet to be read.
    NotYet,
}

/// The objects that a plan reads.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Those that may be read now, each with the last time that this failed, or what it was read for.
    wanted: Vec<(Option<Timestamp>, Need)>,
    /// The time until the next one may be read.
    wait: Option<Duration>,
}

impl Reads {
    /// What is known of an object. If that is nothing, it is to be read, unless it is too early for another attempt.
    /// `tried` is what was tried in vain that it is read for.
    pub fn get<'m>(
        &mut self,
        memory: &'m Memory,
        need: Need,
        tried: impl IntoIterator<Item = Attempts>,
        now: Timestamp,
    ) -> Read<'m> {
        if let Some(read) = memory.read.get(&need) {
            return Read::Object(read.as_ref());
        }
        let unread = memory.unread.get(&need);
        let is_polled = is_injected("AdoptionPolled");
        let attempts = tried.into_iter().chain(unread.map(|unread| unread.attempts));
        let (mut last, mut left) = (None, None);
        for one in attempts.filter(|_| !is_polled) {
            last = last.max(Some(one.last));
            left = left.max(one.left(Attempts::LONGEST_PAUSE, now));
        }
        match left {
            Some(left) => self.wait(left),
            None => self.wanted.push((last, need)),
        }
        unread.map_or(Read::NotYet, |unread| Read::Failed(&unread.error))
    }

    /// Something that no object is read for has to wait so long.
    pub fn wait(&mut self, left: Duration) {
        self.wait = self.wait.into_iter().chain([left]).min();
    }

    /// What this reconcile is to read, once: not what follows from it. An explanation reads everything.
    pub fn needs(&mut self, memory: &Memory, explain: Explain) -> Vec<Need> {
        if memory.has_read {
            return Vec::new();
        }
        self.wanted.sort_by_key(|(last, _)| *last);
        let limit = match explain {
            Explain::No => MOST,
            Explain::Yes => usize::MAX,
        };
        let needs = self.wanted.drain(..limit.min(self.wanted.len()));
        needs.map(|(_, need)| need).collect()
    }

    /// When the next objects are to be read: those that may be read by now after `rest`.
    pub fn again(&self, rest: Duration) -> Option<Duration> {
        let rest = (!self.wanted.is_empty()).then_some(rest);
        rest.into_iter().chain(self.wait).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceId;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn need(number: usize) -> Need {
        Need::Content(ResourceId::PODS, "shop".into(), format!("web-{number:02}"))
    }

    /// What is read at this time, of so many objects.
    fn next(memory: &Memory, count: usize, now: i64) -> (Vec<Need>, Option<u64>) {
        let mut reads = Reads::default();
        for number in 0..count {
            reads.get(memory, need(number), None, at(now));
        }
        let needs = reads.needs(memory, Explain::No);
        (
            needs,
            reads.again(Duration::from_mins(1)).map(|again| again.as_secs()),
        )
    }

    #[test]
    fn objects_that_cannot_be_read_keep_no_others_waiting() {
        let mut memory = Memory::default();
        let mut round = |now: i64| {
            let (needs, again) = next(&memory, 40, now);
            let first = needs.first().cloned();
            let count = needs.len();
            for need in needs {
                memory.note(need, Err("no".into()), at(now));
            }
            memory.has_read = false;
            (first, count, again)
        };
        assert_eq!(round(0), (Some(need(0)), MOST, Some(60)));
        assert_eq!(round(0), (Some(need(32)), 8, Some(1)), "the others at once");
        assert_eq!(round(0), (None, 0, Some(1)), "and then none");
        assert_eq!(round(1), (Some(need(0)), MOST, Some(60)));
        assert_eq!(
            round(2),
            (Some(need(32)), 8, Some(1)),
            "who waits longest is the next"
        );
        assert_eq!(round(3), (Some(need(0)), MOST, Some(1)));
    }

    #[test]
    fn a_reconcile_reads_once_and_an_explanation_everything() {
        let mut memory = Memory::default();
        let mut reads = Reads::default();
        for number in 0..40 {
            let tried = Attempts {
                count: 1,
                last: at(0),
            };
            let tried = (number == 7).then_some(tried);
            assert_eq!(reads.get(&memory, need(number), tried, at(0)), Read::NotYet);
        }
        assert_eq!(
            reads.needs(&memory, Explain::Yes).len(),
            39,
            "it is too early for one"
        );
        memory.note(need(0), Ok(None), at(0));
        memory.note(need(1), Err("no".into()), at(0));
        assert_eq!(reads.get(&memory, need(0), None, at(0)), Read::Object(None));
        assert_eq!(reads.get(&memory, need(1), None, at(0)), Read::Failed("no"));
        assert_eq!(reads.get(&memory, need(2), None, at(0)), Read::NotYet);
        assert_eq!(reads.needs(&memory, Explain::Yes), []);
    }
}
