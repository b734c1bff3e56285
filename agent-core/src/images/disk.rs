//! Room for images.

use std::time::Duration;

use jiff::Timestamp;

use crate::call::Call;
use crate::{Config, Filesystem};

/// From one measurement to the next while the node is short of space.
const RECHECK: Duration = Duration::from_secs(30);

/// What the last measurement said.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// In plain words, if there is too little space.
    shortage: Option<String>,
    /// When to measure again, because tags wait for space.
    recheck: Option<Timestamp>,
    is_unreadable: bool,
}

impl Disk {
    pub(super) fn shortage(&self) -> Option<&str> {
        self.shortage.as_deref()
    }

    /// A measurement; none if there is nothing to measure, which is taken for enough space.
    pub(super) fn measured(&mut self, measured: Option<Filesystem>, call: &mut Call<'_>) {
        self.is_unreadable &= measured.is_none();
        self.shortage = measured.and_then(|disk| shortage(disk, call.config));
        self.recheck = self.shortage.as_ref().map(|_| call.after(RECHECK));
    }

    /// There is nothing to measure. Logged once.
    pub(super) fn unreadable(&mut self, problem: &str, call: &mut Call<'_>) {
        if !std::mem::replace(&mut self.is_unreadable, true) {
            call.warn(format!(
                "free disk space is not checked, because it cannot be measured: {problem}"
            ));
        }
    }

    /// Is a measurement due, for tags that wait for space?
    pub(super) fn recheck(&mut self, awaits_space: bool, now: Timestamp) -> bool {
        if !awaits_space {
            self.recheck = None;
            return false;
        }
        let is_due = self.recheck.is_none_or(|due| due <= now);
        if is_due {
            self.recheck = Some(crate::call::after(now, RECHECK));
        }
        is_due
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.recheck
    }
}

fn shortage(disk: Filesystem, config: &Config) -> Option<String> {
    let min_free_percent = config.min_free_percent;
    let (free, size) = (u128::from(disk.free), u128::from(disk.size));
    let permille = (free * 1000).checked_div(size)?;
    let is_short = free * 100 < size * u128::from(min_free_percent) && disk.free < config.enough_free;
    is_short.then(|| {
        let (percent, tenth) = (permille / 10, permille % 10);
        format!(
            "the node is short of disk space: {percent}.{tenth}% are free, {min_free_percent}% are needed"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_free_decides() {
        let config = Config::new("n1");
        let short = |free, size| shortage(Filesystem { free, size }, &config);
        assert_eq!(short(10, 100), None);
        let text = "the node is short of disk space: 9.9% are free, 10% are needed";
        assert_eq!(short(99, 1000).as_deref(), Some(text));
        assert_eq!(short(0, 0), None, "an unknown size");
        assert_eq!(short(u64::MAX, u64::MAX), None);
        assert!(short(0, u64::MAX).is_some());
        assert!(
            short((20 << 30) - 1, 1 << 40).is_some() && short(20 << 30, 1 << 40).is_none(),
            "2 % of a terabyte"
        );
    }
}
