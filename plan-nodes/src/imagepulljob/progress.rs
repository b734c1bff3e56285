//! How far each node of a job is.

use std::sync::Arc;

use kruise_api::nodeimage::{ImageTag, NodeImage, SecretReference, TagStatus};
use kruise_plan_kit::image;

/// What a job pulls.
pub(super) struct Wanted<'a> {
    /// Name of the image, as NodeImages list it.
    pub(super) image: String,
    /// Tag or digest.
    pub(super) tag: String,
    /// UID of the job.
    pub(super) uid: &'a str,
    /// Secrets that the entry of the image has to name.
    pub(super) secrets: Vec<SecretReference>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(reference: &str, uid: &'a str, secrets: Vec<SecretReference>) -> Self {
        let (image, tag) = image::name_and_tag(reference);
        Self {
            image,
            tag,
            uid,
            secrets,
        }
    }

    /// The secrets that the entry of the image on this node does not name.
    pub(super) fn missing_secrets<'w>(
        &'w self,
        node: &'w NodeImage,
    ) -> impl Iterator<Item = &'w SecretReference> {
        let entry = node.images.get(&self.image);
        self.secrets.iter().filter(move |secret| {
            let mut have = entry.into_iter().flat_map(|entry| &entry.pull_secrets);
            !have.any(|have| have.is_same(secret))
        })
    }
}

/// How far a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not been asked.
    Waiting,
    /// It has been asked, and has not ended.
    Active,
    /// It has the image.
    Succeeded,
    /// It could not pull it.
    Failed,
}

/// A node of a job.
pub(super) struct Node<'a> {
    pub(super) view: &'a NodeImage,
    pub(super) state: State,
    /// What the node is to pull for the job, once it was asked.
    pub(super) tag: Option<&'a ImageTag>,
    /// What the agent of the node reports on the current round.
    pub(super) status: Option<&'a TagStatus>,
    /// Whether the node was asked before the job had all its secrets.
    pub(super) lacks_secrets: bool,
}

/// The nodes of a job, in the order in which they are to pull.
pub(super) struct Progress<'a> {
    pub(super) nodes: Vec<Node<'a>>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(nodes: &'a [Arc<NodeImage>], wanted: &Wanted<'_>) -> Self {
        let nodes = nodes.iter().map(|node| node_of(node, wanted)).collect();
        Self { nodes }
    }

    pub(super) fn count(&self, state: State) -> i32 {
        let count = self.nodes.iter().filter(|node| node.state == state).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// Number of nodes.
    pub(super) fn desired(&self) -> i32 {
        i32::try_from(self.nodes.len()).unwrap_or(i32::MAX)
    }

    /// Has every node pulled, or failed to?
    pub(super) fn is_done(&self) -> bool {
        let mut states = self.nodes.iter().map(|node| node.state);
        states.all(|state| matches!(state, State::Succeeded | State::Failed))
    }

    /// Names of the nodes in one of these states, sorted.
    pub(super) fn names(&self, states: &[State]) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|node| states.contains(&node.state));
        let mut names: Vec<String> = nodes.map(|node| node.view.metadata.name.clone()).collect();
        names.sort();
        names
    }
}

fn node_of<'a>(view: &'a NodeImage, wanted: &Wanted<'_>) -> Node<'a> {
    let tag = view.tag(&wanted.image, &wanted.tag);
    let own = tag.filter(|tag| tag.owner_references.iter().any(|owner| owner.uid == wanted.uid));
    let status = own.and_then(|tag| view.round(&wanted.image, tag));
    let state = match (own, status) {
        (None, _) => State::Waiting,
        (Some(_), Some(status)) if status.has_succeeded() => State::Succeeded,
        (Some(_), Some(status)) if status.has_failed() => State::Failed,
        (Some(_), _) => State::Active,
    };
    Node {
        view,
        state,
        tag: own,
        status,
        lacks_secrets: state == State::Active && wanted.missing_secrets(view).next().is_some(),
    }
}
