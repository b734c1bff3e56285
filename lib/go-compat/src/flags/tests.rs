use jiff::SignedDuration;

use super::{Flag, FlagSet, Kind};

const FLAGS: FlagSet = FlagSet::new(&[
    Flag {
        name: "metrics-addr",
        short: None,
        default: ":8080",
        kind: Kind::String,
        help: "Address of metrics.",
    },
    Flag {
        name: "leader-elect",
        short: None,
        default: "true",
        kind: Kind::Bool,
        help: "Elect a leader.",
    },
    Flag {
        name: "dry",
        short: Some('d'),
        default: "false",
        kind: Kind::Bool,
        help: "Write nothing.",
    },
    Flag {
        name: "v",
        short: Some('v'),
        default: "0",
        kind: Kind::Int,
        help: "Log level.\nHigher is more.",
    },
    Flag {
        name: "qps",
        short: None,
        default: "30",
        kind: Kind::Float,
        help: "Requests a second.",
    },
    Flag {
        name: "lease",
        short: None,
        default: "15s",
        kind: Kind::Duration,
        help: "Length of the lease.",
    },
]);

fn error(line: &[&str]) -> String {
    FLAGS.parse(line.iter().copied()).unwrap_err().message
}

#[test]
fn defaults_hold_until_set() {
    let values = FLAGS.parse(Vec::<String>::new()).unwrap();
    assert_eq!(values.get_string("metrics-addr"), ":8080");
    assert!(values.get_bool("leader-elect"));
    assert_eq!(values.get_int("v"), 0);
    assert!((values.get_float("qps") - 30.0).abs() < f64::EPSILON);
    assert_eq!(values.get_duration("lease"), SignedDuration::from_secs(15));
    assert!(!values.is_set("v"));
}

#[test]
fn every_form_of_a_value() {
    let values = FLAGS
        .parse([
            "--metrics-addr",
            ":1",
            "--leader-elect=false",
            "--lease=1m",
            "-dv=4",
        ])
        .unwrap();
    assert_eq!(values.get_string("metrics-addr"), ":1");
    assert!(!values.get_bool("leader-elect"));
    assert_eq!(values.get_duration("lease"), SignedDuration::from_secs(60));
    assert!(values.get_bool("dry") && values.is_set("dry"));
    for line in [
        &["-v=4"][..],
        &["-v", "4"],
        &["-v4"],
        &["--v=4"],
        &["--v", "4"],
        &["-v", "1", "--v=4"],
    ] {
        assert_eq!(
            FLAGS.parse(line.iter().copied()).unwrap().get_int("v"),
            4,
            "{line:?}"
        );
    }
}

#[test]
fn bare_booleans_take_no_word() {
    let values = FLAGS.parse(["--dry", "false", "--", "--v=4"]).unwrap();
    assert!(values.get_bool("dry"));
    assert_eq!(values.arguments(), ["false", "--v=4"]);
    assert_eq!(values.get_int("v"), 0);
}

#[test]
fn values_may_look_like_flags_or_be_empty() {
    let values = FLAGS.parse(["--metrics-addr", "--dry", "-v", "-3"]).unwrap();
    assert_eq!(values.get_string("metrics-addr"), "--dry");
    assert_eq!(values.get_int("v"), -3);
    assert!(
        FLAGS
            .parse(["--metrics-addr="])
            .unwrap()
            .get_string("metrics-addr")
            .is_empty()
    );
}

#[test]
fn errors_name_the_flag_and_carry_the_usage() {
    assert_eq!(error(&["--nope=1"]), "unknown flag: --nope");
    assert_eq!(
        error(&["-metrics-addr=:1"]),
        "unknown shorthand flag: 'm' in -metrics-addr=:1"
    );
    assert_eq!(
        error(&["--metrics-addr"]),
        "flag needs an argument: --metrics-addr"
    );
    assert_eq!(error(&["-v"]), "flag needs an argument: 'v' in -v");
    assert_eq!(
        error(&["-v=x"]),
        "invalid argument \"x\" for \"-v, --v\" flag: not an integer"
    );
    assert_eq!(
        error(&["--lease", "15"]),
        "invalid argument \"15\" for \"--lease\" flag: not a duration"
    );
    assert_eq!(
        error(&["--dry=maybe"]),
        "invalid argument \"maybe\" for \"-d, --dry\" flag: not a boolean"
    );
    assert_eq!(error(&["---dry"]), "bad flag syntax: ---dry");
    assert_eq!(FLAGS.parse(["--nope"]).unwrap_err().usage, FLAGS.usage());
    assert!(FLAGS.parse(["--help"]).unwrap_err().help && FLAGS.parse(["-h"]).unwrap_err().help);
}

#[test]
fn usage_is_sorted_and_aligned() {
    assert_eq!(
        FLAGS.usage(),
        "  -d, --dry                   Write nothing.
      --leader-elect          Elect a leader. (default true)
      --lease duration        Length of the lease. (default 15s)
      --metrics-addr string   Address of metrics. (default \":8080\")
      --qps float             Requests a second. (default 30)
  -v, --v int                 Log level.
                              Higher is more.
"
    );
}
