//! How a node's agent pulls images: one at a time, each once.
//!
//! Layers are modelled by repositories: images of one repository share most of theirs.

use std::time::Duration;

use jiff::Timestamp;

use super::Timings;
use crate::nodes::runtime::{Absence, Images, Registries};

/// What the agent of a node pulls from and to.
#[derive(Debug)]
pub(super) struct Pulls<'a> {
    pub(super) images: &'a mut Images,
    pub(super) registries: &'a Registries,
    /// What an image takes that no registry says the size of.
    pub(super) bytes: u64,
    /// Until when the node pulls.
    pub(super) busy: &'a mut Option<Timestamp>,
}

/// An image that is there, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    /// When.
    pub(super) until: Timestamp,
    /// How long the pull alone takes; none if it was there.
    pub(super) takes: Option<Duration>,
}

impl Pulls<'_> {
    /// When the image is there, if the pull begins now.
    ///
    /// # Errors
    /// Why it cannot be had, in the words of a runtime.
    pub(super) fn fetch(&mut self, image: &str, now: Timestamp, timings: &Timings) -> Result<Fetch, String> {
        if let Some(complete) = self.images.when(image) {
            // Of a pull that another pod began the rest counts.
            let rest = complete.duration_since(now);
            return Ok(Fetch {
                until: complete.max(now),
                takes: rest.is_positive().then(|| rest.unsigned_abs()),
            });
        }
        let offer = self.registries.look_up(image).map_err(Absence::into_text)?;
        let takes = if self.images.has_of_repository(image) {
            timings.image_pull_shared
        } else {
            timings.image_pull
        };
        let start = self.busy.map_or(now, |busy| busy.max(now));
        let complete = start.checked_add(takes).unwrap_or(start);
        *self.busy = Some(complete);
        let bytes = offer.bytes.unwrap_or(self.bytes);
        self.images.add(image, &offer.digest, bytes, complete);
        Ok(Fetch {
            until: complete,
            takes: Some(takes),
        })
    }

    /// Whether an image is there, or can be pulled.
    pub(super) fn can_be_had(&self, image: &str) -> bool {
        self.images.when(image).is_some() || self.registries.look_up(image).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, ToSpan};

    use super::{Images, Pulls, Registries, Timings};

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn an_image_is_pulled_once_and_one_at_a_time_and_layers_are_shared() {
        let (mut images, registries, mut busy) = (Images::default(), Registries::default(), None);
        let mut pulls = Pulls {
            images: &mut images,
            registries: &registries,
            bytes: 1,
            busy: &mut busy,
        };
        let at = |millis: i64| START + millis.milliseconds();
        let mut fetch = |image: &str, after: i64| {
            let fetch = pulls.fetch(image, at(after), &Timings::default()).unwrap();
            (fetch.until, fetch.takes.map(|takes| takes.as_millis()))
        };
        assert_eq!(fetch("web:1", 0), (at(5000), Some(5000)));
        assert_eq!(fetch("web:1", 100), (at(5000), Some(4900)));
        assert_eq!(fetch("db:1", 100), (at(10_000), Some(5000)));
        assert_eq!(fetch("web:2", 20_000), (at(21_500), Some(1500)));
        assert_eq!(fetch("web:1", 30_000), (at(30_000), None));
    }

    #[test]
    fn a_registry_that_is_nowhere_has_no_images() {
        let (mut images, mut registries, mut busy) = (Images::default(), Registries::default(), None);
        registries.remove("gone:1");
        let mut pulls = Pulls {
            images: &mut images,
            registries: &registries,
            bytes: 1,
            busy: &mut busy,
        };
        for image in [
            "invalid/web:1",
            "registry.invalid/web:1",
            "r.invalid:5000/a/web",
            "gone:1",
        ] {
            assert!(!pulls.can_be_had(image), "{image}");
            assert!(pulls.fetch(image, START, &Timings::default()).is_err(), "{image}");
        }
        for image in [
            "web:1",
            "invalid",
            "web:invalid",
            "r.invalid.example/web",
            "r.example/invalid/web",
            "No Reference",
        ] {
            assert!(pulls.fetch(image, START, &Timings::default()).is_ok(), "{image}");
        }
    }
}
