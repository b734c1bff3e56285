//! The files of one version, and its texts with other uids and times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::text;

/// Bytes of a uid, and of a time to the second.
const UID: usize = 36;
const TIME: usize = 20;
/// How long ago the newest time is.
const AGE: SignedDuration = SignedDuration::from_secs(60);

/// When the objects were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everything had settled.
    Rest,
    /// A rollout was held.
    Mid,
}

impl Phase {
    fn prefix(self) -> &'static str {
        match self {
            Self::Rest => "rest-",
            Self::Mid => "mid-",
        }
    }
}

/// What one version stored in one phase.
#[derive(Debug)]
pub(super) struct Files {
    /// Each object, in the version that it was stored in.
    pub(super) objects: Vec<Value>,
    /// What is changed for each copy: uids of these objects and of their owners.
    uids: BTreeSet<String>,
    /// How far times are moved.
    shift: SignedDuration,
    /// The newest time, moved.
    pub(super) newest: String,
}

impl Files {
    /// Both phases of a version, at rest first.
    pub(super) fn of(version: &str, now: Timestamp) -> [Self; 2] {
        let phases = [Phase::Rest, Phase::Mid].map(|phase| read(version, phase));
        let newest = phases
            .iter()
            .flatten()
            .filter_map(|object| newest(&object.to_string()));
        let newest = newest.max().expect("objects have times");
        let shift = now.duration_since(newest) - AGE;
        phases.map(|objects| Self {
            uids: uids(&objects),
            objects,
            shift,
            newest: text(newest + shift),
        })
    }

    /// The objects of a kind.
    pub(super) fn of_kind<'f>(&'f self, kind: &'f str) -> impl Iterator<Item = &'f Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// An object as it is in the copy of this number, with the times of now.
    pub(super) fn renewed(&self, object: &Value, number: usize) -> Value {
        let old = object.to_string();
        let (mut new, mut at) = (String::with_capacity(old.len()), 0);
        while let Some(next) = old[at..].chars().next() {
            let (length, replaced) =
                if let Some(uid) = uid_at(&old, at).filter(|uid| self.uids.contains(*uid)) {
                    (UID, uid_of_copy(uid, number))
                } else if let Some(time) = time_at(&old, at) {
                    (TIME, text(time + self.shift))
                } else {
                    (next.len_utf8(), next.to_string())
                };
            new.push_str(&replaced);
            at += length;
        }
        serde_json::from_str(&new).unwrap()
    }
}

/// The uid of a copy: another number in the first part.
pub(super) fn uid_of_copy(uid: &str, number: usize) -> String {
    let (first, rest) = uid.split_at(8);
    let first = u32::from_str_radix(first, 16).unwrap();
    let number = u32::try_from(number).unwrap().wrapping_mul(0x9e37_79b1);
    format!("{:08x}{rest}", first ^ number)
}

fn uid_at(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let has_dashes = [8, 13, 18, 23]
        .iter()
        .all(|dash| bytes.get(at + dash) == Some(&b'-'));
    has_dashes.then(|| text.get(at..at + UID))?
}

fn time_at(text: &str, at: usize) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (19, b'Z')];
    let is_time = marks
        .iter()
        .all(|(place, mark)| bytes.get(at + place) == Some(mark));
    is_time.then(|| text.get(at..at + TIME)?.parse().ok())?
}

fn newest(text: &str) -> Option<Timestamp> {
    (0..text.len()).filter_map(|at| time_at(text, at)).max()
}

/// The uids of these objects and of their owners.
fn uids(objects: &[Value]) -> BTreeSet<String> {
    let own = objects.iter().map(|object| &object["metadata"]["uid"]);
    let owners = objects
        .iter()
        .filter_map(|object| object["metadata"]["ownerReferences"].as_array());
    let owners = owners.flatten().map(|owner| &owner["uid"]);
    own.chain(owners)
        .filter_map(|uid| uid.as_str().map(str::to_owned))
        .collect()
}

/// All objects of a phase. Of a kind that was printed in two versions, those of the newer one.
fn read(version: &str, phase: Phase) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/upstream")
        .join(version);
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name
            .strip_prefix(phase.prefix())
            .and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        if Path::new(name)
            .extension()
            .is_none_or(|extension| extension != "raw")
        {
            let list: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let items = if list.is_array() { &list } else { &list["items"] };
            files.insert(name.to_owned(), items.as_array().unwrap().clone());
        }
    }
    let older = ".v1alpha1.apps.kruise.io";
    let has_newer = |name: &str| {
        let plain = name.strip_suffix(older);
        plain.is_some_and(|plain| {
            files.contains_key(plain) || files.contains_key(&format!("{plain}.apps.kruise.io"))
        })
    };
    let kept = files.iter().filter(|(name, _)| !has_newer(name));
    kept.flat_map(|(_, objects)| objects.clone()).collect()
}
