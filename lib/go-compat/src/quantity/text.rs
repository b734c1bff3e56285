//! Quantity to text.

use super::{Format, Quantity};

/// The canonical text: no fraction, and the largest suffix that needs none.
pub(super) fn canonical(quantity: &Quantity) -> String {
    if quantity.is_zero() {
        return "0".to_owned();
    }
    match quantity.format {
        Format::Binary => match whole(quantity) {
            // below one Ki, a decimal reads better; a fraction has no binary spelling
            Some(value) if value.unsigned_abs() >= 1024 => binary(value),
            _ => decimal(quantity, Format::Decimal),
        },
        format => decimal(quantity, format),
    }
}

fn whole(quantity: &Quantity) -> Option<i128> {
    let (mantissa, exponent) = quantity.stripped();
    mantissa.checked_mul(10_i128.checked_pow(u32::try_from(exponent).ok()?)?)
}

fn binary(mut value: i128) -> String {
    let mut suffix = "";
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if value % 1024 != 0 {
            break;
        }
        value /= 1024;
        suffix = next;
    }
    format!("{value}{suffix}")
}

fn decimal(quantity: &Quantity, format: Format) -> String {
    let (mantissa, exponent) = quantity.stripped();
    let shift = exponent.rem_euclid(3);
    let exponent = exponent - shift;
    // text, not arithmetic: 38 digits and two zeros may not fit the integer
    let zeros = "0".repeat(usize::try_from(shift).unwrap_or_default());
    let suffix = match (format, exponent) {
        (_, 0) => "",
        (Format::Exponent, _) => return format!("{mantissa}{zeros}e{exponent}"),
        (_, -9) => "n",
        (_, -6) => "u",
        (_, -3) => "m",
        (_, 3) => "k",
        (_, 6) => "M",
        (_, 9) => "G",
        (_, 12) => "T",
        (_, 15) => "P",
        (_, 18) => "E",
        // Go has no suffix here and would write the bare mantissa, another amount
        _ => return format!("{mantissa}{zeros}e{exponent}"),
    };
    format!("{mantissa}{zeros}{suffix}")
}
