//! Why a patch is not applied.

/// Why a patch was not applied; the variant decides the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is not well formed: the sender must correct it (400).
    Malformed(String),
    /// The patch does not fit the object: read the object and try again (422).
    Inapplicable(String),
    /// The patch requires a merge that its type does not define (500, as Kubernetes answers).
    Unsupported(String),
}

impl std::fmt::Display for PatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Malformed(text) | Self::Inapplicable(text) | Self::Unsupported(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for PatchError {}
