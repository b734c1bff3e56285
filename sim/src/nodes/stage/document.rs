//! The YAML of a stage. Members that are not listed here are refused by name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::jq::Query;
use super::selector::{Requirement, Selector, Test};
use super::template::Template;
use super::{Event, Finalizers, Kind, Next, Patch, Stage, StageError, Step};

const API_VERSION: &str = "kwok.x-k8s.io/v1alpha1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    resource_ref: ResourceRef,
    #[serde(default)]
    selector: SelectorSpec,
    #[serde(default)]
    weight: u64,
    #[serde(default)]
    delay: Delay,
    #[serde(default)]
    next: NextSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceRef {
    #[serde(default)]
    api_group: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SelectorSpec {
    #[serde(rename = "matchLabels")]
    labels: BTreeMap<String, String>,
    #[serde(rename = "matchAnnotations")]
    annotations: BTreeMap<String, String>,
    #[serde(rename = "matchExpressions")]
    expressions: Vec<ExpressionSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpressionSpec {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Delay {
    duration_milliseconds: u64,
    jitter_duration_milliseconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NextSpec {
    event: Option<EventSpec>,
    finalizers: Option<FinalizersSpec>,
    delete: bool,
    status_template: Option<String>,
    patches: Vec<PatchSpec>,
    step: Option<StepSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventSpec {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct FinalizersSpec {
    add: Vec<FinalizerItem>,
    remove: Vec<FinalizerItem>,
    empty: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FinalizerItem {
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PatchSpec {
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    root: String,
    template: String,
    #[serde(default, rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase", deny_unknown_fields)]
enum StepSpec {
    Initialize {},
    Sync {},
    Terminate {},
    TearDown {},
    Crash {
        container: String,
        exit_code: i64,
        reason: Option<String>,
    },
    Readiness {
        container: String,
        passes: bool,
    },
}

impl Document {
    pub(super) fn stage(self) -> Result<Stage, StageError> {
        let name = self.metadata.name.clone();
        self.understand()
            .map_err(|why| StageError::Unsupported { stage: name, why })
    }

    fn understand(self) -> Result<Stage, String> {
        if self.api_version != API_VERSION || self.kind != "Stage" {
            return Err(format!("a Stage of {API_VERSION} was expected"));
        }
        let reference = &self.spec.resource_ref;
        let kind = match (reference.api_group.as_str(), reference.kind.as_str()) {
            ("v1" | "", "Pod") => Kind::Pod,
            ("v1" | "", "Node") => Kind::Node,
            (group, kind) => return Err(format!("resourceRef: {kind} of {group:?} has no stages here")),
        };
        let jitter = self.spec.delay.jitter_duration_milliseconds;
        let next = self.spec.next.understand()?;
        check_step(kind, next.step.as_ref())?;
        Ok(Stage {
            name: self.metadata.name,
            kind,
            selector: self.spec.selector.understand()?,
            weight: self.spec.weight,
            delay: Duration::from_millis(self.spec.delay.duration_milliseconds),
            jitter: jitter.map(Duration::from_millis),
            next,
        })
    }
}

fn check_step(kind: Kind, step: Option<&Step>) -> Result<(), String> {
    match (kind, step) {
        (_, None) | (Kind::Node, Some(Step::Initialize)) => Ok(()),
        (Kind::Pod, Some(step)) if *step != Step::Initialize => Ok(()),
        (_, Some(step)) => Err(format!("next.step: {step:?} is for another kind of object")),
    }
}

impl SelectorSpec {
    fn understand(self) -> Result<Selector, String> {
        let expressions = self.expressions.into_iter().map(|one| {
            let query = Query::parse(&one.key).map_err(|why| format!("selector: {}: {why}", one.key))?;
            let test = match one.operator.as_str() {
                "In" => Test::In(one.values),
                "NotIn" => Test::NotIn(one.values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                other => return Err(format!("selector: operator {other} is not supported")),
            };
            Ok(Requirement { query, test })
        });
        Ok(Selector {
            labels: self.labels,
            annotations: self.annotations,
            expressions: expressions.collect::<Result<_, _>>()?,
        })
    }
}

impl NextSpec {
    fn understand(self) -> Result<Next, String> {
        let status = self.status_template.map(|template| PatchSpec {
            subresource: "status".into(),
            root: "status".into(),
            template,
            kind: String::new(),
        });
        let patches = status.into_iter().chain(self.patches);
        let values = |items: Vec<FinalizerItem>| items.into_iter().map(|item| item.value).collect();
        Ok(Next {
            event: self.event.map(|event| Event {
                kind: if event.kind.is_empty() {
                    "Normal".into()
                } else {
                    event.kind
                },
                reason: event.reason,
                message: event.message,
            }),
            finalizers: self.finalizers.map(|one| Finalizers {
                add: values(one.add),
                remove: values(one.remove),
                empty: one.empty,
            }),
            delete: self.delete,
            patches: patches.map(PatchSpec::understand).collect::<Result<_, _>>()?,
            step: self.step.map(StepSpec::understand),
        })
    }
}

impl PatchSpec {
    fn understand(self) -> Result<Patch, String> {
        let media_type = match self.kind.as_str() {
            "" | "strategic" => "application/strategic-merge-patch+json",
            "merge" => "application/merge-patch+json",
            "json" => "application/json-patch+json",
            other => return Err(format!("next.patches: type {other} is not supported")),
        };
        if !matches!(self.subresource.as_str(), "" | "status") {
            return Err(format!(
                "next.patches: subresource {} is not supported",
                self.subresource
            ));
        }
        Ok(Patch {
            subresource: self.subresource,
            root: self.root,
            media_type,
            template: Template::parse(&self.template)?,
        })
    }
}

impl StepSpec {
    fn understand(self) -> Step {
        match self {
            Self::Initialize {} => Step::Initialize,
            Self::Sync {} => Step::Sync,
            Self::Terminate {} => Step::Terminate,
            Self::TearDown {} => Step::TearDown,
            Self::Crash {
                container,
                exit_code,
                reason,
            } => Step::Crash {
                container,
                exit_code,
                reason: reason.unwrap_or_else(|| "Error".into()),
            },
            Self::Readiness { container, passes } => Step::Readiness { container, passes },
        }
    }
}
