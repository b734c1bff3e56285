//! The objects that a command line names, as kubectl takes them.

use anyhow::{bail, ensure};
use clap::Args;

use crate::resources::{Resource, alike, all, named};

/// Which objects.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Selection {
    /// TYPE/NAME …, TYPE NAME …, or TYPE for all objects of a type, such as `clone/web`, `clone web api` or
    /// `clone`.
    #[arg(value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Only objects with these labels, such as app=web,tier!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Objects in all namespaces.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// What one argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One object of one of these resources: the first that has it.
    One(Vec<Resource>, String),
    /// All objects of a resource that the selector and the namespace let through.
    All(Resource),
}

impl Selection {
    /// What is named. A second argument that is no target is what comes with the first, such as a pod.
    ///
    /// # Errors
    /// If nothing is named, or something that cannot be what `what` says.
    pub fn wanted(
        &self,
        what: &str,
        accepts: impl Fn(&Resource) -> bool,
    ) -> anyhow::Result<(Vec<Wanted>, Option<String>)> {
        let find = |name: &str| find(name, what, &accepts);
        let [first, rest @ ..] = self.targets.as_slice() else {
            bail!("name what is to be {what}, as TYPE/NAME; see --help");
        };
        let is_by_label = self.selector.is_some() || self.all_namespaces;
        if !first.contains('/') {
            return Ok((of_types(first, rest, is_by_label, &find)?, None));
        }
        ensure!(
            !is_by_label,
            "--selector and --all-namespaces are for a TYPE without names"
        );
        let one = |target: &String| -> anyhow::Result<Wanted> {
            let Some((kind, name)) = target.split_once('/') else {
                bail!("write TYPE/NAME for each object, or TYPE NAME …, not both: {target}");
            };
            ensure!(
                !name.is_empty() && !name.contains('/'),
                "{target} is not TYPE/NAME"
            );
            Ok(Wanted::One(find(kind)?, name.to_owned()))
        };
        if let [with] = rest
            && !is_target(with)
        {
            return Ok((vec![one(first)?], Some(with.clone())));
        }
        let all = self.targets.iter().map(one).collect::<anyhow::Result<_>>()?;
        Ok((all, None))
    }
}

/// All objects of types, or those of these names.
fn of_types(
    types: &str,
    names: &[String],
    is_by_label: bool,
    find: &dyn Fn(&str) -> anyhow::Result<Vec<Resource>>,
) -> anyhow::Result<Vec<Wanted>> {
    if let Some(mixed) = names.iter().find(|name| name.contains('/')) {
        bail!("write TYPE/NAME for each object, or TYPE NAME …, not both: {mixed}");
    }
    ensure!(
        names.is_empty() || !is_by_label,
        "--selector and --all-namespaces are for a TYPE without names"
    );
    let mut all = Vec::new();
    for kind in types.split(',') {
        let found = find(kind)?;
        if names.is_empty() {
            all.extend(found.first().copied().map(Wanted::All));
        }
        all.extend(names.iter().map(|name| Wanted::One(found.clone(), name.clone())));
    }
    Ok(all)
}

/// Is it TYPE/NAME of a type that exists?
fn is_target(argument: &str) -> bool {
    let kind = argument.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| !named(kind).is_empty())
}

fn find(name: &str, what: &str, accepts: &dyn Fn(&Resource) -> bool) -> anyhow::Result<Vec<Resource>> {
    let known = named(name);
    let found: Vec<Resource> = known.iter().copied().filter(|one| accepts(one)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let accepted = all().filter(|resource| accepts(resource));
    if let Some(other) = known.first() {
        let accepted: Vec<String> = accepted.map(|resource| resource.short_name()).collect();
        bail!(
            "a {} cannot be {what}; these can: {}",
            other.kind,
            accepted.join(", ")
        );
    }
    let names: Vec<String> = accepted.flat_map(|resource| resource.names()).collect();
    let alone = name.split('.').next().unwrap_or_default();
    match alike(alone, names.iter().map(String::as_str)) {
        Some(meant) => bail!("there is no resource type {name}; did you mean {meant}?"),
        None => bail!("there is no resource type {name} that can be {what}; see --help"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(arguments: &[&str]) -> Result<(Vec<Wanted>, Option<String>), String> {
        let selection = Selection {
            targets: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            ..Selection::default()
        };
        let found = selection.wanted("explained", |resource| resource.kind != "NodeImage");
        found.map_err(|error| error.to_string())
    }

    fn texts(arguments: &[&str]) -> Vec<String> {
        let (all, with) = wanted(arguments).unwrap();
        let text = |wanted: &Wanted| match wanted {
            Wanted::One(resources, name) => format!("{} {name}", resources[0].plural),
            Wanted::All(resource) => format!("all {}", resource.plural),
        };
        let with = with.map(|with| format!("with {with}"));
        all.iter().map(text).chain(with).collect()
    }

    #[test]
    fn targets_are_written_as_for_kubectl() {
        assert_eq!(texts(&["clone/web"]), ["clonesets web"]);
        assert_eq!(
            texts(&["clone", "web", "api"]),
            ["clonesets web", "clonesets api"]
        );
        assert_eq!(
            texts(&["CloneSet/web", "asts/db"]),
            ["clonesets web", "statefulsets db"]
        );
        assert_eq!(texts(&["clonesets.apps.kruise.io/web"]), ["clonesets web"]);
        assert_eq!(texts(&["clone,asts"]), ["all clonesets", "all statefulsets"]);
    }

    #[test]
    fn a_second_argument_that_is_no_target_comes_with_the_first() {
        assert_eq!(
            texts(&["clone/web", "web-x7x7v"]),
            ["clonesets web", "with web-x7x7v"]
        );
        assert_eq!(
            texts(&["sidecarset/logs", "shop/web-0"]),
            ["sidecarsets logs", "with shop/web-0"]
        );
        assert_eq!(
            texts(&["clone/web", "pod/web-0"]),
            ["clonesets web", "pods web-0"]
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_can() {
        let error = |arguments: &[&str]| wanted(arguments).unwrap_err();
        assert_eq!(
            error(&[]),
            "name what is to be explained, as TYPE/NAME; see --help"
        );
        assert_eq!(
            error(&["clonset/web"]),
            "there is no resource type clonset; did you mean cloneset?"
        );
        assert!(error(&["xyzzy/web"]).contains("no resource type xyzzy"));
        let other = error(&["nodeimage/n1"]);
        assert!(
            other.starts_with("a NodeImage cannot be explained; these can: ") && other.contains(" clone, "),
            "{other}"
        );
        for mixed in [&["clone", "web", "asts/db"][..], &["clone/web", "api", "db"]] {
            assert!(error(mixed).contains("not both"), "{mixed:?}");
        }
        assert_eq!(error(&["clone/"]), "clone/ is not TYPE/NAME");
    }

    #[test]
    fn labels_choose_among_all_and_not_among_names() {
        let selection = |targets: &[&str]| Selection {
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            selector: Some("app=web".into()),
            all_namespaces: false,
        };
        assert!(selection(&["clone"]).wanted("explained", |_| true).is_ok());
        for named in [&["clone/web"][..], &["clone", "web"]] {
            assert!(selection(named).wanted("explained", |_| true).is_err());
        }
    }
}
