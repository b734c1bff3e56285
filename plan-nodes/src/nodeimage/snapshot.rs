//! What a plan is made from.

use std::time::Duration;

use kruise_api::nodeimage::{NodeImage, ObjectReference, SecretReference};
use kruise_views::NodeView;

/// One snapshot of a node, its NodeImage, and what the images are wanted by.
pub struct Snapshot<'a> {
    /// Name of both.
    pub name: &'a str,
    /// `apiVersion` of a new NodeImage: that of the version on the wire.
    pub api_version: &'a str,
    /// The NodeImage, if there is one.
    pub image: Option<&'a NodeImage>,
    /// The node, if there is one.
    pub node: Option<&'a NodeView>,
    /// The jobs that images may be wanted by.
    pub jobs: &'a dyn Jobs,
    /// The secrets that images may be pulled with.
    pub secrets: &'a dyn Secrets,
    /// Flags.
    pub options: Options,
}

/// Flags that change decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a node must have been ready before it gets a NodeImage.
    pub creation_delay: Duration,
}

impl Options {
    /// The defaults of flags.
    pub const DEFAULT: Self = Self {
        creation_delay: Duration::from_secs(30),
    };
}

/// What is known of an object that wants a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It does not exist, or another object has its name.
    Gone,
    /// A job that ends with its pulls, and has not ended.
    Pulls,
    /// It exists, and does not keep tags beyond their time to live.
    Exists,
    /// It is of a kind or in a namespace that the manager does not watch.
    Unknown,
}

/// The jobs that images may be wanted by.
pub trait Jobs {
    /// What is known of the object that is named.
    fn owner(&self, reference: &ObjectReference) -> Owner;
}

/// The secrets that images may be pulled with.
pub trait Secrets {
    /// Does the secret exist? `None` if the manager may not watch secrets.
    fn exists(&self, secret: &SecretReference) -> Option<bool>;
}
