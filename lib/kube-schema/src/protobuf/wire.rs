//! The wire format: tags, varints and lengths.

use super::WireError;

/// A value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// A 32-bit number or a group, which no Kubernetes type has: only its wire type.
    Other(u8),
}

impl Wire<'_> {
    /// The error of a field that holds something else.
    pub(super) fn unfit(self, field: &'static str) -> WireError {
        let found = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Other(kind) => kind,
        };
        WireError::WrongType { field, found }
    }
}

/// A cursor over the fields of one message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field's number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        let wire = match kind {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(
                    bytes
                        .iter()
                        .rev()
                        .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
                )
            }
            2 => {
                let length = usize::try_from(self.varint()?);
                Wire::Bytes(self.take(
                    length.map_err(|_| WireError::Malformed("negative length found during unmarshaling"))?,
                )?)
            }
            3 => {
                self.skip_group()?;
                Wire::Other(3)
            }
            5 => {
                self.take(4)?;
                Wire::Other(5)
            }
            4 => return Err(WireError::Malformed("wiretype end group for non-group")),
            _ => return Err(WireError::Malformed("illegal wireType")),
        };
        Ok(Some((number, wire)))
    }

    fn tag(&mut self) -> Result<(u32, u64), WireError> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok((number, tag & 7)),
            _ => Err(WireError::Malformed("illegal tag")),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(WireError::Cut)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::Malformed("integer overflow"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Groups nest; only their depth needs to be known to leave them.
    fn skip_group(&mut self) -> Result<(), WireError> {
        let mut depth = 1_u64;
        while depth > 0 {
            match self.tag()?.1 {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => {
                    let length = usize::try_from(self.varint()?);
                    self.take(
                        length
                            .map_err(|_| WireError::Malformed("negative length found during unmarshaling"))?,
                    )?;
                }
                3 => depth += 1,
                4 => depth -= 1,
                5 => drop(self.take(4)?),
                _ => return Err(WireError::Malformed("illegal wireType")),
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
