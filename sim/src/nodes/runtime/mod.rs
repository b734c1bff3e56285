//! The container runtimes of nodes, as those besides the kubelet see them: calls of the Container Runtime Interface
//! as data, and answers at a later time of the world.
//!
//! * [`World::call_runtime`](crate::World::call_runtime) makes a [`Call`],
//!   [`World::runtime_answers`](crate::World::runtime_answers) has what was answered so far, each call once.
//!   [`World::next_due`](crate::World::next_due) knows when the next answer is due.
//!   [`World::cancel_runtime_call`](crate::World::cancel_runtime_call) ends a call early; it is answered with
//!   [`Error::Cancelled`].
//! * Images that kubelets pull are there for callers, and those that callers pull are there for kubelets, which
//!   then start containers without a pull.
//! * Containers are those of the kubelet. One that is stopped here begins again if its pod's restart policy says
//!   so, after a back-off if that happens often, with a new id and one more restart.
//! * [`Registries`] say which images there are; [`Fault`]s say what goes wrong on a node.
//!
//! A process ends by the signal after [`Timings::container_stop`](super::Timings::container_stop): with 0 if it
//! serves, with 143 if it would have come to an end by itself, and with 137 if its grace period is shorter. Where
//! no call is made and no fault is injected, nothing of this has an effect on the world but the images that a
//! registry does not have.
//!
//! Not modelled: sandboxes, layers that images share, what pulls take of each other's bandwidth, pull secrets of
//! kubelets (they may pull every image, from registries in trouble, too, and onto a full disk). The `imageID` in
//! the status of a pod is made of the image's name, whatever digest a registry gives it. What nodes have on their
//! disks is not part of a snapshot: a world over an API that has a past begins with empty disks.

mod call;
mod containers;
mod disk;
mod error;
mod exec;
mod images;
mod node;
mod pull;
mod registry;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

pub use self::call::{Answer, Call, CallId, Exec, Login, Output, Pull, Version};
pub use self::containers::{Container, ContainerState, ContainerStatus, labels};
pub(super) use self::containers::{annotations_of, labels_of};
pub use self::disk::Filesystem;
pub use self::error::Error;
pub use self::images::Image;
pub(super) use self::images::Images;
pub use self::node::Fault;
use self::node::Node;
use self::pull::Transfer;
pub(super) use self::registry::Absence;
pub use self::registry::{Registries, Registry, RemoteImage, Trouble};
use crate::store::Key;
use crate::world::Timers;

/// What runtimes have and reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which images there are. [`World::change_registries`](crate::World::change_registries) changes that later.
    pub registries: Registries,
    /// What a pull transfers in a second: 40 MB. Each pull has all of it.
    pub bandwidth: u64,
    /// From a pull's begin until the registry has answered for the first time: 100 ms. A pull of an image that is
    /// there takes no longer.
    pub resolve: Duration,
    /// What an image takes that no registry says the size of: 200 MB.
    pub image_bytes: u64,
    /// The disk of each node: 100 GiB.
    pub disk_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            registries: Registries::default(),
            bandwidth: 40_000_000,
            resolve: Duration::from_millis(100),
            image_bytes: 200_000_000,
            disk_bytes: 100 << 30,
        }
    }
}

/// What remains to be done for a call. Calls that read are answered with what there is when their time has come.
#[derive(Clone, Debug)]
enum Work {
    ListImages,
    ImageStatus(String),
    ImageFsInfo,
    ListContainers(BTreeMap<String, String>),
    ContainerStatus(String),
    Pull(Transfer),
    /// A command runs in a container.
    Command {
        container: String,
        output: Output,
        is_late: bool,
    },
    /// The answer is known.
    Answer(Result<Answer, Error>),
}

/// A call that was not answered yet.
#[derive(Clone, Debug)]
struct Pending {
    node: String,
    work: Work,
}

/// The runtimes of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Runtimes {
    options: Options,
    nodes: BTreeMap<String, Node>,
    calls: u64,
    pending: BTreeMap<CallId, Pending>,
    timers: Timers<CallId>,
    answers: Vec<(CallId, Result<Answer, Error>)>,
    /// Pods that the kubelet has to look at.
    stirred: BTreeSet<Key>,
    /// Nodes whose runtime is back.
    returned: BTreeSet<String>,
    /// When there was something for the kubelets.
    since: Option<Timestamp>,
    /// Counts calls, answers and faults: drivers in real time look at the world anew when it moves.
    news: u64,
}

impl Runtimes {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            nodes: BTreeMap::new(),
            calls: 0,
            pending: BTreeMap::new(),
            timers: Timers::new(),
            answers: Vec::new(),
            stirred: BTreeSet::new(),
            returned: BTreeSet::new(),
            since: None,
            news: 0,
        }
    }

    /// A node is there.
    pub(super) fn learn(&mut self, name: &str) {
        if !self.nodes.contains_key(name) {
            let node = Node::new(self.options.disk_bytes);
            self.nodes.insert(name.to_owned(), node);
        }
    }

    /// A node is gone, and with it its disk.
    pub(super) fn forget(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.break_calls(name);
        }
    }

    /// Whether the runtime of a node was taken away.
    pub(super) fn is_away(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.is_away)
    }

    /// The images of a node, what registries have, and how large an image is that they say nothing about.
    pub(super) fn images(&mut self, node: &str) -> (&mut Images, &Registries, u64) {
        let disk = self.options.disk_bytes;
        let node = self
            .nodes
            .entry(node.to_owned())
            .or_insert_with(|| Node::new(disk));
        (
            &mut node.images,
            &self.options.registries,
            self.options.image_bytes,
        )
    }

    /// Pods that kubelets have to look at since the last time.
    pub(super) fn take_stirred(&mut self) -> BTreeSet<Key> {
        self.since = None;
        std::mem::take(&mut self.stirred)
    }

    /// Nodes whose runtimes came back since the last time.
    pub(super) fn take_returned(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.returned)
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.timers.next().into_iter().chain(self.since).min()
    }

    fn answer(&mut self, id: CallId, result: Result<Answer, Error>) {
        self.news += 1;
        self.pending.remove(&id);
        self.timers.set(id, None);
        self.answers.push((id, result));
    }

    /// Something happened that a kubelet has to see.
    fn stir(&mut self, pods: impl IntoIterator<Item = Key>, now: Timestamp) {
        self.stirred.extend(pods);
        self.since.get_or_insert(now);
    }

    /// The connection of all calls of a node is gone.
    fn break_calls(&mut self, node: &str) {
        let of_node = self.pending.iter().filter(|(_, call)| call.node == node);
        let ids: Vec<CallId> = of_node.map(|(id, _)| *id).collect();
        for id in ids {
            let why = "error reading from server: EOF".to_owned();
            self.answer(id, Err(Error::Unavailable(why)));
        }
    }
}
