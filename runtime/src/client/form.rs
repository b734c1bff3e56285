//! How much of objects the server sends.

/// What the server sends: whole objects.
pub(super) const JSON: &str = "application/json";
/// What the server sends: the metadata of the items of a list. A server that cannot leave out the rest sends all.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// What the server sends: the metadata of the objects of a watch.
const METADATA_OF_ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// How much of each object of a list or a watch the server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    #[default]
    Whole,
    /// Its metadata. A server that cannot leave out the rest sends all.
    Metadata,
}

impl Form {
    /// `Accept` of a list.
    pub(super) fn of_lists(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => METADATA,
        }
    }

    /// `Accept` of a watch.
    pub(super) fn of_watches(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => METADATA_OF_ONE,
        }
    }
}

/// How large an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As large as what is asked for: one object, or a list that a person asks for.
    Any,
    /// At most [`PAGE_BYTES`](super::PAGE_BYTES).
    Page,
}
