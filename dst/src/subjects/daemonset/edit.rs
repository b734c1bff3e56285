//! How users edit a DaemonSet and its nodes.

use super::start::Strategy;
use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;

/// A user's edit of a DaemonSet, or of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Another image: `web:<n>`.
    Image(u32),
    /// Another value of an environment variable, which no pod takes in place.
    Env(u32),
    /// Another template annotation, which pods take in place without a restart.
    Annotation(u32),
    /// How pods are updated.
    Strategy(Strategy),
    /// `partition`, as text; empty for none.
    Partition(String),
    /// `rollingUpdate.selector`: a pool; empty for none.
    Selector(String),
    /// `paused`.
    Paused(bool),
    /// Pods are updated when somebody deletes them, or as at first again.
    OnDelete(bool),
    /// `minReadySeconds`.
    MinReady(u32),
    /// `burstReplicas`, as text.
    Burst(String),
    /// `nodeSelector` of the template: a pool; empty for none.
    Pool(String),
    /// Whether the template tolerates the taint that users put on nodes.
    Tolerate(bool),
    /// Something happens to the node with this number.
    Node(u8, NodeEdit),
}
