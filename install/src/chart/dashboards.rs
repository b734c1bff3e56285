//! Dashboards: files of the chart, and a template that makes ConfigMaps of them.

/// Names and texts of the dashboards, in the format of Grafana.
pub(super) const ALL: [(&str, &str); 2] = [
    ("manager", include_str!("../../../docs/dashboards/manager.json")),
    ("guards", include_str!("../../../docs/dashboards/guards.json")),
];

/// The template. The texts are files, because they have braces that Helm would read.
pub(super) fn template() -> String {
    let names: Vec<String> = ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
    TEMPLATE.replace("@NAMES", &names.join(" "))
}

const TEMPLATE: &str = "\
{{- if .Values.dashboards.enabled }}
{{- range $name := list @NAMES }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: kruise-dashboard-{{ $name }}
  namespace: \"{{ $.Values.installation.namespace }}\"
  labels: {{ toJson $.Values.dashboards.labels }}
data:
  kruise-{{ $name }}.json: {{ $.Files.Get (printf \"dashboards/%s.json\" $name) | toJson }}
{{- end }}
{{- end }}
";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Metrics that an expression reads: words that are no labels, functions or durations.
    fn metrics(expression: &str) -> Vec<String> {
        let mut text = expression.to_owned();
        while let Some((before, rest)) = text.clone().split_once("by (") {
            let after = rest.split_once(')').unwrap().1;
            text = format!("{before}{after}");
        }
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let words = words.filter(|word| word.contains('_') && *word != "histogram_quantile");
        words
            .map(|word| word.trim_end_matches("_bucket").to_owned())
            .collect()
    }

    #[test]
    fn every_panel_reads_metrics_that_exist_and_every_dashboard_has_a_section() {
        let reference = include_str!("../../../docs/reference/manager.md");
        let page = include_str!("../../../docs/dashboards.md");
        for (name, text) in ALL {
            let dashboard: Value = serde_json::from_str(text).unwrap();
            let title = dashboard["title"].as_str().unwrap();
            assert!(page.contains(&format!("\n## {title}\n")), "{name}");
            let panels = dashboard["panels"].as_array().unwrap();
            assert!(panels.len() > 4);
            for target in panels
                .iter()
                .flat_map(|panel| panel["targets"].as_array().unwrap())
            {
                let read = metrics(target["expr"].as_str().unwrap());
                assert!(!read.is_empty(), "{target}");
                for metric in read {
                    assert!(reference.contains(&format!("| `{metric}` |")), "{name}: {metric}");
                }
            }
        }
    }

    #[test]
    fn an_expression_reads_its_metric_and_nothing_else() {
        let read = metrics("histogram_quantile(0.99, sum by (kind_name, le) (rate(a_seconds_bucket[5m])))");
        assert_eq!(read, ["a_seconds"]);
    }
}
