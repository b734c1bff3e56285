//! Instance ids: the five characters that end a pod's name.
//!
//! They are computed from the owner's uid and version and a counter, not drawn at random: a plan made twice from
//! the same snapshot, after a crash or by two leaders, names the same pods, and the second creation meets
//! AlreadyExists.

use std::collections::BTreeSet;

use crate::injected::{draw, is_injected};

const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;

/// The next `count` free ids for an owner, sorted. `used` are the ids in the snapshot, whatever
/// the state of their pods, sorted.
pub fn ids(owner_uid: &str, owner_version: &str, used: &[&str], count: usize) -> Vec<String> {
    let mut chosen = BTreeSet::new();
    let mut index: u64 = if is_injected("RandomNames") {
        draw() << 20
    } else {
        0
    };
    let first = index;
    // 27^5 ids exist, and a plan asks for some hundreds: that many misses mean that nearly all are taken.
    let attempts = (count as u64).saturating_mul(64).saturating_add(1024);
    while chosen.len() < count && index - first < attempts {
        let id = id(owner_uid, owner_version, index);
        if used.binary_search(&id.as_str()).is_err() {
            chosen.insert(id);
        }
        index += 1;
    }
    chosen.into_iter().collect()
}

/// The id of the pod of an owner for a node, after the pod of this uid. `index` counts up where pods, whatever their
/// state, have the ids before: nodes of a large cluster share ids.
pub fn id_for_node(owner_uid: &str, (node, predecessor): (&str, Option<&str>), index: u32) -> String {
    let drawn = if is_injected("RandomNames") {
        draw() << 20
    } else {
        0
    };
    let index = drawn + u64::from(index);
    // No name of a node has a slash.
    match predecessor {
        Some(predecessor) => id(owner_uid, &format!("{node}/{predecessor}"), index),
        None => id(owner_uid, node, index),
    }
}

/// The name of the next pod of an owner for a node: the first that is not taken. It depends on the newest pod that the
/// node had, and on nothing else: no pod has the name of the one before it, and a plan that is made twice names the
/// same pod.
pub fn name_for_node(
    (name, uid): (&str, &str),
    (node, predecessor): (&str, Option<&str>),
    taken: &BTreeSet<String>,
) -> String {
    let node = if is_injected("NameForSeveralNodes") {
        ""
    } else {
        node
    };
    let mut index = 0;
    loop {
        let name = format!("{name}-{}", id_for_node(uid, (node, predecessor), index));
        if !taken.contains(&name) {
            return name;
        }
        index += 1;
    }
}

fn id(owner_uid: &str, owner_version: &str, index: u64) -> String {
    let mut hash = Fnv1a::default();
    for part in [
        owner_uid.as_bytes(),
        owner_version.as_bytes(),
        &index.to_le_bytes(),
    ] {
        hash.write(part);
        hash.write(&[0]);
    }
    let mut left = hash.mixed();
    (0..LENGTH)
        .map(|_| {
            let letter = ALPHABET
                .get((left % ALPHABET.len() as u64) as usize)
                .copied()
                .unwrap_or(b'b');
            left /= ALPHABET.len() as u64;
            char::from(letter)
        })
        .collect()
}

/// FNV-1a, 64 bit.
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// FNV leaves neighbours alike in the low bits; one multiply-xorshift round spreads them.
    fn mixed(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{id_for_node, ids, name_for_node};

    #[test]
    fn the_same_snapshot_gives_the_same_names_and_a_new_version_gives_others() {
        assert_eq!(ids("uid", "7", &[], 50), ids("uid", "7", &[], 50));
        assert_ne!(ids("uid", "7", &[], 50), ids("uid", "8", &[], 50));
        assert_ne!(ids("uid", "7", &[], 50), ids("other", "7", &[], 50));
    }

    #[test]
    fn ids_are_five_letters_of_the_alphabet_distinct_sorted_and_unused() {
        let first = ids("uid", "7", &[], 300);
        let used: Vec<&str> = first.iter().map(String::as_str).collect();
        let more = ids("uid", "7", &used, 2000);
        assert_eq!(more.len(), 2000);
        assert!(more.is_sorted() && more.iter().all(|id| !first.contains(id)));
        let alphabet = |c: char| "bcdfghjklmnpqrstvwxz2456789".contains(c);
        assert!(more.iter().all(|id| id.len() == 5 && id.chars().all(alphabet)));
    }

    #[test]
    fn nodes_have_ids_of_their_own_and_others_after_them() {
        let first = id_for_node("uid", ("n1", None), 0);
        assert_eq!(id_for_node("uid", ("n1", None), 0), first);
        for (owner, node, index) in [
            ("uid", ("n1", None), 1),
            ("uid", ("n2", None), 0),
            ("uid", ("n1", Some("pod")), 0),
            ("other", ("n1", None), 0),
        ] {
            assert_ne!(id_for_node(owner, node, index), first, "{owner} {node:?} {index}");
        }
    }

    #[test]
    fn of_5000_nodes_no_two_share_a_name_and_each_name_is_given_again() {
        let nodes: Vec<String> = (0..5000).map(|number| format!("node-{number}")).collect();
        let mut taken = BTreeSet::new();
        for node in &nodes {
            let name = name_for_node(("check", "uid"), (node, None), &taken);
            assert_eq!(name, name_for_node(("check", "uid"), (node, None), &taken));
            assert!(taken.insert(name), "{node}");
        }
        let first = nodes.iter().map(|node| id_for_node("uid", (node, None), 0));
        let first: BTreeSet<String> = first.collect();
        assert!(
            first.len() > 4990,
            "few nodes need a second name: {}",
            first.len()
        );
    }
}
