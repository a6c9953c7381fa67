use std::collections::{BTreeMap, BTreeSet};

use super::{CallInDoubt, Resolution, Sent, Shown, resolve, supersedes_own};
use crate::address::Name;
use crate::digest::SealKey;
use crate::journal::{CallId, Outcome, Record, Seen, Started, Wait};
use crate::schema::{
    Attribute, Identity, Operation, Phase, PhaseRef, PhaseWords, Program, ProgramKind,
    ReplaceOrder, SeenIn, Sends, TypeSchema,
};
use crate::sorted::Set;
use crate::state::{Nonce, ObjectId, Snapshot};
use crate::stored::Stored;
use crate::types::Type;
use crate::value::{Attributes, Paths, Value};

/// Rows of evidence with their resolutions: a call and its circumstances, and the object that a look-up
/// shows. The calls are for `box.a`, except that of `o4`. In the state, `box.a` stands for `o1`, `box.b` for
/// `o2`, and `box.d` for `o4`. Creates sent the size 1, and updates change it to 1. A create of `box.c` is in
/// doubt.
const TABLE: &str = "
create one-time                    | absent                    | NotMade
create one-time accepted           | absent                    | Promised
create one-time elsewhere          | absent                    | Elsewhere
create one-time                    | o9                        | Done
create one-time                    | o9 of size 2              | Done
create one-time accepted           | o9                        | Done
create one-time elsewhere          | o9                        | Done
create one-time                    | o2                        | Claimed(box.b)
create one-time                    | o1                        | Claimed(box.a)
create one-time accepted           | o2                        | Claimed(box.b)
create one-time elsewhere          | o2                        | Claimed(box.b)
create one-time                    | o9 drawn for box.c        | NotMade
create unique                      | absent                    | NotMade
create unique accepted             | absent                    | Promised
create unique elsewhere            | o9                        | Elsewhere
create unique                      | o9                        | Done
create unique                      | o9 of size 2              | Mismatch [size]
create unique accepted             | o9 of size 2              | Mismatch [size]
create unique accepted then-waits  | o9 of size 2              | Done
create unique ignores-size         | o9 of size 2              | Done
create unique in-earlier-run       | o9 of size 2              | Done
create unique                      | o2                        | NotMade
create unique accepted             | o2                        | Promised
create id                          | o9                        | Done
create id                          | o9 of size 2              | Mismatch [size]
create id drawn                    | o9 of size 2              | Done
create id                          | o2                        | NotMade
create key                         | o9 of size 2              | Done
update one-time                    | absent                    | Gone
update one-time elsewhere          | absent                    | Elsewhere
update one-time elsewhere          | o1                        | Elsewhere
update one-time                    | o1                        | Done
update one-time                    | o1 of size 2              | NotDone
update one-time                    | o1 drawn for box.c        | NotDone
update unique                      | o1                        | Done
update one-time hidden             | o1                        | Unproven
update one-time hidden             | o1 of size 2              | NotDone
update one-time in-earlier-run     | o1                        | Unproven
update one-time only-waits         | o1                        | NotDone
update one-time sends-nothing      | o1                        | Done
update one-time sends-nothing      | o1 of size 2              | NotDone
update one-time sends-nothing 1/2  | o1                        | Unproven
drain one-time                     | absent                    | Gone
drain one-time                     | o1                        | NotDone
drain one-time of o2               | o2                        | NotDone
delete one-time                    | absent                    | Gone
delete one-time elsewhere          | absent                    | Elsewhere
delete one-time                    | o1                        | NotDone
delete one-time in-earlier-run     | o1                        | NotDone
delete one-time of o2              | o2                        | Gone
delete unique of o2                | o2                        | Gone
delete one-time                    | o1 drawn for box.c        | Gone
delete one-time of o4              | o4 drawn for box.c        | NotDone
";

#[test]
fn evidence_and_its_meaning() {
    let snapshot = snapshot();
    for row in TABLE.lines().filter(|row| !row.is_empty()) {
        let parts: Vec<&str> = row.split('|').map(str::trim).collect();
        let [call, shown, expected] = parts[..] else { panic!("{row}") };
        let found = match meaning(call, shown, &snapshot) {
            Resolution::Claimed(owner) => format!("Claimed({owner})"),
            Resolution::Mismatch(names) => format!("Mismatch [{}]", names.join(" ")),
            other => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{row}");
    }
}

fn meaning(call: &str, shown: &str, snapshot: &Snapshot) -> Resolution {
    let says = |word: &str| call.split(' ').any(|own| own == word);
    let schema = schema(call);
    let started = started(call);
    let (desired, changed) = (object(&started_name(), 1), BTreeSet::from(["size".into()]));
    let ignored: Set<Name> = says("ignores-size").then(|| "size".into()).into_iter().collect();
    let sent = Sent { desired: &desired, changed: &changed, ignored: &ignored };
    let call = CallInDoubt {
        started: &started,
        schema: &schema,
        sent: (!says("in-earlier-run")).then_some(sent),
        accepted: says("accepted"),
        elsewhere: says("elsewhere"),
        key: &snapshot.seal_key,
    };
    if shown == "absent" {
        return resolve(call, None, snapshot);
    }
    let name = if shown.ends_with("drawn for box.c") { nonce(3).0 } else { started_name() };
    let size = if shown.ends_with("of size 2") || shown.ends_with("box.c") { 2 } else { 1 };
    let id = ObjectId(shown.split(' ').next().unwrap().into());
    let attributes = object(&name, size);
    resolve(call, Some(Shown { id: &id, attributes: &attributes }), snapshot)
}

/// A create of an address may get the id of the address's own object, which is gone then.
#[test]
fn a_create_supersedes_its_own_object_only_under_its_own_name() {
    let mut snapshot = snapshot();
    let made = |name: &Name, id: &str, snapshot: &Snapshot| {
        let (schema, started) = (schema("create one-time"), started("create one-time"));
        let key = &snapshot.seal_key;
        let (accepted, elsewhere) = (false, false);
        let call = CallInDoubt {
            started: &started,
            schema: &schema,
            sent: None,
            accepted,
            elsewhere,
            key,
        };
        let (id, attributes) = (ObjectId(id.into()), object(name, 1));
        supersedes_own(call, Shown { id: &id, attributes: &attributes }, snapshot)
    };
    let own = nonce(0).0;
    assert!(made(&own, "o1", &snapshot));
    assert!(!made(&own, "o2", &snapshot), "another address's");
    assert!(!made(&own, "o9", &snapshot), "a new id");
    assert!(!made(&"n".into(), "o1", &snapshot), "another name");
    let call = CallId(snapshot.next_call);
    let delete = Started { call, ..started("delete one-time") };
    snapshot.fold(&Record::Started(Box::new(delete))).unwrap();
    assert!(!made(&own, "o1", &snapshot), "its own delete has to end first");
}

fn nonce(of: u8) -> Nonce {
    Nonce::from_random([of; 16])
}

/// Returns the name of the objects of most rows.
fn started_name() -> Name {
    nonce(0).0
}

fn object(name: &Name, size: i64) -> Attributes {
    Attributes::from([
        (Name::from("name"), Value::String(name.clone())),
        (Name::from("size"), Value::Integer(size)),
    ])
}

/// Returns a type with a name, a size, and a key that no answer shows.
fn schema(call: &str) -> TypeSchema {
    let says = |word: &str| call.split(' ').any(|own| own == word);
    let attribute = Name::from("name");
    let identity = match () {
        () if says("one-time") => Identity::OneTimeName { attribute },
        () if says("unique") => Identity::UniqueName { attribute },
        () if says("id") => Identity::ClientId { attribute },
        () => Identity::IdempotencyKey,
    };
    let key = Attribute { seen_in: SeenIn::Never, ..Attribute::new(Type::String) };
    let attributes = [
        ("name", Attribute::new(Type::String)),
        ("size", Attribute::new(Type::Integer)),
        ("key", key),
    ];
    let sends = if says("sends-nothing") { Sends::Nothing } else { Sends::All };
    let program = |operation| {
        let (without, waits_for) = (BTreeSet::new(), None);
        let phase = Phase {
            operation,
            sends: sends.clone(),
            without,
            waits_for,
            words: PhaseWords::default(),
        };
        Program { phases: vec![phase.clone(), phase], when: None }
    };
    TypeSchema {
        name: "box".into(),
        description: String::new(),
        attributes: attributes.into_iter().map(|(name, it)| (name.into(), it)).collect(),
        create: vec![program(Operation::Create)],
        update: vec![program(Operation::Update)],
        delete: vec![program(Operation::Delete)],
        identity,
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

fn started(call: &str) -> Started {
    let says = |word: &str| call.split(' ').any(|own| own == word);
    let (kind, operation) = match call.split(' ').next() {
        Some("create") => (ProgramKind::Create, Operation::Create),
        Some("update") => (ProgramKind::Update, Operation::Update),
        _ => (ProgramKind::Delete, Operation::Delete),
    };
    let phases = if says("drain") || says("1/2") { 2 } else { 1 };
    let mut phase = PhaseRef::new(kind, 0, 0, phases);
    if says("then-waits") {
        phase.wait = Wait::After;
    } else if says("only-waits") {
        phase.wait = Wait::Only;
    }
    let is_create = kind == ProgramKind::Create;
    let object = ["o2", "o4"].into_iter().find(|id| says(id)).unwrap_or("o1");
    let unshown = says("hidden").then(|| Name::from("key"));
    let name = if says("drawn") { nonce(0).0 } else { "n".into() };
    Started {
        call: CallId(0),
        step: "s0".to_owned(),
        address: if object == "o4" { "box.d" } else { "box.a" }.parse().unwrap(),
        provider: "api".into(),
        operation,
        phase,
        object: (!is_create).then(|| ObjectId(object.into())),
        nonce: is_create.then(|| nonce(0)),
        name: says("id").then_some(name),
        secret_name: None,
        deposes: is_create,
        managed: ["name", "size"].into_iter().map(Name::from).collect(),
        sensitive: Paths::none(),
        unshown: unshown.into_iter().collect(),
        input_fingerprints: BTreeMap::new(),
        dependencies: Set::new(),
        account: None,
        at_ms: 0,
    }
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new("lineage".to_owned(), SealKey::from_random([0; 32]));
    let held = [("box.a", "o1", nonce(0)), ("box.b", "o2", nonce(1)), ("box.d", "o4", nonce(3))];
    for (call, (address, id, name)) in held.into_iter().enumerate() {
        let call = CallId(call as u64);
        let address = address.parse().unwrap();
        // The nonces of earlier creates, which no object in the table has as its name.
        let nonce = Some(nonce(9));
        let create = Started { call, address, nonce, ..started("create one-time") };
        snapshot.fold(&Record::Started(Box::new(create))).unwrap();
        let attributes = Stored::of_sealed(&Value::map(object(&name.0, 1)));
        let object = Some(Seen { id: ObjectId(id.into()), attributes });
        snapshot.fold(&Record::Finished { call, outcome: Outcome::Done { object } }).unwrap();
    }
    let (call, address) = (CallId(snapshot.next_call), "box.c".parse().unwrap());
    let create = Started { call, address, nonce: Some(nonce(3)), ..started("create one-time") };
    snapshot.fold(&Record::Started(Box::new(create))).unwrap();
    snapshot
}
