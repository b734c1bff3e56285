//! The log: to stderr, as text or as one JSON object a line. The log of an embedded manager is written to a file.
//!
//! Lines about an object have the fields `controller`, `namespace` and `name`. The verbosity of each controller can
//! be changed while the manager runs ([`set`]).

use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use anyhow::{Context, bail};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer as _, fmt,
    layer::{Context as LayerContext, Filter, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

/// The field that names the controller of a line.
const CONTROLLER: &str = "controller";

/// How the names of the crates begin that have something to log.
const OUR_CRATES: &str = "kruise";

/// The levels of the log of this process.
static LEVELS: OnceLock<Shared> = OnceLock::new();

/// Which lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Levels {
    default: LevelFilter,
    /// Patterns of names of controllers. The first that matches counts.
    of: Vec<(String, LevelFilter)>,
}

impl Levels {
    /// Reads `NAME=NUMBER,…`. In a name `*` matches any text. Lines of no controller have an empty name.
    fn new(verbosity: i64, of: &str) -> anyhow::Result<Self> {
        let pairs = of.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let of = pairs.map(|pair| {
            let (name, number) = pair
                .split_once('=')
                .with_context(|| format!("{pair:?} must be NAME=NUMBER"))?;
            let number = number.trim();
            let verbosity = number
                .parse()
                .with_context(|| format!("{number:?} is no number"))?;
            Ok((name.trim().to_owned(), level(verbosity)))
        });
        Ok(Self {
            default: level(verbosity),
            of: of.collect::<anyhow::Result<_>>()?,
        })
    }

    fn most(&self) -> LevelFilter {
        let all = self.of.iter().map(|(_, level)| *level);
        all.fold(self.default, LevelFilter::max)
    }

    /// The greatest level of lines from a crate. Details of libraries, such as frames of connections, are logged
    /// with everything else only.
    fn most_of(&self, target: &str) -> LevelFilter {
        match self.most() {
            LevelFilter::TRACE => LevelFilter::TRACE,
            most if target.starts_with(OUR_CRATES) => most,
            most => most.min(LevelFilter::INFO),
        }
    }

    /// The level of the lines of a controller.
    fn of(&self, controller: &str) -> LevelFilter {
        let mut matching = self.of.iter().filter(|(name, _)| matches(name, controller));
        matching.next().map_or(self.default, |(_, level)| *level)
    }
}

/// Levels that can be replaced while lines are written.
#[derive(Clone, Debug)]
struct Shared(Arc<RwLock<Levels>>);

impl Shared {
    fn new(levels: Levels) -> Self {
        Self(Arc::new(RwLock::new(levels)))
    }

    fn read(&self) -> RwLockReadGuard<'_, Levels> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, levels: Levels) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = levels;
        // The greatest level is cached.
        tracing::callsite::rebuild_interest_cache();
    }
}

impl<S: Subscriber> Filter<S> for Shared {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &LayerContext<'_, S>) -> bool {
        *metadata.level() <= self.read().most_of(metadata.target())
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &LayerContext<'_, S>) -> bool {
        let levels = self.read();
        if levels.of.is_empty() {
            return true;
        }
        let mut named = Named(String::new());
        event.record(&mut named);
        *event.metadata().level() <= levels.of(&named.0)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.read().most())
    }
}

/// Reads the name of the controller from a line.
struct Named(String);

impl Visit for Named {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == CONTROLLER {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

/// Verbosity 0 to 3 shows information, 4 and 5 details, more everything.
fn level(verbosity: i64) -> LevelFilter {
    match verbosity {
        ..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    }
}

/// Whether a pattern matches; `*` in it matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| rest.get(at..).is_some_and(|rest| matches(after, rest)))
        }),
    }
}

/// Starts logging with this verbosity, and with others for some controllers.
pub fn start(format: &str, verbosity: i64, of: &str) -> anyhow::Result<()> {
    let levels = Shared::new(Levels::new(verbosity, of).context("--vmodule")?);
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let layer = match format {
        "text" | "" => layer.boxed(),
        "json" => layer.json().flatten_event(true).boxed(),
        other => bail!("--logging-format is {other:?}; it may be text or json"),
    };
    let filtered = layer.with_filter(levels.clone());
    tracing_subscriber::registry().with(filtered).init();
    // A process starts its log once.
    let _ = LEVELS.set(levels);
    Ok(())
}

/// Changes the verbosity of controllers, as in [`start`], until the next change. Nothing changes if the text cannot
/// be read.
pub fn set(verbosity: i64, of: &str) -> anyhow::Result<()> {
    let levels = Levels::new(verbosity, of)?;
    if let Some(shared) = LEVELS.get() {
        shared.replace(levels);
    }
    Ok(())
}

/// Starts logging to a file, as text.
pub fn to_file(file: std::fs::File) {
    fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(std::sync::Arc::new(file))
        .with_ansi(false)
        .init();
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(of: &str, then: &str) -> Vec<serde_json::Value> {
        let written = Written::default();
        let writer = written.clone();
        let shared = Shared::new(Levels::new(0, of).unwrap());
        let layer = fmt::layer().json().flatten_event(true);
        let layer = layer
            .with_writer(move || writer.clone())
            .with_filter(shared.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let log = |turn: i32| {
                tracing::debug!(
                    controller = "cloneset-controller",
                    namespace = "shop",
                    name = "web",
                    turn,
                    "a"
                );
                tracing::debug!(controller = "sidecarset-controller", turn, "b");
                tracing::info!(turn, "c");
                tracing::debug!(turn, "d");
            };
            log(1);
            shared.replace(Levels::new(0, then).unwrap());
            log(2);
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn each_controller_has_a_verbosity_of_its_own_which_changes_while_it_runs() {
        let lines = lines("cloneset*=4", "sidecarset-controller=4");
        let seen: Vec<(i64, &str)> = lines
            .iter()
            .map(|line| (line["turn"].as_i64().unwrap(), line["message"].as_str().unwrap()))
            .collect();
        assert_eq!(seen, [(1, "a"), (1, "c"), (2, "b"), (2, "c")]);
        let first = &lines[0];
        assert_eq!(
            (&first["namespace"], &first["name"]),
            (&"shop".into(), &"web".into())
        );
    }

    #[test]
    fn details_of_libraries_are_logged_with_everything_else_only() {
        let most = |verbosity: i64, target: &str| Levels::new(verbosity, "").unwrap().most_of(target);
        assert_eq!(most(4, "kruise_runtime::worker"), LevelFilter::DEBUG);
        assert_eq!(most(4, "h2::codec::framed_read"), LevelFilter::INFO);
        assert_eq!(most(6, "h2::codec::framed_read"), LevelFilter::TRACE);
        assert_eq!(most(0, "kube_client::client"), LevelFilter::INFO);
    }

    #[test]
    fn the_first_pattern_counts_and_lines_of_no_controller_have_an_empty_name() {
        let levels = Levels::new(0, "cloneset-controller=0, *=6").unwrap();
        assert_eq!(levels.of("cloneset-controller"), LevelFilter::INFO);
        assert_eq!(levels.of("statefulset-controller"), LevelFilter::TRACE);
        assert_eq!(levels.of(""), LevelFilter::TRACE);
        for wrong in ["cloneset-controller", "a=b"] {
            assert!(Levels::new(0, wrong).is_err(), "{wrong}");
        }
    }
}
