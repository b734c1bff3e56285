//! What is restarted.

use crate::resources::Resource;

/// A workload whose containers are restarted.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its resource.
    pub resource: Resource,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}
