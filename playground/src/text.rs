//! Texts for the reader.

use std::fmt::Write as _;
use std::path::Path;

use kruise_tour::act::quoted;

use super::Options;
use super::cluster::ZONES;
use super::run::Playground;
use super::times::InWords;

/// Changes the image of the tour's CloneSet. kubectl sets images of built-in kinds only.
const IMAGE: &str = r#"[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:5"}]"#;

/// What this is, and where.
pub(super) fn greeting(playground: &Playground, options: &Options) -> String {
    let nodes = match &options.load {
        Some(file) => format!("the nodes of {}", file.display()),
        None if options.nodes == 1 => "1 simulated node".to_owned(),
        None => format!(
            "{} simulated nodes in {} zones",
            options.nodes,
            ZONES.len().min(options.nodes.into())
        ),
    };
    let log = if options.verbose {
        "logs to standard error".to_owned()
    } else {
        format!("logs to {}", playground.log().display())
    };
    let agents = match options.agents {
        0 => "no node agents".to_owned(),
        most if options.load.is_none() && most >= options.nodes => "an agent on each node".to_owned(),
        most => format!("agents on at most {most} nodes"),
    };
    format!(
        "A playground: an embedded Kubernetes API, {nodes}, {agents}, and the manager with its webhooks,\n\
         in one process, up after {:.2} s. Nothing is really pulled or run. Simulated times:\n\
         {}.\n\n\
         API         http://{}, plain HTTP, open to everybody on this machine and to nobody else\n\
         kubeconfig  {}\n\
         manager     {log}, metrics on http://{}/metrics",
        playground.started.elapsed().as_secs_f64(),
        InWords(&playground.timings),
        playground.api,
        playground.kubeconfig().display(),
        playground.metrics(),
    )
}

/// What to try, and how it ends.
pub(super) fn what_next(playground: &Playground, options: &Options) -> String {
    let manifest = shown(&playground.manifest());
    let kruise = std::env::current_exe().map_or_else(|_| "kruise".to_owned(), |path| shown(&path));
    let mut text = format!(
        "\nTo try next, in another terminal (kubectl is not part of this):\n  \
         export KUBECONFIG={}\n",
        shown(&playground.kubeconfig())
    );
    let first = if options.demo {
        "kubectl scale clone web --replicas=10".to_owned()
    } else {
        format!("kubectl apply -f {manifest}")
    };
    for line in [
        "kubectl get nodes --label-columns topology.kubernetes.io/zone".to_owned(),
        first,
        "kubectl get clone,pods -o wide".to_owned(),
        format!("kubectl patch clone web --type=json -p {}", quoted(IMAGE)),
        "kubectl get pods --watch".to_owned(),
        format!("{kruise} explain clone/web"),
    ] {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "  {line}");
    }
    text.push_str("\nThe playground stays up until Ctrl-C, which stops everything and removes its files.");
    text
}

/// A path as a shell reads it back.
fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}
