//! Tests of adoption: objects go in, the text of a spec comes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::address::{Block, Name};
use crate::config::Config;
use crate::config::parse;
use crate::config::resolve::{Given, ResolveInput, resolve};
use crate::config::testing::{lines, schema, sources};
use crate::digest::{Digest, SealKey};
use crate::schema::{Attribute, Presence, ProviderSchema, SeenIn, TypeSchema};
use crate::state::{ObjectId, Snapshot};
use crate::stored::from_json;
use crate::value::Value;

/// Returns types for disks, images and apps: an app refers to an image and maybe to a disk.
fn providers() -> BTreeMap<Name, Arc<ProviderSchema>> {
    let attribute = |ty: &str| Attribute::new(ty.parse().unwrap());
    let required = |ty| Attribute { presence: Presence::Required, ..attribute(ty) };
    let id = || ("id", Attribute { presence: Presence::Computed, ..attribute("string") });
    let disk = vec![
        id(),
        ("name", required("string")),
        ("size", required("integer")),
        ("zone", Attribute { default: Some(Value::string("eu")), ..attribute("string") }),
    ];
    let image = vec![
        id(),
        ("name", required("string")),
        ("env", Attribute { server_default: true, ..attribute("map(string)") }),
        ("start", Attribute { server_default: true, ..attribute("list(string)") }),
        (
            "memory",
            Attribute {
                server_default: true,
                server_value: Some(Value::Integer(50)),
                ..attribute("integer")
            },
        ),
        ("password", Attribute { sensitive: true, seen_in: SeenIn::Never, ..required("string") }),
    ];
    let app = vec![
        id(),
        ("name", required("string")),
        ("image_id", Attribute { holds: Some("image".into()), ..required("string") }),
        ("root_disk_id", attribute("string")),
        ("home", Attribute { parent: Some("disk".into()), ..attribute("string") }),
        ("peer", Attribute { holds: Some("app".into()), ..attribute("list(string)") }),
    ];
    let template = schema().types["box"].clone();
    let types = [("disk", disk), ("image", image), ("app", app)];
    let types = types.into_iter().map(|(name, attributes)| {
        let attributes = attributes.into_iter().map(|(name, it)| (name.into(), it)).collect();
        let name_attribute = Some("name".into());
        let own = TypeSchema {
            name: name.into(),
            attributes,
            name_attribute,
            remote: true,
            data_only: false,
            singleton: None,
            ..(*template).clone()
        };
        (Name::from(name), Arc::new(own))
    });
    let digest = Digest::of(b"test");
    let provider = ProviderSchema { name: "cloud".into(), digest, types: types.collect() };
    BTreeMap::from([("cloud".into(), Arc::new(provider))])
}

fn found(ty: &str, id: &str, json: &str) -> Found {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let providers = providers();
    let schema = &providers["cloud"].types[ty];
    let typed = |(name, value): (&String, &serde_json::Value)| {
        let ty = &schema.attributes[name.as_str()].ty;
        (Name::from(name.as_str()), from_json(value).convert(ty).unwrap())
    };
    let attributes = json.as_object().unwrap().iter().map(typed).collect();
    Found { provider: "cloud".into(), ty: ty.into(), id: ObjectId(id.into()), attributes }
}

/// Returns the draft of objects beside a spec, after checking that both resolve together without a
/// diagnostic.
fn adopted(spec: &str, found: Vec<Found>) -> Draft {
    let providers = providers();
    let snapshot = Snapshot::new(String::new(), SealKey::from_random([1; 32]));
    let config = resolved(spec, &providers, BTreeMap::new());
    let surroundings = Surroundings { config: &config, snapshot: &snapshot, providers: &providers };
    let draft = draft(&surroundings, found);
    let given = draft.variables.iter().map(|it| (it.name.clone(), Given::Unset)).collect();
    let config = resolved(&format!("{spec}{}", draft.text), &providers, given);
    for address in draft.imports.keys() {
        let block = &config.resources[&address.block];
        assert_eq!(block.for_each.is_some(), address.key.is_some(), "{address}");
    }
    draft
}

fn resolved(
    spec: &str,
    providers: &BTreeMap<Name, Arc<ProviderSchema>>,
    variables: BTreeMap<Name, Given>,
) -> Config {
    let (sources, files) = sources(spec);
    let (document, found) = parse::parse(&sources, &files);
    assert!(!found.has_errors(), "{spec}\n{}", lines(&sources, &found));
    let input = ResolveInput { providers: providers.clone(), variables, ..ResolveInput::default() };
    let (config, found) = resolve(&document, &input);
    assert!(!found.has_errors(), "{spec}\n{}", lines(&sources, &found));
    config
}

/// An address with a password is a secret, wherever it stands.
#[test]
fn passwords_in_addresses_become_variables() {
    let image = r#"{"name": "queue", "env":
        {"DATABASE": "postgres://app:hunter2@db/app", "PORT": "1"}, "start": ["--mq", "amqp://a:hunter2@mq"]}"#;
    let draft = adopted("", vec![found("image", "i1", image)]);
    assert!(!draft.text.contains("hunter2"), "{}", draft.text);
    let (_, block) = draft.text.split_once("[resource").unwrap();
    insta::assert_snapshot!(block, @r#"
    .image.queue]
    name = "queue"
    password = "${var.image_queue_password}"
    env = { DATABASE = "${var.image_queue_env_database}", PORT = "1" }
    start = "${var.image_queue_start}"
    lifecycle = { ignore_changes = ["password"] }
    "#);
}

/// An object without a name has a block of its own, since no key of a `for_each` is empty.
#[test]
fn an_object_without_a_name_stands_alone() {
    let disk = |id: &str, name: &str| {
        found("disk", id, &format!(r#"{{"name": "{name}", "size": 5, "zone": "eu"}}"#))
    };
    let names = [("d1", "a-1"), ("d2", "a-2"), ("d3", "a-3"), ("d4", "a-4"), ("d5", "")];
    let draft = adopted("", names.iter().map(|(id, name)| disk(id, name)).collect());
    insta::assert_snapshot!(draft.text, @r#"
    [resource.disk.disk]
    for_each = ["a-1", "a-2", "a-3", "a-4"]
    name = "${each.key}"
    size = 5

    [resource.disk.d5]
    name = ""
    size = 5
    "#);
}

#[test]
fn references_defaults_and_secrets() {
    let draft = adopted(
        "[resource.disk.data]\nname = \"other\"\nsize = 1\n",
        vec![
            found(
                "app",
                "a1",
                r#"{"name": "Chat (EU)", "image_id": "i1", "root_disk_id": "d1",
                    "home": "d1"}"#,
            ),
            found(
                "app",
                "a2",
                r#"{"name": "chat", "image_id": "gone", "root_disk_id": "", "peer": ["a1", "a2"]}"#,
            ),
            found(
                "image",
                "i1",
                r#"{"name": "${x}", "env": {"MODEL": "tiny", "HF_TOKEN": "hunter2", "a b": "%{c}"},
                    "start": [], "memory": 50}"#,
            ),
            found("disk", "d1", r#"{"name": "data", "size": 100, "zone": "eu"}"#),
            found("disk", "d2", r#"{"name": "", "size": 5, "zone": null}"#),
        ],
    );
    assert!(!draft.text.contains("hunter2"), "{}", draft.text);
    let values: Vec<bool> = draft.variables.iter().map(|it| it.value.is_some()).collect();
    assert_eq!(values, [true, false], "the token is known, the password is not");
    assert_eq!(draft.notes.len(), 1);
    insta::assert_snapshot!(draft.text, @r#"
    # env.HF_TOKEN of image.x. A secret, so it does not stand here.
    # Give its value by PLUMB_VAR_IMAGE_X_ENV_HF_TOKEN, or in a file of variables.
    [variable.image_x_env_hf_token]
    type = "string"
    sensitive = true

    # password of image.x. No answer of the API shows it.
    # Give its value by PLUMB_VAR_IMAGE_X_PASSWORD, or in a file of variables.
    [variable.image_x_password]
    type = "string"
    sensitive = true

    [resource.image.x]
    name = "$${x}"
    password = "${var.image_x_password}"
    env = { HF_TOKEN = "${var.image_x_env_hf_token}", MODEL = "tiny", "a b" = "%%{c}" }
    lifecycle = { ignore_changes = ["password"] }

    [resource.disk.d2]
    name = ""
    size = 5
    lifecycle = { ignore_changes = ["zone"] }

    [resource.disk.data-2]
    name = "data"
    size = 100

    [resource.app.chat-eu]
    name = "Chat (EU)"
    image_id = "${image.x.id}"
    home = "${disk.data-2.id}"
    root_disk_id = "${disk.data-2.id}"

    [resource.app.chat]
    name = "chat"
    image_id = "gone"
    peer = ["${app.chat-eu.id}", "a2"]
    root_disk_id = ""
    "#);
}

#[test]
fn alike_objects_share_a_block_where_that_is_shorter() {
    let disk = |id: &str, name: &str, size: u32, zone: &str| {
        let json = format!(r#"{{"name": "{name}", "size": {size}, "zone": "{zone}"}}"#);
        found("disk", id, &json)
    };
    let draft = adopted(
        "",
        vec![
            disk("d1", "models-1", 100, "us"),
            disk("d2", "models-2", 100, "us"),
            disk("d3", "models-3", 100, "us"),
            disk("d4", "cache-a", 1, "eu"),
            disk("d5", "cache-b", 2, "eu"),
            disk("d6", "cache-c", 3, "eu"),
            disk("d7", "twice", 100, "us"),
            disk("d8", "twice", 100, "us"),
            found("app", "a1", r#"{"name": "one", "image_id": "x", "root_disk_id": "d2"}"#),
        ],
    );
    insta::assert_snapshot!(draft.text, @r#"
    [resource.disk.cache]
    for_each = { cache-a = 1, cache-b = 2, cache-c = 3 }
    name = "${each.key}"
    size = "${each.value}"

    [resource.disk.models]
    for_each = ["models-1", "models-2", "models-3"]
    name = "${each.key}"
    size = 100
    zone = "us"

    [resource.disk.twice]
    name = "twice"
    size = 100
    zone = "us"

    [resource.disk.twice-2]
    name = "twice"
    size = 100
    zone = "us"

    [resource.app.one]
    name = "one"
    image_id = "x"
    root_disk_id = '${disk.models["models-2"].id}'
    "#);
}

#[test]
fn references_in_a_circle_are_cut_once() {
    let app = |id: &str, name: &str, peer: &str| {
        found("app", id, &format!(r#"{{"name": "{name}", "image_id": "x", "peer": ["{peer}"]}}"#))
    };
    let draft =
        adopted("", vec![app("a1", "one", "a2"), app("a2", "two", "a3"), app("a3", "three", "a1")]);
    let references = draft.text.matches("${app.").count();
    assert_eq!(references, 2, "{}", draft.text);
}

#[test]
fn long_collections_have_a_line_for_each_item() {
    let entries: Vec<String> =
        (0..9).map(|at| format!(r#""VARIABLE_{at}": "value {at}""#)).collect();
    let items: Vec<String> = (0..9).map(|at| format!(r#""--option-{at}=x""#)).collect();
    let json = format!(
        r#"{{"name": "a", "env": {{{}}}, "start": [{}]}}"#,
        entries.join(", "),
        items.join(", ")
    );
    let draft = adopted("", vec![found("image", "i1", &json)]);
    insta::assert_snapshot!(draft.text, @r#"
    # password of image.a. No answer of the API shows it.
    # Give its value by PLUMB_VAR_IMAGE_A_PASSWORD, or in a file of variables.
    [variable.image_a_password]
    type = "string"
    sensitive = true

    [resource.image.a]
    name = "a"
    password = "${var.image_a_password}"
    start = [
      "--option-0=x",
      "--option-1=x",
      "--option-2=x",
      "--option-3=x",
      "--option-4=x",
      "--option-5=x",
      "--option-6=x",
      "--option-7=x",
      "--option-8=x",
    ]
    lifecycle = { ignore_changes = ["password"] }

    [resource.image.a.env]
    VARIABLE_0 = "value 0"
    VARIABLE_1 = "value 1"
    VARIABLE_2 = "value 2"
    VARIABLE_3 = "value 3"
    VARIABLE_4 = "value 4"
    VARIABLE_5 = "value 5"
    VARIABLE_6 = "value 6"
    VARIABLE_7 = "value 7"
    VARIABLE_8 = "value 8"
    "#);
}

#[test]
fn an_import_names_its_object() {
    let address = Block::new("disk", "all").instance(Some("a\"b ${c}".into()));
    let text = import_block(&address, &ObjectId("x-1".into()));
    insta::assert_snapshot!(text, @r#"
    [[import]]
    to = "disk.all[\"a\\\"b $${c}\"]"
    id = "x-1"
    "#);
}
