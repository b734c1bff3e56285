//! How long the rest of a rollout takes, in words.

use std::{fmt::Write as _, time::Duration};

use kruise_plan_kit::outlook::{Course, Held, Outlook, Pace};

/// The section of an explanation, with further lines about what the rollout needs.
pub fn section(outlook: &Outlook, further: &[String]) -> String {
    let mut lines = vec![rest(outlook)];
    match &outlook.course {
        // The rest is all that is to be said.
        Course::Held(Held::Kept) => {}
        Course::Held(held) => lines.push(why(*held)),
        Course::Waves { pace: None, .. } => lines.push(unknown(outlook)),
        Course::Waves {
            count,
            pace: Some(pace),
        } => lines.extend(times(*count, pace)),
    }
    if outlook.course != Course::Held(Held::Kept) {
        lines.extend_from_slice(further);
    }
    let mut text = "\nOutlook:\n".to_owned();
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// How many pods are left.
fn rest(outlook: &Outlook) -> String {
    let Outlook {
        to_update,
        under_way,
        replaced,
        kept,
        kept_by,
        at_once,
        ..
    } = *outlook;
    let mut parts = Vec::new();
    if under_way > replaced {
        parts.push(format!(
            "{} updated and not available yet",
            pods(under_way - replaced, "is", "are")
        ));
    }
    if replaced > 0 {
        parts.push(format!("{} being replaced", pods(replaced, "is", "are")));
    }
    let subject = match (parts.is_empty(), to_update) {
        (true, _) => pods(to_update, "is", "are"),
        (false, 1) => "1 more is".to_owned(),
        (false, more) => format!("{more} more are"),
    };
    match &outlook.course {
        _ if to_update == 0 && parts.is_empty() => parts.push("nothing more is updated".to_owned()),
        _ if to_update == 0 => {}
        Course::Waves { count, .. } => {
            let waves = if *count == 1 { "wave" } else { "waves" };
            let within = if under_way > 0 { ", in all" } else { " in" };
            parts.push(format!(
                "{subject} to be updated{within} {count} {waves} of at most {at_once}"
            ));
        }
        Course::Held(_) => parts.push(format!("{subject} to be updated")),
    }
    if kept > 0 {
        let their = if kept == 1 { "its" } else { "their" };
        parts.push(format!(
            "{kept_by} keeps {} on {their} revision",
            pods(kept, "", "")
        ));
    }
    parts.join("; ")
}

/// `1 pod is`, `2 pods are`.
fn pods(count: usize, one: &str, many: &str) -> String {
    let (noun, verb) = if count == 1 { ("pod", one) } else { ("pods", many) };
    format!("{count} {noun} {verb}").trim_end().to_owned()
}

/// Why there are no times.
fn why(held: Held) -> String {
    let because = match held {
        Held::Kept => return String::new(),
        Held::Paused => "the update is paused".to_owned(),
        Held::OnDelete => "the strategy is OnDelete: a pod is updated when somebody deletes it".to_owned(),
        Held::NoRoom => "maxUnavailable and maxSurge let no pod be updated".to_owned(),
        Held::Hooks(count) => pods(
            count,
            "waits for its lifecycle hook",
            "wait for their lifecycle hooks",
        ),
        Held::Overstaying(count) => {
            let (stays, its) = (
                pods(count, "is", "are"),
                if count == 1 {
                    "it, or its"
                } else {
                    "them, or their"
                },
            );
            format!(
                "{stays} being deleted for longer than the grace period: a finalizer holds {its} node does not report"
            )
        }
        Held::Waits => "nothing is done now, for the reasons below".to_owned(),
    };
    format!("how long it takes is not known: {because}")
}

fn unknown(outlook: &Outlook) -> String {
    let none = if outlook.under_way > 0 {
        "none is available on this revision"
    } else {
        "none was updated to this revision"
    };
    format!("how long a pod takes is not known yet: {none}")
}

/// How long a pod takes, and the waves.
fn times(count: usize, pace: &Pace) -> Vec<String> {
    let of = match pace.of {
        1 => "the last one".to_owned(),
        of => format!("median of the last {of}"),
    };
    if pace.took.is_zero() {
        return vec![format!(
            "pods stay ready while they are updated ({of}): no time is lost"
        )];
    }
    let mut lines = vec![format!("a pod took {} to be ready ({of})", span(pace.took))];
    if let Some(line) = lines.first_mut() {
        if !pace.settles.is_zero() {
            let _ = write!(line, ", and minReadySeconds is {}", span(pace.settles));
        }
        if pace.end_not_counted {
            line.push_str("; the end of the pod before it is not counted");
        }
    }
    lines.push(match count {
        0 | 1 => format!("it ends {}", within(pace.first)),
        _ => format!(
            "wave 1 ends {}, the last one {}",
            within(pace.first),
            within(pace.last)
        ),
    });
    lines.extend(pace.overdue.map(|since| {
        format!(
            "a pod takes longer: it was updated {} ago, and is not available",
            span(since)
        )
    }));
    lines
}

fn within(time: Duration) -> String {
    if time.is_zero() {
        "about now".to_owned()
    } else {
        format!("in about {}", span(time))
    }
}

/// A time in its two largest units, rounded up to the smaller one of them.
fn span(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (large, small) = match seconds {
        0..60 => return format!("{seconds} s"),
        60..3600 => ((60, "min"), (1, "s")),
        3600..86_400 => ((3600, "h"), (60, "min")),
        _ => ((86_400, "d"), (3600, "h")),
    };
    let seconds = seconds.div_ceil(small.0) * small.0;
    let (whole, rest) = (seconds / large.0, seconds % large.0 / small.0);
    match rest {
        0 => format!("{whole} {}", large.1),
        rest => format!("{whole} {} {rest} {}", large.1, small.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn pace() -> Pace {
        Pace {
            took: seconds(12),
            of: 5,
            settles: seconds(30),
            first: seconds(42),
            last: seconds(168),
            overdue: None,
            end_not_counted: false,
        }
    }

    fn seven(course: Course) -> Outlook {
        Outlook {
            to_update: 7,
            under_way: 0,
            replaced: 0,
            kept: 0,
            kept_by: "the partition",
            at_once: 2,
            course,
        }
    }

    fn waves(pace: Pace) -> Course {
        Course::Waves {
            count: 4,
            pace: Some(pace),
        }
    }

    fn lines(outlook: &Outlook) -> Vec<String> {
        let text = section(outlook, &["further".to_owned()]);
        let lines = text.strip_prefix("\nOutlook:\n").unwrap().lines();
        lines
            .map(|line| line.strip_prefix("  ").unwrap().to_owned())
            .collect()
    }

    #[test]
    fn waves_are_counted_and_timed() {
        let expected = [
            "7 pods are to be updated in 4 waves of at most 2",
            "a pod took 12 s to be ready (median of the last 5), and minReadySeconds is 30 s",
            "wave 1 ends in about 42 s, the last one in about 2 min 48 s",
            "further",
        ];
        assert_eq!(lines(&seven(waves(pace()))), expected);
    }

    #[test]
    fn what_is_under_way_and_what_stays_is_said_too() {
        let outlook = Outlook {
            under_way: 1,
            kept: 3,
            ..seven(waves(pace()))
        };
        let expected = "1 pod is updated and not available yet; 7 more are to be updated, in all 4 waves of at most 2; \
                        the partition keeps 3 pods on their revision";
        assert_eq!(lines(&outlook)[0], expected);
        let replaced = Outlook {
            under_way: 3,
            replaced: 2,
            kept: 0,
            ..outlook
        };
        let expected = "1 pod is updated and not available yet; 2 pods are being replaced; \
                        7 more are to be updated, in all 4 waves of at most 2";
        assert_eq!(lines(&replaced)[0], expected);
        let last = Outlook {
            to_update: 0,
            under_way: 2,
            ..seven(Course::Waves {
                count: 1,
                pace: Some(Pace {
                    of: 1,
                    settles: Duration::ZERO,
                    first: Duration::ZERO,
                    overdue: Some(seconds(95)),
                    end_not_counted: true,
                    ..pace()
                }),
            })
        };
        let expected = [
            "2 pods are updated and not available yet",
            "a pod took 12 s to be ready (the last one); the end of the pod before it is not counted",
            "it ends about now",
            "a pod takes longer: it was updated 1 min 35 s ago, and is not available",
            "further",
        ];
        assert_eq!(lines(&last), expected);
    }

    #[test]
    fn there_is_no_time_where_nothing_says_how_long_a_pod_takes() {
        let unknown = Course::Waves { count: 4, pace: None };
        let outlook = seven(unknown);
        assert_eq!(
            lines(&outlook)[1],
            "how long a pod takes is not known yet: none was updated to this revision"
        );
        let begun = Outlook {
            under_way: 2,
            ..outlook
        };
        assert!(lines(&begun)[1].ends_with("none is available on this revision"));
        let ready = Pace {
            took: Duration::ZERO,
            ..pace()
        };
        let text = lines(&seven(waves(ready))).join("\n");
        assert!(
            text.contains("pods stay ready") && !text.contains("wave 1"),
            "{text}"
        );
    }

    #[test]
    fn what_holds_a_rollout_is_said_in_place_of_a_time() {
        for (held, expected) in [
            (Held::Paused, "the update is paused"),
            (
                Held::OnDelete,
                "the strategy is OnDelete: a pod is updated when somebody deletes it",
            ),
            (Held::NoRoom, "maxUnavailable and maxSurge let no pod be updated"),
            (Held::Hooks(1), "1 pod waits for its lifecycle hook"),
            (Held::Hooks(2), "2 pods wait for their lifecycle hooks"),
            (
                Held::Overstaying(1),
                "1 pod is being deleted for longer than the grace period: a finalizer holds it, or its node does not report",
            ),
            (Held::Waits, "nothing is done now, for the reasons below"),
        ] {
            let said = lines(&seven(Course::Held(held)));
            assert_eq!(said[0], "7 pods are to be updated");
            assert_eq!(said[1], format!("how long it takes is not known: {expected}"));
        }
        let kept = Outlook {
            to_update: 0,
            kept: 1,
            ..seven(Course::Held(Held::Kept))
        };
        assert_eq!(
            lines(&kept),
            ["nothing more is updated; the partition keeps 1 pod on its revision"]
        );
    }

    #[test]
    fn times_have_two_units_and_are_rounded_up() {
        for (millis, expected) in [
            (1, "1 s"),
            (42_000, "42 s"),
            (59_001, "1 min"),
            (168_000, "2 min 48 s"),
            (3_599_500, "1 h"),
            (3_661_000, "1 h 2 min"),
            (86_399_000, "24 h"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), expected, "{millis}");
        }
    }
}
