//! Random templates, as Go's own encoder wrote them: both orders of members must come out byte for byte.

use go_compat::pod_template::{CoreType, revision_data};
use serde_json::Value;

#[test]
fn random_templates_come_out_as_go_wrote_them() {
    let vectors = include_str!("../go-templates.tsv");
    assert!(vectors.lines().count() >= 40);
    for (index, line) in vectors.lines().enumerate() {
        let (typed, data) = line.split_once('\t').unwrap();
        let template: Value = serde_json::from_str(typed).unwrap();
        assert_eq!(
            CoreType::PodTemplate.typed_json(&template),
            typed,
            "line {}",
            index + 1
        );
        assert_eq!(revision_data(&template), data, "line {}", index + 1);
    }
}
