//! The descriptors that come with Plumb.

/// Names and texts, sorted by name.
const DESCRIPTORS: &[(&str, &str)] = &[
    ("docker", include_str!("../../catalog/docker.toml")),
    ("github", include_str!("../../catalog/github.toml")),
    ("powerdns", include_str!("../../catalog/powerdns.toml")),
    ("rabbitmq", include_str!("../../catalog/rabbitmq.toml")),
];

/// Returns the text of a descriptor; none if there is none with this name.
pub fn catalog(name: &str) -> Option<&'static str> {
    DESCRIPTORS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// Returns the names of all descriptors that come with Plumb.
pub fn catalog_names() -> impl Iterator<Item = &'static str> {
    DESCRIPTORS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use engine::diagnostics::FileId;

    use super::*;

    #[test]
    fn every_descriptor_is_valid_and_bears_its_name() {
        for name in catalog_names() {
            let (descriptor, said) = crate::load(catalog(name).unwrap(), FileId(0));
            let descriptor = descriptor.unwrap_or_else(|| panic!("{name}: {said:#?}"));
            assert_eq!(&**descriptor.name(), name);
            for (ty, model) in descriptor.schema().types {
                assert!(!model.description.is_empty(), "{name}: {ty} has no description");
                for (attribute, schema) in &model.attributes {
                    assert!(!schema.description.is_empty(), "{name}: {ty}.{attribute}");
                }
            }
        }
        assert_eq!(catalog("none"), None);
    }
}
