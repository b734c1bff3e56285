//! The images of a node: what is there, what is being pulled.
//!
//! Layers are modelled by repositories: images of one repository share most of theirs. Every image can be had, but
//! those of a registry below `.invalid`: such a name leads nowhere, on any cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Timings;

/// Images by name, and when they are (or will be) complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    complete: BTreeMap<String, Timestamp>,
    /// Until when the node pulls.
    busy: Option<Timestamp>,
}

/// An image that is there, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    /// When.
    pub(super) until: Timestamp,
    /// How long the pull alone takes; none if it was there.
    pub(super) takes: Option<Duration>,
}

impl Images {
    /// When the image is there, if the pull begins now; `None` if it cannot be had.
    pub(super) fn fetch(&mut self, image: &str, now: Timestamp, timings: &Timings) -> Option<Fetch> {
        if is_nowhere(registry(image)) {
            return None;
        }
        if let Some(complete) = self.complete.get(image) {
            // Of a pull that another pod began the rest counts.
            let rest = complete.duration_since(now);
            return Some(Fetch {
                until: (*complete).max(now),
                takes: rest.is_positive().then(|| rest.unsigned_abs()),
            });
        }
        let shares = self
            .complete
            .keys()
            .any(|known| repository(known) == repository(image));
        let takes = if shares {
            timings.image_pull_shared
        } else {
            timings.image_pull
        };
        let start = self.busy.map_or(now, |busy| busy.max(now));
        let complete = start.checked_add(takes).unwrap_or(start);
        self.busy = Some(complete);
        self.complete.insert(image.to_owned(), complete);
        Some(Fetch {
            until: complete,
            takes: Some(takes),
        })
    }
}

/// The host that an image comes from, without its port.
fn registry(image: &str) -> &str {
    let host = image.split_once('/').map_or("", |(host, _)| host);
    host.split(':').next().unwrap_or_default()
}

/// A name of the domain that is kept for names which lead nowhere.
fn is_nowhere(host: &str) -> bool {
    host.rsplit('.').next() == Some("invalid")
}

/// Why an image cannot be had.
pub(super) fn failure(image: &str) -> String {
    let host = registry(image);
    format!("failed to resolve image {image:?}: dial tcp: lookup {host}: no such host")
}

/// An image's name without tag and digest.
pub(super) fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, ToSpan};

    use super::{Images, Timings, repository};

    #[test]
    fn an_image_is_pulled_once_and_one_at_a_time_and_layers_are_shared() {
        let timings = Timings::default();
        let mut images = Images::default();
        let start = Timestamp::UNIX_EPOCH;
        let at = |millis: i64| Some(start + millis.milliseconds());
        let then = |millis: i64| start + millis.milliseconds();
        let mut fetch = |image: &str, after: i64| {
            let fetch = images.fetch(image, then(after), &timings)?;
            let takes = fetch.takes.map(|takes| takes.as_millis());
            Some((Some(fetch.until), takes))
        };
        assert_eq!(fetch("web:1", 0), Some((at(5000), Some(5000))));
        assert_eq!(fetch("web:1", 100), Some((at(5000), Some(4900))));
        assert_eq!(fetch("db:1", 100), Some((at(10_000), Some(5000))));
        assert_eq!(fetch("web:2", 20_000), Some((at(21_500), Some(1500))));
        assert_eq!(fetch("web:1", 30_000), Some((at(30_000), None)));
    }

    #[test]
    fn a_registry_that_is_nowhere_has_no_images() {
        let mut images = Images::default();
        let mut fetch = |image| images.fetch(image, Timestamp::UNIX_EPOCH, &Timings::default());
        for image in ["invalid/web:1", "registry.invalid/web:1", "r.invalid:5000/a/web"] {
            assert_eq!(fetch(image), None, "{image}");
        }
        for image in [
            "web:1",
            "invalid",
            "web:invalid",
            "r.invalid.example/web",
            "r.example/invalid/web",
        ] {
            assert!(fetch(image).is_some(), "{image}");
        }
    }

    #[test]
    fn tags_and_digests_are_not_part_of_the_repository() {
        for image in [
            "h:5000/a/web",
            "h:5000/a/web:1",
            "h:5000/a/web@sha256:ab",
            "h:5000/a/web:1@sha256:ab",
        ] {
            assert_eq!(repository(image), "h:5000/a/web", "{image}");
        }
    }
}
