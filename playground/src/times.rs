//! How long simulated things take: options over honest defaults.

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use jiff::SignedDuration;
use kruise_sim::{DEFAULT_STAGES, Timings, runtime};

/// Times, written as `800ms`, `1.5s` or `2m`.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Simulated times")]
#[group(id = "times")]
pub(super) struct Options {
    /// A twentieth of the times below, unless they are given.
    #[arg(long)]
    fast: bool,
    /// A pod's sandbox and network [default: 800ms].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    sandbox: Option<Duration>,
    /// Pull of an image of which the node has nothing [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    image_pull: Option<Duration>,
    /// Pull of an image if the node has another one of the same repository [default: 1.5s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    image_pull_shared: Option<Duration>,
    /// From image to running container [default: 400ms].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    container_start: Option<Duration>,
    /// From the signal to the end of a container [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    container_stop: Option<Duration>,
    /// How long an init container runs [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    init_run: Option<Duration>,
    /// How often it is tried to create a container that lacks a ConfigMap or Secret [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    config_retry: Option<Duration>,
    /// More stages, in kwok's format: see docs/stages.md.
    #[arg(long, value_name = "FILE")]
    stages: Option<PathBuf>,
}

/// From the deletion of an owner to that of its dependents.
const GARBAGE: Duration = Duration::from_secs(1);

fn duration(text: &str) -> Result<Duration, String> {
    let duration = go_compat::duration::parse(text).map_err(|error| error.to_string())?;
    Duration::try_from(duration).map_err(|_| "a time cannot be negative".to_owned())
}

impl Options {
    /// How nodes behave.
    pub(super) fn nodes(&self) -> anyhow::Result<kruise_sim::Options> {
        let mut stages = DEFAULT_STAGES.to_owned();
        if let Some(path) = &self.stages {
            let more = std::fs::read_to_string(path)
                .with_context(|| format!("--stages={} cannot be read", path.display()))?;
            stages = format!("{stages}\n---\n{more}");
        }
        let timings = self.timings();
        Ok(kruise_sim::Options {
            stages,
            runtime: self.runtime(&timings),
            timings,
            // What it stands for is done by agents.
            daemon: false,
            events: true,
            garbage: if self.fast { GARBAGE / 20 } else { GARBAGE },
            patience: SignedDuration::from_secs(40),
            jobs: &["Job", "BroadcastJob"],
        })
    }

    /// What agents pull takes as long as what kubelets pull.
    fn runtime(&self, timings: &Timings) -> runtime::Options {
        let base = runtime::Options::default();
        let pull = timings.image_pull.as_secs_f64().max(f64::MIN_POSITIVE);
        runtime::Options {
            // A number that is too large is the largest.
            bandwidth: (base.image_bytes as f64 / pull) as u64,
            resolve: if self.fast {
                base.resolve / 20
            } else {
                base.resolve
            },
            ..base
        }
    }

    fn timings(&self) -> Timings {
        let base = if self.fast {
            Timings::fast()
        } else {
            Timings::default()
        };
        Timings {
            sandbox: self.sandbox.unwrap_or(base.sandbox),
            image_pull: self.image_pull.unwrap_or(base.image_pull),
            image_pull_shared: self.image_pull_shared.unwrap_or(base.image_pull_shared),
            container_start: self.container_start.unwrap_or(base.container_start),
            container_stop: self.container_stop.unwrap_or(base.container_stop),
            init_run: self.init_run.unwrap_or(base.init_run),
            config_retry: self.config_retry.unwrap_or(base.config_retry),
        }
    }
}

/// In words, for the reader.
pub(super) struct InWords<'a>(pub(super) &'a Timings);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timings {
            sandbox,
            image_pull,
            image_pull_shared,
            container_start,
            container_stop,
            init_run,
            config_retry,
        } = self.0;
        write!(
            f,
            "sandbox {sandbox:?}, image {image_pull:?} ({image_pull_shared:?} where another one of its repository is),\n\
             start {container_start:?}, stop {container_stop:?}, init container {init_run:?}, retry without configuration {config_retry:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_given_counts_whatever_the_others_are() {
        let options = Options {
            fast: true,
            image_pull: Some(Duration::from_secs(9)),
            ..Options::default()
        };
        let timings = options.timings();
        assert_eq!(timings.image_pull, Duration::from_secs(9));
        assert_eq!(timings.sandbox, Timings::fast().sandbox);
        assert_eq!(Options::default().timings(), Timings::default());
    }

    #[test]
    fn agents_pull_an_image_in_the_time_that_kubelets_need() {
        for (image_pull, bandwidth) in [(None, 40_000_000), (Some(2), 100_000_000), (Some(0), u64::MAX)] {
            let options = Options {
                image_pull: image_pull.map(Duration::from_secs),
                ..Options::default()
            };
            assert_eq!(options.runtime(&options.timings()).bandwidth, bandwidth);
        }
    }

    #[test]
    fn times_are_written_as_in_go_and_not_negative() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("-1s").is_err() && duration("5").is_err());
    }

    #[test]
    fn the_help_names_the_defaults_that_count() {
        let Timings {
            sandbox,
            image_pull,
            image_pull_shared,
            container_start,
            container_stop,
            init_run,
            config_retry,
        } = Timings::default();
        let command = Options::augment_args(clap::Command::new("test"));
        for (name, value) in [
            ("sandbox", sandbox),
            ("image_pull", image_pull),
            ("image_pull_shared", image_pull_shared),
            ("container_start", container_start),
            ("container_stop", container_stop),
            ("init_run", init_run),
            ("config_retry", config_retry),
        ] {
            let argument = command.get_arguments().find(|one| one.get_id() == name).unwrap();
            let help = argument.get_help().unwrap().to_string();
            assert!(help.contains(&format!("[default: {value:?}]")), "{name}: {help}");
        }
    }
}
