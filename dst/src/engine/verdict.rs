//! What oracles find.

/// Something that must not happen, happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle found it.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

/// Whether oracles judge what managers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judged {
    /// Every write, and the end.
    #[default]
    Yes,
    /// Only the end.
    No,
}
