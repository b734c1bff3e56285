//! How far the clock of the API server is from ours, by the header `Date` of its responses.

use std::sync::Mutex;
use std::sync::PoisonError;

use http::{HeaderMap, header};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

/// A difference that is warned of. The lease of a leader is safe with less.
const TOLERATED: f64 = 20.0;
/// From one warning to the next.
const AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// What is known of the difference.
#[derive(Debug, Default)]
pub(super) struct Skew {
    warned: Mutex<Option<Timestamp>>,
}

/// A difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// So many seconds the server is ahead; behind, if below 0.
    pub(super) seconds: f64,
    /// It is to be warned of.
    pub(super) is_news: bool,
}

impl Skew {
    /// The difference that these headers show of a response to a request that was sent and received at these times
    /// of ours; `None` if they do not say. The server wrote the date in between, without the fraction of its
    /// second: as much is not counted.
    pub(super) fn of(&self, headers: &HeaderMap, sent: Timestamp, received: Timestamp) -> Option<Seen> {
        let date = headers.get(header::DATE)?.to_str().ok()?;
        let date = DateTimeParser::new().parse_timestamp(date).ok()?;
        let ahead = date.duration_since(received).as_secs_f64();
        let behind = sent.duration_since(date).as_secs_f64() - 1.0;
        let seconds = if ahead > 0.0 { ahead } else { 0.0 - behind.max(0.0) };
        let is_large = seconds.abs() > TOLERATED;
        Some(Seen {
            seconds,
            is_news: is_large && self.is_due(received),
        })
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = warned.is_none_or(|last| now.duration_since(last).abs() >= AGAIN);
        if is_due {
            *warned = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn headers(date: &str) -> HeaderMap {
        [(header::DATE, date.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_date_between_request_and_response_is_no_difference_and_further_ones_are() {
        let (sent, received) = (at("2026-02-02T10:00:00.5Z"), at("2026-02-02T10:00:03.5Z"));
        for (date, seconds, is_news) in [
            ("Mon, 02 Feb 2026 10:00:00 GMT", 0.0, false),
            ("Mon, 02 Feb 2026 10:00:03 GMT", 0.0, false),
            ("Mon, 02 Feb 2026 10:00:13 GMT", 9.5, false),
            ("Mon, 02 Feb 2026 10:00:24 GMT", 20.5, true),
            ("Mon, 02 Feb 2026 09:59:45 GMT", -14.5, false),
            ("Mon, 02 Feb 2026 09:59:39 GMT", -20.5, true),
            ("Mon, 02 Feb 2026 09:00:00 GMT", -3599.5, true),
        ] {
            let seen = Skew::default().of(&headers(date), sent, received);
            assert_eq!(seen, Some(Seen { seconds, is_news }), "{date}");
        }
        for date in ["", "soon", "2026-02-02T10:00:00Z"] {
            assert_eq!(Skew::default().of(&headers(date), sent, received), None, "{date}");
        }
        assert_eq!(Skew::default().of(&HeaderMap::new(), sent, received), None);
    }

    #[test]
    fn a_difference_is_warned_of_once_in_ten_minutes() {
        let skew = Skew::default();
        let is_news = |now: &str| {
            let seen = skew.of(&headers("Mon, 02 Feb 2026 12:00:00 GMT"), at(now), at(now));
            seen.unwrap().is_news
        };
        let times = ["10:00:00", "10:00:01", "10:09:59", "10:10:00", "10:10:01"];
        let news = times.map(|time| is_news(&format!("2026-02-02T{time}Z")));
        assert_eq!(news, [true, false, false, true, false]);
    }
}
