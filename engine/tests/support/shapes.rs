//! The types of a cloud in memory: their schema as data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::Name;
use engine::diagnostics::Severity;
use engine::digest::Digest;
use engine::expression::parse::{Dialect, expression, template};
use engine::form::Form;
use engine::schema::{
    Attribute, Constraint, Identity, OnChange, Operation, Phase, PhaseWords, Presence, Program,
    ProviderSchema, ReplaceOrder, Rule, RuleOn, SeenIn, Sends, TypeSchema, Unset,
};
use engine::value::Value;

/// Returns a schema with disks, units, images, keys, tickets, logins, hosts and sites.
pub(crate) fn schema() -> ProviderSchema {
    let types = [disk(), unit(), image(), key(), ticket(), login(), host(), site()];
    let types = types.into_iter().map(|ty| (ty.name.clone(), Arc::new(ty))).collect();
    ProviderSchema { name: "cloud".into(), digest: Digest::of(b"cloud"), types }
}

fn attribute(ty: &str, presence: Presence) -> Attribute {
    Attribute { presence, ..Attribute::new(ty.parse().unwrap()) }
}

pub(crate) fn phase(operation: Operation, sends: Sends) -> Phase {
    Phase {
        operation,
        sends,
        without: BTreeSet::new(),
        waits_for: None,
        words: PhaseWords::default(),
    }
}

/// Returns a text attribute that is cleared once a spec no longer gives it.
fn unset(unset: Unset) -> Attribute {
    Attribute { unset: Some(unset), ..attribute("string", Presence::Optional) }
}

fn these(names: &[&str]) -> Sends {
    Sends::These(names.iter().map(|name| Name::from(*name)).collect::<BTreeSet<_>>())
}

fn program(phases: Vec<Phase>) -> Vec<Program> {
    vec![Program { when: None, phases }]
}

fn base(name: &str, attributes: Vec<(&str, Attribute)>) -> TypeSchema {
    let mut attributes: BTreeMap<Name, Attribute> =
        attributes.into_iter().map(|(name, attribute)| (name.into(), attribute)).collect();
    attributes.insert("id".into(), attribute("string", Presence::Computed));
    attributes.insert("name".into(), attribute("string", Presence::Required));
    TypeSchema {
        name: name.into(),
        description: String::new(),
        attributes,
        create: Vec::new(),
        update: program(vec![phase(Operation::Update, Sends::Changed)]),
        delete: program(vec![phase(Operation::Delete, Sends::Nothing)]),
        identity: Identity::OneTimeName { attribute: "name".into() },
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: Some("name".into()),
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: true,
        data_only: false,
        singleton: None,
    }
}

/// Returns the type of a disk, which can only grow, and loses its data when it moves.
fn disk() -> TypeSchema {
    let size = Attribute {
        constraint: Constraint { min: Some(0.0), max: Some(4000.0), ..Constraint::default() },
        unit: Some("GB".to_owned()),
        ..attribute("integer", Presence::Required)
    };
    let zone = Attribute {
        on_change: OnChange::Replace,
        data_loss: true,
        ..attribute("string", Presence::Required)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["size", "zone"])),
            phase(Operation::Activate, these(&["name"])),
        ]),
        delete_effect: Some("its data is lost".to_owned()),
        price: None,
        rules: vec![Rule {
            on: RuleOn::Update,
            severity: Severity::Error,
            assert: expression("new.size >= old.size", Dialect::Spec).unwrap(),
            message: template(
                "disk size must increase: it is ${old.size} GB and cannot become ${new.size} GB",
                Dialect::Spec,
            )
            .unwrap(),
            help: Some(template("keep ${old.size} or more", Dialect::Spec).unwrap()),
            attribute: None,
        }],
        ..base("disk", vec![("size", size), ("zone", zone)])
    }
}

/// Returns the type of a unit, which uses a disk and an image, is made without workers, and drains before it
/// is deleted.
fn unit() -> TypeSchema {
    let workers =
        Attribute { default: Some(Value::Integer(0)), ..attribute("integer", Presence::Optional) };
    let secret = Attribute { sensitive: true, ..attribute("string", Presence::Optional) };
    let url = Attribute {
        derived: Some(template("http://cloud/${id}", Dialect::Names).unwrap()),
        ..attribute("string", Presence::Computed)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["disk_id", "image_id"])),
            phase(Operation::Activate, Sends::All),
        ]),
        update: program(vec![phase(Operation::Update, Sends::All)]),
        delete: program(vec![
            phase(Operation::Drain, these(&["workers"])),
            phase(Operation::Delete, Sends::Nothing),
        ]),
        ..base(
            "unit",
            vec![
                ("disk_id", attribute("string", Presence::Optional)),
                ("image_id", attribute("string", Presence::Optional)),
                ("workers", workers),
                ("secret", secret),
                ("url", url),
            ],
        )
    }
}

/// Returns the type of a login, whose password no answer shows.
fn login() -> TypeSchema {
    let password = Attribute {
        sensitive: true,
        seen_in: SeenIn::Never,
        ..attribute("string", Presence::Required)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["password"])),
            phase(Operation::Activate, these(&["name"])),
        ]),
        ..base("login", vec![("password", password)])
    }
}

/// Returns the type of an image, which has a unique name. A change of its kind makes another image before the
/// old one goes.
fn image() -> TypeSchema {
    let kind =
        Attribute { on_change: OnChange::Replace, ..attribute("string", Presence::Optional) };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["kind"])),
            phase(Operation::Activate, these(&["name"])),
        ]),
        replace: ReplaceOrder::CreateFirst,
        unique_name: true,
        ..base("image", vec![("kind", kind)])
    }
}

/// Returns the type of a key, which is made under its own unique name: only the name finds it again.
fn key() -> TypeSchema {
    TypeSchema {
        create: program(vec![phase(Operation::Create, Sends::All)]),
        identity: Identity::UniqueName { attribute: "name".into() },
        unique_name: true,
        ..base("key", Vec::new())
    }
}

/// Returns the type of a ticket, whose client chooses the id, which is its name.
fn ticket() -> TypeSchema {
    let mut ticket = TypeSchema {
        create: program(vec![phase(Operation::Create, Sends::All)]),
        identity: Identity::ClientId { attribute: "name".into() },
        ..base("ticket", vec![("zone", attribute("string", Presence::Required))])
    };
    ticket.attributes.get_mut("name").unwrap().on_change = OnChange::Replace;
    ticket
}

/// Returns the type of a host, which has to be started after its create and after each change. Only the
/// number of starts shows that it was started.
fn host() -> TypeSchema {
    let start = |operation| Phase {
        waits_for: Some("it runs".to_owned()),
        ..phase(operation, Sends::Nothing)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["size"])),
            phase(Operation::Activate, these(&["name"])),
            start(Operation::Activate),
        ]),
        update: program(vec![phase(Operation::Update, Sends::Changed), start(Operation::Update)]),
        ..base(
            "host",
            vec![
                ("size", attribute("integer", Presence::Optional)),
                ("starts", attribute("integer", Presence::Computed)),
            ],
        )
    }
}

/// Returns the type of a site, which is made in one call, under its own name, and is ready some time later.
/// Lists do not show its note. A change resets its region if it does not send one.
fn site() -> TypeSchema {
    let ready = || Some("it is ready".to_owned());
    let note = Attribute {
        server_default: true,
        seen_in: SeenIn::Read,
        ..attribute("string", Presence::Optional)
    };
    let waiting = |phase: Phase| program(vec![Phase { waits_for: ready(), ..phase }]);
    TypeSchema {
        create: waiting(phase(Operation::Create, Sends::All)),
        update: waiting(phase(Operation::Update, Sends::All)),
        identity: Identity::UniqueName { attribute: "name".into() },
        unique_name: true,
        ..base(
            "site",
            vec![
                ("size", attribute("integer", Presence::Optional)),
                ("note", note),
                (
                    "span",
                    Attribute {
                        form: Some(Form::Duration),
                        ..attribute("string", Presence::Optional)
                    },
                ),
                ("label", unset(Unset::Value(Value::Null))),
                ("region", Attribute { server_default: true, ..unset(Unset::Absent) }),
                (
                    "secret",
                    Attribute { sensitive: true, ..attribute("string", Presence::Optional) },
                ),
            ],
        )
    }
}
