//! Flags of klog, the logger of Go programs around Kubernetes.

use super::{Flag, Kind};

/// Flags of the logger that installations pass, and that decide nothing here.
pub const LOGGING: &[Flag] = &[
    Flag {
        help: "accepted and ignored: the log goes to stderr",
        ..ignored("logtostderr", Kind::Bool, "true")
    },
    ignored("alsologtostderr", Kind::Bool, "false"),
    ignored("stderrthreshold", Kind::String, "2"),
    ignored("log_dir", Kind::String, ""),
    ignored("log_file", Kind::String, ""),
    ignored("log_file_max_size", Kind::Int, "1800"),
    ignored("log_backtrace_at", Kind::String, ":0"),
    ignored("add_dir_header", Kind::Bool, "false"),
    ignored("one_output", Kind::Bool, "false"),
    ignored("skip_headers", Kind::Bool, "false"),
    ignored("skip_log_headers", Kind::Bool, "false"),
    ignored("log-flush-frequency", Kind::Duration, "5s"),
    ignored("log-json-info-buffer-size", Kind::String, "0"),
    ignored("log-json-split-stream", Kind::Bool, "false"),
    ignored("log-text-info-buffer-size", Kind::String, "0"),
    ignored("log-text-split-stream", Kind::Bool, "false"),
];

const fn ignored(name: &'static str, kind: Kind, default: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        default,
        kind,
        help: "accepted and ignored",
    }
}
