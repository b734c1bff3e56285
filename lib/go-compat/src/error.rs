//! Everything that can be wrong with text given to this crate.

/// Text that Go would refuse as well. Nothing here can be retried: the caller reports it for the field that it was read
/// from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a duration: numbers with the units `h`, `m`, `s`, `ms`, `us`, `ns`.
    #[error("invalid duration {0:?}")]
    Duration(String),
    /// Not a reference to an image.
    #[error("invalid image reference {0:?}")]
    Image(String),
    /// A percentage was expected: digits, an optional fraction, then `%`.
    #[error("invalid value {0:?}: expected an integer or a percentage such as \"30%\"")]
    Percent(String),
    /// Not a quantity: `<sign><digits>[.<digits>]<suffix>`.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' (got {0:?})"
    )]
    Quantity(String),
    /// A well-formed quantity with more significant digits than we compute with (38). Go accepts it.
    #[error("quantity {0:?} has too many digits")]
    QuantityTooLong(String),
    /// Not a schedule, and why.
    #[error("invalid schedule: {0}")]
    Schedule(String),
}
