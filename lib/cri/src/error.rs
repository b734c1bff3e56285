//! Why a call has no result.

/// A call that failed. Each variant has the text of the runtime, or of what happened on the way to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens at the socket, or the connection broke before the answer was complete. Try again later.
    #[error("the container runtime is not available: {0}")]
    Unavailable(String),
    /// The runtime did not answer within the time limit of the call, or says that what it did took too long.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// The container, or the image in its registry, does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The registry wants other credentials than those of the call, or the runtime refuses the caller.
    ///
    /// The interface has no code for the former; it is recognised by the words of the registry.
    #[error("credentials refused: {0}")]
    CredentialsRefused(String),
    /// The answer is larger than [`Limits::message_bytes`](crate::Limits::message_bytes), or than the runtime sends.
    #[error("the answer is too large: {0}")]
    TooLarge(String),
    /// The answer is no answer of this interface.
    #[error("malformed answer: {0}")]
    Malformed(String),
    /// The runtime does not offer this call: it may be too old for version 1 of the interface.
    #[error("not offered by the container runtime: {0}")]
    Unimplemented(String),
    /// Any other failure in the runtime.
    #[error("{message}")]
    Other {
        /// The gRPC status code; often 2, "unknown".
        code: u32,
        /// The runtime's text.
        message: String,
    },
}

impl Error {
    /// The text without what kind of failure it is.
    pub fn message(&self) -> &str {
        match self {
            Self::Unavailable(message)
            | Self::TimedOut(message)
            | Self::NotFound(message)
            | Self::CredentialsRefused(message)
            | Self::TooLarge(message)
            | Self::Malformed(message)
            | Self::Unimplemented(message)
            | Self::Other { message, .. } => message,
        }
    }
}
