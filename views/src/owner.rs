//! An owner of an object.

use kruise_api::meta::OwnerReference;

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerView {
    /// API group.
    pub group: Box<str>,
    /// Kind.
    pub kind: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
}

impl OwnerView {
    /// The owner that a reference names.
    pub(crate) fn of(owner: &OwnerReference) -> Self {
        Self {
            group: owner.group().into(),
            kind: owner.kind.as_str().into(),
            name: owner.name.as_str().into(),
            uid: owner.uid.as_str().into(),
        }
    }

    /// Boxed, because most views hold none or one.
    pub(crate) fn boxed(owner: &OwnerReference) -> Box<Self> {
        Box::new(Self::of(owner))
    }
}
