//! PodProbeMarkers and NodePodProbes. `world` is a small cluster with agents that report when a test says so.

mod nodepodprobe;
mod podprobemarker;
mod properties;
mod takeover;
mod world;
