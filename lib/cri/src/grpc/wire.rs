//! The fields of a protobuf message, one after the other, as far as they are here.

use super::sink::Undecodable;

/// Bytes of the longest number.
const LONGEST_VARINT: usize = 10;

/// What begins at a place of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A number; it is complete.
    Number { field: u32, value: u64 },
    /// So many bytes follow: text, bytes or a message.
    Bytes { field: u32, length: usize },
    /// A number of so many bytes follows.
    Fixed { field: u32, length: usize },
}

impl Field {
    /// Its number in the message.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Number { field, .. } | Self::Bytes { field, .. } | Self::Fixed { field, .. } => field,
        }
    }

    /// What follows it.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Number { .. } => 0,
            Self::Bytes { length, .. } | Self::Fixed { length, .. } => length,
        }
    }
}

/// The field that begins here, and how many bytes say so; nothing if they are not all here.
pub(super) fn next(bytes: &[u8]) -> Result<Option<(Field, usize)>, Undecodable> {
    let Some((key, key_length)) = varint(bytes)? else {
        return Ok(None);
    };
    let field = u32::try_from(key).map_or(0, |key| key >> 3);
    if field == 0 {
        return Err(Undecodable(format!("there is no field {}", key >> 3)));
    }
    let fixed = |length| Ok(Some((Field::Fixed { field, length }, key_length)));
    let number = || varint(bytes.get(key_length..).unwrap_or_default());
    match key & 7 {
        0 => Ok(number()?.map(|(value, length)| (Field::Number { field, value }, key_length + length))),
        1 => fixed(8),
        5 => fixed(4),
        2 => {
            let Some((value, own)) = number()? else {
                return Ok(None);
            };
            let length =
                u32::try_from(value).map_err(|_| Undecodable(format!("field {field} is too long")))?;
            let length = length as usize;
            Ok(Some((Field::Bytes { field, length }, key_length + own)))
        }
        kind => Err(Undecodable(format!("field {field} has the wire type {kind}"))),
    }
}

/// A number in as many bytes as it needs, and how many these are; nothing if its end is not here.
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Undecodable> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(LONGEST_VARINT) {
        if index + 1 == LONGEST_VARINT && *byte > 1 {
            return Err(Undecodable("a number has more than 64 bits".into()));
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    Ok(None)
}
