//! How long before its end a serving certificate is replaced.

use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;

/// How long a new serving certificate is valid: ten years.
pub const LIFETIME: Duration = Duration::from_secs(10 * 365 * DAY);

/// The lead time when nothing usable is configured: six months of 30 days.
pub const DEFAULT_LEAD: Duration = Duration::from_secs(6 * 30 * DAY);

/// Reads `CERTS_RENEW_BEFORE`: an integer followed by `d` (day), `m` (30 days) or `y` (365 days).
///
/// Unusable and non-positive text gives [`DEFAULT_LEAD`]. The result is capped at half of [`LIFETIME`]: with a longer
/// lead a certificate would be due for renewal as soon as it is created, and every reconcile would create another one.
pub fn lead_from_text(text: &str) -> Duration {
    parse(text).unwrap_or(DEFAULT_LEAD).min(LIFETIME / 2)
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.chars();
    let days = match rest.next_back()? {
        'd' => 1,
        'm' => 30,
        'y' => 365,
        _ => return None,
    };
    let count: i64 = rest.as_str().parse().ok()?;
    let count = u64::try_from(count).ok().filter(|count| *count > 0)?;
    Some(Duration::from_secs(count.saturating_mul(days * DAY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_its_days() {
        assert_eq!(lead_from_text("3d"), Duration::from_secs(3 * DAY));
        assert_eq!(lead_from_text("2m"), Duration::from_secs(60 * DAY));
        assert_eq!(lead_from_text("1y"), Duration::from_secs(365 * DAY));
    }

    #[test]
    fn unusable_text_gives_the_default() {
        for text in [
            "",
            "d",
            "0d",
            "-1d",
            "5",
            "5h",
            "1.5d",
            " 1d",
            "99999999999999999999d",
            "1é",
        ] {
            assert_eq!(lead_from_text(text), DEFAULT_LEAD, "{text:?}");
        }
    }

    #[test]
    fn a_new_certificate_is_never_due_at_once() {
        assert_eq!(lead_from_text("20y"), LIFETIME / 2);
        assert_eq!(lead_from_text("9223372036854775807y"), LIFETIME / 2);
    }
}
