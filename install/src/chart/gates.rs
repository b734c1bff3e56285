//! The feature gates in a template: the same defaults, switches and dependencies as the manager has.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kruise_frame::gates::{self, Stage};
use serde_json::{Map, Value, json};

use super::values::FEATURE_GATES;
use crate::manifests::{Conditions, Gate};

/// Sets `$gates` at the start of a template.
pub(super) const READ: &str = "{{- $gates := fromJson (include \"kruise.gates\" .) }}\n";

/// The expressions of a template for these conditions.
pub(super) fn terms(conditions: &Conditions) -> BTreeSet<String> {
    conditions.iter().map(term).collect()
}

/// The expression of a template that holds if all these do; none if there are none.
pub(super) fn all_of(terms: &BTreeSet<String>) -> Option<String> {
    let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
    match terms[..] {
        [] => None,
        [one] => Some(one.to_owned()),
        ref more => Some(format!("and {}", more.join(" "))),
    }
}

fn term(gate: &Gate) -> String {
    match gate {
        Gate::On(name) => format!("(index $gates `{name}`)"),
        Gate::Off(name) => format!("(not (index $gates `{name}`))"),
        Gate::Any(any) => {
            let any: Vec<String> = any
                .iter()
                .map(|name| format!("(index $gates `{name}`)"))
                .collect();
            format!("(or {})", any.join(" "))
        }
    }
}

/// The file with the helper `kruise.gates`.
pub(super) fn helper() -> String {
    let mut defaults = Map::new();
    let mut stages = Map::new();
    for (name, default, stage) in gates::all() {
        defaults.insert(name.to_owned(), json!(default));
        let switch = match stage {
            Stage::Alpha => "AllAlpha",
            Stage::Beta => "AllBeta",
        };
        stages.insert(name.to_owned(), json!(switch));
    }
    let aliases: Map<String, Value> = gates::aliases()
        .map(|(alias, name)| (alias.to_owned(), json!(name)))
        .collect();
    let mut text = HELPER
        .replace("@VALUE", &format!(".Values.{FEATURE_GATES}"))
        .replace("@DEFAULTS", &Value::Object(defaults).to_string())
        .replace("@STAGES", &Value::Object(stages).to_string())
        .replace("@ALIASES", &Value::Object(aliases).to_string());
    let mut dependencies = String::new();
    for dependency in gates::dependencies() {
        let (condition, then, value) = match dependency {
            gates::Dependency::OffWithout { gate, dependents } => {
                (format!("not (index $gates `{gate}`)"), dependents, false)
            }
            gates::Dependency::OnWith { any, needed } => {
                let any: Vec<String> = any
                    .iter()
                    .map(|name| format!("(index $gates `{name}`)"))
                    .collect();
                (format!("or {}", any.join(" ")), needed, true)
            }
        };
        // Writing to a text does not fail.
        let _ = writeln!(dependencies, "{{{{- if {condition} }}}}");
        for name in then {
            let _ = writeln!(dependencies, "{{{{- $_ := set $gates `{name}` {value} }}}}");
        }
        dependencies.push_str("{{- end }}\n");
    }
    text = text.replace("@DEPENDENCIES\n", &dependencies);
    text
}

const HELPER: &str = "\
{{/* The feature gates as the manager resolves them: defaults, AllAlpha and AllBeta, those that are set, dependencies. */}}
{{- define \"kruise.gates\" }}
{{- $gates := fromJson `@DEFAULTS` }}
{{- $stages := fromJson `@STAGES` }}
{{- $aliases := fromJson `@ALIASES` }}
{{- $set := dict }}
{{- range $pair := splitList \",\" (toString (default \"\" @VALUE)) }}
{{- $pair = trim $pair }}
{{- if $pair }}
{{- $parts := splitn \"=\" 2 $pair }}
{{- $name := trim $parts._0 }}
{{- $name = default $name (get $aliases $name) }}
{{- $value := trim (index $parts \"_1\") }}
{{- if not (or (hasKey $gates $name) (has $name (list \"AllAlpha\" \"AllBeta\"))) }}
{{- fail (printf \"featureGates: unrecognized feature gate: %s\" $name) }}
{{- else if has $value (list \"true\" \"True\" \"TRUE\" \"t\" \"T\" \"1\") }}
{{- $_ := set $set $name true }}
{{- else if has $value (list \"false\" \"False\" \"FALSE\" \"f\" \"F\" \"0\") }}
{{- $_ := set $set $name false }}
{{- else }}
{{- fail (printf \"featureGates: %s is %q; it may be true or false\" $name $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $stage := $stages }}
{{- if hasKey $set $stage }}
{{- $_ := set $gates $name (get $set $stage) }}
{{- end }}
{{- if hasKey $set $name }}
{{- $_ := set $gates $name (get $set $name) }}
{{- end }}
{{- end }}
@DEPENDENCIES
{{- toJson $gates }}
{{- end }}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_is_in_the_helper_and_nothing_is_left_to_replace() {
        let text = helper();
        for (name, default, _) in gates::all() {
            assert!(text.contains(&format!("\"{name}\":{default}")), "{name}");
        }
        assert!(!text.contains('@'), "{text}");
        assert!(text.contains("{{- $_ := set $gates `ImagePullJobGate` true }}"));
    }

    #[test]
    fn conditions_are_joined() {
        let on = Gate::On("A");
        let condition = |of: &[Gate]| all_of(&terms(&of.iter().copied().collect()));
        assert_eq!(condition(&[]), None);
        assert_eq!(condition(&[on]).unwrap(), "(index $gates `A`)");
        assert_eq!(
            condition(&[on, Gate::Off("B")]).unwrap(),
            "and (index $gates `A`) (not (index $gates `B`))"
        );
    }
}
