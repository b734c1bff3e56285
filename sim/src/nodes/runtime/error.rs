//! Why a call has no answer.

/// A call that failed, with the text that the runtime gives. The interface knows numbers of gRPC only: [`Error::code`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry has no such image, or the runtime no such container.
    #[error("{0}")]
    NotFound(String),
    /// The registry wants a login, or another one.
    #[error("{0}")]
    Unauthorized(String),
    /// The disk is full.
    #[error("{0}")]
    NoSpace(String),
    /// The registry cannot be reached, or broke off.
    #[error("{0}")]
    Registry(String),
    /// Whoever made the call has cancelled it.
    #[error("{0}")]
    Cancelled(String),
    /// A command took longer than it may.
    #[error("{0}")]
    TimedOut(String),
    /// Nobody listens at the socket, or the connection broke.
    #[error("{0}")]
    Unavailable(String),
    /// The call makes no sense: a reference that is none, a command in a container that does not run.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// The gRPC status code that containerd returns. What registries and disks refuse is "unknown" (2), with the
    /// reason in the text.
    pub fn code(&self) -> u32 {
        match self {
            Self::Cancelled(_) => 1,
            Self::Unauthorized(_) | Self::NoSpace(_) | Self::Registry(_) | Self::Refused(_) => 2,
            Self::TimedOut(_) => 4,
            Self::NotFound(_) => 5,
            Self::Unavailable(_) => 14,
        }
    }
}
