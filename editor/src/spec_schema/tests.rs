use engine::digest::Digest;
use engine::schema::{Attribute, Constraint, Identity, OneOf, Presence, ReplaceOrder, TypeSchema};
use engine::types::Type;

use super::*;

/// A type with one attribute.
fn with(attribute: Attribute) -> Described {
    let ty = TypeSchema {
        name: "box".into(),
        description: "A box.".to_owned(),
        attributes: BTreeMap::from([("x".into(), attribute)]),
        create: Vec::new(),
        update: Vec::new(),
        delete: Vec::new(),
        identity: Identity::Local,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: false,
        data_only: false,
        singleton: None,
    };
    let schema = ProviderSchema {
        name: "boxes".into(),
        digest: Digest::of(b""),
        types: BTreeMap::from([(Name::from("box"), Arc::new(ty))]),
    };
    let providers = BTreeMap::from([(Name::from("boxes"), Arc::new(schema))]);
    Described { providers, ..Described::default() }
}

/// The schema of the attribute, on one line.
fn schema_of(attribute: Attribute) -> String {
    let schema = spec_schema(&with(attribute));
    let resource = &schema["properties"]["resource"]["properties"]["box"]["patternProperties"];
    resource["^[a-z][a-z0-9_-]*$"]["properties"]["x"].to_string()
}

#[test]
fn attributes_take_plain_values_and_expressions() {
    let mut size = Attribute::new(Type::Integer);
    size.constraint = Constraint { min: Some(1.0), max: Some(4.5), ..Constraint::default() };
    size.unit = Some("GB".to_owned());
    insta::assert_snapshot!(schema_of(size), @r#"{"description":"integer, optional, in GB, at least 1, at most 4.5.","maximum":4.5,"minimum":1,"pattern":"[$%]\\{","type":["integer","string"]}"#);

    let mut name = Attribute::new(Type::String);
    name.constraint.length_max = Some(8);
    insta::assert_snapshot!(schema_of(name), @r##"{"anyOf":[{"maxLength":8,"type":"string"},{"$ref":"#/definitions/expression"}],"description":"string, optional, at most 8 long."}"##);

    let object = "object{a = string, b? = list(integer)}".parse().unwrap();
    insta::assert_snapshot!(schema_of(Attribute::new(object)), @r#"{"additionalProperties":false,"description":"object{a = string, b? = list(integer)}, optional.","pattern":"[$%]\\{","properties":{"a":{"type":"string"},"b":{"items":{"pattern":"[$%]\\{","type":["integer","string"]},"pattern":"[$%]\\{","type":["array","string"]}},"required":["a"],"type":["object","string"]}"#);
}

#[test]
fn lists_of_texts_allow_what_the_engine_allows() {
    let mut kinds = Attribute::new(Type::String);
    kinds.constraint.one_of = Some(OneOf {
        values: vec!["A.1".into(), "B".into()],
        separator: Some(",".to_owned()),
        exclusion: Some("-".to_owned()),
    });
    kinds.nulls = vec![engine::value::Value::string("")];
    insta::assert_snapshot!(schema_of(kinds), @r##"{"anyOf":[{"anyOf":[{"enum":["A.1","B"]},{"$ref":"#/definitions/expression"},{"pattern":",|^-","type":"string"}]},{"enum":[""]}],"description":"string, optional, \"\" for none."}"##);
}

#[test]
fn computed_attributes_cannot_be_given_and_defaults_of_secrets_are_not_shown() {
    let mut id = Attribute::new(Type::String);
    id.presence = Presence::Computed;
    assert_eq!(schema_of(id), "null");
    let mut key = Attribute::new(Type::String);
    (key.sensitive, key.default) = (true, Some(engine::value::Value::string("hunter2")));
    assert!(!schema_of(key).contains("hunter2"));
}

#[test]
fn every_table_has_a_schema() {
    let schema = spec_schema(&Described::default());
    for table in TABLES {
        let found = &schema["properties"][table.name];
        assert_eq!(found["description"], table.description, "{}", table.name);
        assert!(found["type"].is_string() || found["anyOf"].is_array(), "{}", table.name);
    }
    assert_eq!(schema["properties"]["import"]["items"]["required"], json!(["to"]));
    let cases = schema["properties"]["state"]["allOf"].as_array().unwrap();
    assert!(cases.iter().any(|case| case["then"]["required"] == json!(["bucket", "prefix"])));
}
