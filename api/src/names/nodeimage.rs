//! Keys of NodeImages. Wire format.

/// NodeImage label: the object has no node and is not deleted.
pub const FAKE_NODE_IMAGE: &str = "apps.kruise.io/fake-nodeimage";
/// Annotation in the sandbox configuration of a pull: who pulls.
pub const PULLED_BY: &str = "apps.kruise.io/pulling-image-by";
/// Value of [`PULLED_BY`].
pub const AGENT: &str = "kruise-daemon";
