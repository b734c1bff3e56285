//! Pulls: what a registry answers, how long a transfer takes, and how it ends.

use std::time::Duration;

use go_compat::image::Reference;
use jiff::Timestamp;

use super::call::{Answer, Pull};
use super::registry::{Absence, Offer, Trouble, canonical};
use super::{CallId, Error, Runtimes, Work};
use crate::nodes::{identity, time::later};

/// An image on its way to a node.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    /// The reference, as it was asked for.
    image: String,
    digest: String,
    bytes: u64,
    /// When it ends by itself, if it does.
    end: Option<Timestamp>,
    /// Why it will fail.
    failure: Option<Error>,
}

impl Transfer {
    /// One that never begins. When it ends, then badly.
    fn hanging(image: String) -> Self {
        Self {
            failure: Some(broken(&image)),
            image,
            digest: String::new(),
            bytes: 0,
            end: None,
        }
    }
}

impl Runtimes {
    /// Begins a pull; returns what remains to be done and when, if it ends.
    pub(super) fn begin_pull(&self, node: &str, pull: Pull, now: Timestamp) -> (Work, Option<Timestamp>) {
        if pull.image.parse::<Reference>().is_err() {
            let why = format!(
                "failed to parse image reference {:?}: invalid reference format",
                pull.image
            );
            return (Work::Answer(Err(Error::Refused(why))), Some(now));
        }
        let resolved = later(now, self.options.resolve);
        let failed = |error| (Work::Answer(Err(error)), Some(resolved));
        match self.options.registries.trouble_of(&pull.image) {
            Some(Trouble::Down) => return failed(refused(&pull.image)),
            Some(Trouble::Hangs) => return (Work::Pull(Transfer::hanging(pull.image)), None),
            Some(Trouble::BreaksAfter(_)) | None => {}
        }
        let offer = match self.options.registries.look_up(&pull.image) {
            Ok(offer) => offer,
            Err(Absence::Nowhere(why)) => return failed(Error::Registry(why)),
            Err(Absence::NotFound(why)) => return failed(Error::NotFound(why)),
        };
        if offer.login.is_some() && offer.login != pull.login {
            return failed(denied(&pull));
        }
        self.begin_transfer(node, pull.image, offer, [now, resolved])
    }

    fn begin_transfer(
        &self,
        node: &str,
        image: String,
        offer: Offer,
        [now, resolved]: [Timestamp; 2],
    ) -> (Work, Option<Timestamp>) {
        let images = self.nodes.get(node).map(|node| &node.images);
        let known = images.and_then(|images| images.when_content(&offer.digest));
        let bandwidth = offer.bandwidth.unwrap_or(self.options.bandwidth);
        let trouble = self.options.registries.trouble_of(&image);
        let mut transfer = Transfer {
            image,
            digest: offer.digest,
            bytes: offer.bytes.unwrap_or(self.options.image_bytes),
            end: None,
            failure: None,
        };
        let all = span(transfer.bytes, bandwidth);
        let shared = self.end_of(node, &transfer.digest);
        let end = match (known, trouble, shared) {
            (Some(known), ..) if known <= now => resolved,
            (_, Some(Trouble::BreaksAfter(percent)), _) => {
                transfer.failure = Some(broken(&transfer.image));
                later(resolved, all * u32::from(percent.min(100)) / 100)
            }
            (_, _, Some(shared)) => shared.max(resolved),
            // The kubelet may be faster.
            (known, ..) => {
                let own = later(resolved, all);
                known.map_or(own, |known| own.min(known.max(resolved)))
            }
        };
        transfer.end = Some(end);
        (Work::Pull(transfer), Some(end))
    }

    /// When a transfer of the same image to the same node ends, if there is one that ends well.
    fn end_of(&self, node: &str, digest: &str) -> Option<Timestamp> {
        let of_node = self.pending.values().filter(|call| call.node == node);
        let mut same = of_node.filter_map(|call| match &call.work {
            Work::Pull(transfer) if transfer.digest == digest && transfer.failure.is_none() => Some(transfer),
            _ => None,
        });
        same.find_map(|transfer| transfer.end)
    }

    /// How a pull ends.
    pub(super) fn end_pull(
        &mut self,
        node: &str,
        transfer: Transfer,
        now: Timestamp,
    ) -> Result<Answer, Error> {
        if let Some(failure) = transfer.failure {
            return Err(failure);
        }
        let node = self.nodes.get_mut(node);
        let node = node.ok_or_else(|| Error::Unavailable("the node is gone".into()))?;
        let is_there = node
            .images
            .when_content(&transfer.digest)
            .is_some_and(|from| from <= now);
        if !is_there && node.disk.free(node.images.bytes(now)) < transfer.bytes {
            let full = canonical(&transfer.image);
            return Err(Error::NoSpace(format!(
                "failed to pull and unpack image {full:?}: failed to extract layer: write: no space left on device"
            )));
        }
        node.images
            .add(&transfer.image, &transfer.digest, transfer.bytes, now);
        Ok(Answer::Pulled(identity::config_digest(&transfer.digest)))
    }

    /// Registries have changed: transfers from those that are down break, and those from registries that hang do, too.
    pub(super) fn review_transfers(&mut self, now: Timestamp) {
        let mut changes: Vec<(CallId, Option<Timestamp>)> = Vec::new();
        for (id, call) in &mut self.pending {
            let Work::Pull(transfer) = &mut call.work else {
                continue;
            };
            match self.options.registries.trouble_of(&transfer.image) {
                Some(Trouble::Down) => {
                    transfer.failure = Some(broken(&transfer.image));
                    changes.push((*id, Some(now)));
                }
                Some(Trouble::Hangs) => {
                    transfer.end = None;
                    changes.push((*id, None));
                }
                Some(Trouble::BreaksAfter(_)) | None => {}
            }
        }
        for (id, at) in changes {
            self.timers.set(id, at);
        }
    }
}

/// How long it takes to transfer so many bytes.
fn span(bytes: u64, bandwidth: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The words of a failed pull before its reason.
fn unresolved(image: &str) -> String {
    let full = canonical(image);
    format!("failed to pull and unpack image {full:?}: failed to resolve reference {full:?}")
}

fn refused(image: &str) -> Error {
    Error::Registry(format!(
        "{}: failed to do request: dial tcp: connect: connection refused",
        unresolved(image)
    ))
}

fn broken(image: &str) -> Error {
    let full = canonical(image);
    Error::Registry(format!(
        "failed to pull and unpack image {full:?}: failed to copy: httpReadSeeker: failed open: unexpected EOF"
    ))
}

fn denied(pull: &Pull) -> Error {
    let start = unresolved(&pull.image);
    let why = "pull access denied, repository does not exist or may require authorization";
    Error::Unauthorized(match pull.login {
        Some(_) => format!("{start}: {why}: authorization failed: 401 Unauthorized"),
        None => format!("{start}: {why}: authorization failed: no basic auth credentials"),
    })
}
