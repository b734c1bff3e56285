//! Keys of NodeImages. Wire format.

/// NodeImage label: it has no node, and stays nevertheless.
pub const FAKE_NODE_IMAGE: &str = "apps.kruise.io/fake-nodeimage";
