//! What a registry wants to see.

use std::fmt;

/// How to log in at a registry. Prints no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A user's name and password. Both are empty if an entry names neither.
    Basic {
        /// May be printed.
        username: String,
        /// Is not printed.
        password: String,
    },
    /// A token that gets a registry token, instead of a password.
    Identity(String),
    /// A token that is sent to the registry as it is.
    Registry(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { username, .. } => f
                .debug_struct("Basic")
                .field("username", username)
                .finish_non_exhaustive(),
            Self::Identity(_) => f.write_str("Identity"),
            Self::Registry(_) => f.write_str("Registry"),
        }
    }
}
