//! How long it took until all was as it should be, and how long managers wrote nothing meanwhile.

use std::time::Duration;

/// When managers wrote, and when users were done. Times are those since the scenario began.
#[derive(Clone, Debug, Default)]
pub struct Course {
    writes: Vec<Duration>,
    settling: Option<(Duration, Duration)>,
}

/// The end of a scenario, from the last step to the moment at which all was as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// How long it took.
    pub took: Duration,
    /// The longest time without a write.
    pub pause: Duration,
}

impl Course {
    /// A write was accepted that is neither of a lease nor of an event.
    pub fn wrote(&mut self, at: Duration) {
        self.writes.push(at);
    }

    /// From `from` to `to` managers had work that users no longer changed.
    pub fn settled(&mut self, from: Duration, to: Duration) {
        self.settling = Some((from, to));
    }

    /// The end of the scenario, if it ended.
    pub fn settling(&self) -> Option<Settling> {
        let (from, to) = self.settling?;
        let within = self.writes.iter().filter(|at| (from..to).contains(*at));
        let mut last = from;
        let mut pause = Duration::ZERO;
        for at in within.chain([&to]) {
            pause = pause.max(at.saturating_sub(last));
            last = *at;
        }
        let took = to.saturating_sub(from);
        Some(Settling { took, pause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_counts_from_the_last_step_to_the_end() {
        let second = Duration::from_secs;
        let mut course = Course::default();
        for at in [1, 5, 6, 9, 30] {
            course.wrote(second(at));
        }
        assert_eq!(course.settling(), None);
        for (from, to, pause) in [(4, 10, 3), (6, 14, 5), (5, 9, 3), (20, 29, 9)] {
            course.settled(second(from), second(to));
            let settling = course.settling().unwrap();
            assert_eq!(
                (settling.took, settling.pause),
                (second(to - from), second(pause))
            );
        }
    }
}
