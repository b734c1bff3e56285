//! What a plan is made from.

use std::sync::Arc;

use kruise_api::{imagepulljob::ImagePullJob, nodeimage::NodeImage};
use kruise_plan_kit::{Explain, Memory};
use kruise_views::SecretView;

/// One snapshot of an ImagePullJob, its nodes and its secrets.
pub struct Snapshot<'a> {
    /// The job.
    pub job: &'a ImagePullJob,
    /// `apiVersion` for references to it: that of the version on the wire.
    pub api_version: &'a str,
    /// The NodeImages of its nodes, in the order in which they are to pull ([`super::targets`]).
    pub nodes: &'a [Arc<NodeImage>],
    /// Nodes that the job names or whose pods it selects, and that have no NodeImage.
    pub unlisted: &'a [String],
    /// Secrets and their copies.
    pub secrets: &'a dyn Copies,
    /// Whether the specification was changed after the job had ended.
    pub changed_after_end: bool,
    /// Flags and environment.
    pub options: Options<'a>,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Flags and environment that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// Namespace of the secrets that node agents may read.
    pub agent_namespace: &'a str,
    /// Whether the manager watches that namespace.
    pub sees_copies: bool,
    /// Seconds that a node keeps a tag of a job of type `Always` beyond the time that the job may take.
    pub kept_seconds: i64,
}

impl Options<'static> {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        agent_namespace: kruise_api::names::AGENT_NAMESPACE,
        sees_copies: true,
        kept_seconds: 300,
    };
}

/// Secrets of the cluster.
pub trait Copies {
    /// A secret.
    fn get(&self, namespace: &str, name: &str) -> Option<Arc<SecretView>>;

    /// The copies of a secret, given as `namespace/name`.
    fn of(&self, source: &str) -> Vec<Arc<SecretView>>;

    /// The copies that a job needs or needed, given as `namespace/name`.
    fn needed_by(&self, job: &str) -> Vec<Arc<SecretView>>;
}

/// All secrets that were listed.
impl Copies for Vec<Arc<SecretView>> {
    fn get(&self, namespace: &str, name: &str) -> Option<Arc<SecretView>> {
        let is_it = |secret: &&Arc<SecretView>| *secret.namespace == *namespace && *secret.name == *name;
        self.iter().find(is_it).cloned()
    }

    fn of(&self, source: &str) -> Vec<Arc<SecretView>> {
        let copies = self
            .iter()
            .filter(|secret| secret.source.as_deref() == Some(source));
        copies.cloned().collect()
    }

    fn needed_by(&self, job: &str) -> Vec<Arc<SecretView>> {
        let is_copy_for = |secret: &&Arc<SecretView>| {
            secret.source.is_some() && secret.references.iter().any(|one| **one == *job)
        };
        self.iter().filter(is_copy_for).cloned().collect()
    }
}
