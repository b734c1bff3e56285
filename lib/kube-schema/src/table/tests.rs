use super::{Kind, Omit, Table};

#[test]
fn every_line_of_the_table_is_understood() {
    let table = Table::builtin();
    let fields: usize = table.types.iter().map(|one| one.fields.len()).sum();
    assert_eq!(
        table.types.len() + fields,
        include_str!("builtin.txt").lines().count()
    );
}

#[test]
fn containers_merge_by_name_and_volumes_retain_keys() {
    let table = Table::builtin();
    let spec = table.get(table.find("core/v1.PodSpec").unwrap());
    let containers = spec.field("containers").unwrap();
    assert_eq!(containers.merge.key, Some("name"));
    assert!(containers.merge.merges && containers.omit == Omit::Never);
    assert!(spec.field("volumes").unwrap().merge.retains_keys);
    assert!(!spec.field("tolerations").unwrap().merge.merges);
    assert_eq!(containers.kind.go_name(table), "[]v1.Container");
    assert!(matches!(
        spec.field("terminationGracePeriodSeconds").unwrap().kind,
        Kind::Pointer(_)
    ));
}
