//! The log: to stderr, as text or as one JSON object a line. The log of an embedded manager is written to a file.

use anyhow::bail;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;

/// Starts logging. Verbosity 0 to 3 shows information, 4 and 5 details, more everything.
pub fn start(format: &str, verbosity: i64) -> anyhow::Result<()> {
    let level = match verbosity {
        ..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    };
    let builder = fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    match format {
        "text" | "" => builder.init(),
        "json" => builder.json().flatten_event(true).init(),
        other => bail!("--logging-format is {other:?}; it may be text or json"),
    }
    Ok(())
}

/// Starts logging to a file, as text.
#[cfg(feature = "playground")]
pub fn to_file(file: std::fs::File) {
    fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(std::sync::Arc::new(file))
        .with_ansi(false)
        .init();
}
