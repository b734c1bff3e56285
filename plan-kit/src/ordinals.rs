//! Which ordinals the pods of a StatefulSet have.
//!
//! Reserved ordinals are kept as intervals, and the others are never listed as a whole: a range of two billion
//! costs as much as one of two.

use crate::injected::is_injected;
use go_compat::IntOrString;

/// The ordinals that pods have: as many as there are replicas, from `start` upwards, without the reserved ones.
/// Each is a *slot*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordinals {
    start: i64,
    /// One past the last slot.
    end: i64,
    /// First and last of each reserved interval, which are sorted and do not touch.
    reserved: Vec<(i64, i64)>,
    /// How many ordinals from `start` on are reserved by the intervals before each of these, and by all of them.
    reserved_before: Vec<i64>,
}

/// The largest ordinal that a name may have.
const LAST: i64 = i32::MAX as i64;

impl Ordinals {
    /// `replicas` of them from `start` on; negative numbers count as zero.
    ///
    /// # Errors
    /// In plain words, if an entry of `reserve` is neither a number nor a range.
    pub fn of(start: i32, replicas: i32, reserve: &[IntOrString]) -> Result<Self, String> {
        let reserved = merged(reserve)?;
        let start = i64::from(start.max(0));
        let mut end = start;
        let mut left = i64::from(replicas.max(0));
        for &(first, last) in reserved.iter().filter(|(_, last)| *last >= start) {
            let free = (first - end).max(0);
            if free >= left {
                break;
            }
            left -= free;
            end = last + 1;
        }
        let end = (end + left).min(LAST + 1);
        let mut before = 0;
        let mut reserved_before = vec![0];
        for &(first, last) in &reserved {
            before += (last - first.max(start) + 1).max(0);
            reserved_before.push(before);
        }
        Ok(Self {
            start,
            end: end.max(start),
            reserved,
            reserved_before,
        })
    }

    /// The ordinal that counting starts at, which may be reserved.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Is it a slot?
    pub fn contains(&self, ordinal: i32) -> bool {
        self.rank(ordinal).is_some()
    }

    /// How many slots come before this one; `None` if it is none.
    pub fn rank(&self, ordinal: i32) -> Option<i64> {
        let ordinal = i64::from(ordinal);
        let is_slot = (self.start..self.end).contains(&ordinal) && self.reserving(ordinal).is_none();
        is_slot.then(|| self.below(ordinal))
    }

    /// The number of slots.
    pub fn count(&self) -> i64 {
        self.below(self.end)
    }

    /// The slots, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = i32> {
        let mut next = self.start;
        std::iter::from_fn(move || {
            while let Some(last) = self.reserving(next) {
                next = last + 1;
            }
            let ordinal = i32::try_from(next).ok().filter(|_| next < self.end)?;
            next += 1;
            Some(ordinal)
        })
    }

    /// The slots that are none of `taken`, which is sorted; lowest first.
    pub fn missing<'a>(&'a self, taken: &'a [i32]) -> impl Iterator<Item = i32> + 'a {
        let mut rest = taken.iter().peekable();
        self.iter().filter(move |ordinal| {
            while rest.next_if(|taken| **taken < *ordinal).is_some() {}
            rest.peek() != Some(&ordinal)
        })
    }

    /// The last ordinal of the reserved interval that this one is in.
    fn reserving(&self, ordinal: i64) -> Option<i64> {
        let index = self.reserved.partition_point(|(_, last)| *last < ordinal);
        let (first, last) = self.reserved.get(index)?;
        (*first <= ordinal).then_some(*last)
    }

    /// How many slots are below an ordinal that is not above `end`.
    fn below(&self, ordinal: i64) -> i64 {
        let index = self.reserved.partition_point(|(_, last)| *last < ordinal);
        let whole = self.reserved_before.get(index).copied().unwrap_or_default();
        let (first, _) = self.reserved.get(index).copied().unwrap_or((ordinal, ordinal));
        let part = (ordinal - first.max(self.start)).max(0);
        (ordinal - self.start - whole - part).max(0)
    }
}

/// The reserved intervals, sorted; those that touch are one.
fn merged(reserve: &[IntOrString]) -> Result<Vec<(i64, i64)>, String> {
    let mut read = Vec::with_capacity(reserve.len());
    let heeded = if is_injected("ReservedOrdinalGiven") {
        &[]
    } else {
        reserve
    };
    for entry in heeded {
        let (first, last) = match entry {
            IntOrString::Int(number) => (i64::from(*number), i64::from(*number)),
            IntOrString::String(range) => range_of(range).ok_or_else(|| {
                format!("reserveOrdinals: {range:?} is neither a number nor a range such as 3-5")
            })?,
        };
        read.push((first, last));
    }
    read.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::with_capacity(read.len());
    for (first, last) in read {
        match merged.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    Ok(merged)
}

/// Both ends of `3-5`. Ordinals beyond the largest reserve nothing.
fn range_of(text: &str) -> Option<(i64, i64)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        digits.then(|| {
            text.parse::<i64>()
                .map_or(LAST + 1, |number| number.min(LAST + 1))
        })
    };
    let (first, last) = text.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordinals(start: i32, replicas: i32, reserve: &[&str]) -> Ordinals {
        let entry = |text: &&str| match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String((*text).into()),
        };
        let reserve: Vec<IntOrString> = reserve.iter().map(entry).collect();
        Ordinals::of(start, replicas, &reserve).unwrap()
    }

    fn list(ordinals: &Ordinals) -> Vec<i32> {
        ordinals.iter().collect()
    }

    #[test]
    fn reserved_ordinals_are_left_out_and_do_not_reduce_the_replicas() {
        assert_eq!(list(&ordinals(0, 4, &["1"])), [0, 2, 3, 4]);
        assert_eq!(list(&ordinals(0, 4, &["1", "3"])), [0, 2, 4, 5]);
        assert_eq!(list(&ordinals(0, 3, &["1", "3"])), [0, 2, 4]);
        assert_eq!(list(&ordinals(0, 3, &["2-4", "1"])), [0, 5, 6]);
        assert_eq!(
            list(&ordinals(0, 2, &["0003-005", "1", "1", "4-7", "-3"])),
            [0, 2]
        );
    }

    #[test]
    fn ordinals_begin_at_start_and_what_is_reserved_elsewhere_has_no_effect() {
        assert_eq!(list(&ordinals(2, 2, &["0-1", "9"])), [2, 3]);
        assert_eq!(list(&ordinals(2, 2, &["0-2"])), [3, 4]);
        assert_eq!(list(&ordinals(4, 0, &[])), [0; 0]);
        assert_eq!(list(&ordinals(-5, 1, &[])), [0]);
    }

    #[test]
    fn ranks_count_slots_only() {
        let ordinals = ordinals(2, 4, &["3", "5-6"]);
        assert_eq!(list(&ordinals), [2, 4, 7, 8]);
        let ranks: Vec<Option<i64>> = (1..10).map(|ordinal| ordinals.rank(ordinal)).collect();
        let some = |rank| Some(rank);
        assert_eq!(
            ranks,
            [None, some(0), None, some(1), None, None, some(2), some(3), None]
        );
        assert_eq!(ordinals.count(), 4);
    }

    #[test]
    fn two_billion_ordinals_cost_nothing() {
        let all = ordinals(0, i32::MAX, &["5-2147483640"]);
        assert_eq!(all.count(), 5 + 7);
        assert_eq!(all.iter().count(), 12);
        assert_eq!(ordinals(0, 3, &["0-2147483647"]).count(), 0);
        assert_eq!(ordinals(0, 3, &["0-99999999999999999999999"]).count(), 0);
        let many = ordinals(0, i32::MAX, &[]);
        assert_eq!(many.count(), i64::from(i32::MAX));
        assert_eq!(many.missing(&[0, 2]).take(3).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn the_rank_of_an_ordinal_is_its_place_among_the_slots() {
        for reserve in [&[][..], &["0-2", "7"], &["1", "3-4", "9-12"], &["6-2147483647"]] {
            for (start, replicas) in [(0, 0), (0, 7), (3, 5), (4, 1), (11, 3)] {
                let ordinals = ordinals(start, replicas, reserve);
                let slots = list(&ordinals);
                assert_eq!(
                    ordinals.count(),
                    slots.len() as i64,
                    "{reserve:?} {start} {replicas}"
                );
                for ordinal in 0..30 {
                    let place = slots.iter().position(|slot| *slot == ordinal);
                    assert_eq!(
                        ordinals.rank(ordinal),
                        place.map(|place| place as i64),
                        "{reserve:?} {start} {replicas} {ordinal}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_range_is_an_error_that_names_it() {
        for text in ["5", "5-2", "a-b", "-1", "1-", "1-2-3", ""] {
            let entry = [IntOrString::String(text.into())];
            assert!(Ordinals::of(0, 1, &entry).unwrap_err().contains(text), "{text}");
        }
    }
}
