//! Metrics of the process under the names of Prometheus' standard process collector.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// Clock ticks a second in `/proc`: the kernel's `USER_HZ`, the same on every architecture we build for.
const TICKS: f64 = 100.0;

/// Reads `/proc` at each scrape. What cannot be read is left out.
#[derive(Debug)]
pub struct Process;

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    /// User and system time, in seconds.
    cpu: Option<f64>,
    /// Seconds since the Unix epoch.
    started: Option<f64>,
    /// Bytes of address space.
    virtual_memory: Option<f64>,
    /// Bytes in memory.
    resident_memory: Option<f64>,
    /// Open file descriptors.
    open_files: Option<f64>,
    /// The soft limit of open file descriptors; none if unlimited.
    most_files: Option<f64>,
}

impl Reading {
    fn take() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let files = fs::read_dir("/proc/self/fd").map(Iterator::count);
        Self {
            // The directory itself is open while it is read.
            open_files: files.ok().map(|count| count.saturating_sub(1) as f64),
            ..Self::parse(
                &read("/proc/self/stat"),
                &read("/proc/self/status"),
                &read("/proc/self/limits"),
                &read("/proc/stat"),
            )
        }
    }

    /// From the texts of these files; see proc(5).
    fn parse(stat: &str, status: &str, limits: &str, kernel: &str) -> Self {
        // The name in parentheses may hold spaces and parentheses; what follows begins with field 3.
        let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
        let booted = number_after(kernel, "btime");
        Self {
            cpu: field(14)
                .zip(field(15))
                .map(|(user, system)| (user + system) / TICKS),
            started: booted
                .zip(field(22))
                .map(|(booted, ticks)| booted + ticks / TICKS),
            virtual_memory: field(23),
            resident_memory: number_after(status, "VmRSS:").map(|kibibytes| kibibytes * 1024.0),
            open_files: None,
            most_files: number_after(limits, "Max open files"),
        }
    }
}

/// The number that follows `label` at the start of a line.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let reading = Reading::take();
        if let Some(seconds) = reading.cpu {
            let counter = ConstCounter::new(seconds);
            counter.encode(encoder.encode_descriptor(
                "process_cpu_seconds",
                "User and system CPU time",
                None,
                counter.metric_type(),
            )?)?;
        }
        for (name, help, value) in [
            (
                "process_start_time_seconds",
                "Start, in Unix time",
                reading.started,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space",
                reading.virtual_memory,
            ),
            ("process_resident_memory_bytes", "Memory", reading.resident_memory),
            ("process_open_fds", "Open file descriptors", reading.open_files),
            (
                "process_max_fds",
                "Most open file descriptors",
                reading.most_files,
            ),
        ] {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Reading;

    #[test]
    fn the_files_of_proc_are_read_by_their_layout() {
        let stat =
            "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 8 9 20 0 5 0 1200 4096000 77 18446744073709551615";
        let status = "Name:\tkruise\nVmHWM:\t  99 kB\nVmRSS:\t  10 kB\n";
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max open files            1024                 4096                 files\n";
        let kernel = "cpu  1 2 3\nbtime 1000\n";
        let reading = Reading::parse(stat, status, limits, kernel);
        let expected = Reading {
            cpu: Some(3.0),
            started: Some(1012.0),
            virtual_memory: Some(4_096_000.0),
            resident_memory: Some(10_240.0),
            open_files: None,
            most_files: Some(1024.0),
        };
        assert_eq!(reading, expected);
    }

    #[test]
    fn what_is_missing_or_unlimited_is_left_out() {
        let unlimited = "Max open files            unlimited            unlimited            files\n";
        assert_eq!(Reading::parse("", "", unlimited, ""), Reading::default());
    }
}
