//! Keys of NodeImages. Wire format.

/// NodeImage label: the object has no node and is not deleted.
pub const FAKE_NODE_IMAGE: &str = "apps.kruise.io/fake-nodeimage";
