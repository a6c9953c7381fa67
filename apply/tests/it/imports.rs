//! Objects of strangers that are taken over: by a block of the spec, and by id.

use std::time::Duration;

use apply::planning::Request;
use apply::session::{Session, fold};
use engine::address::Address;
use engine::journal::Record;
use engine::plan::input::Options;
use engine::state::ObjectId;
use engine::value::Value;
use engine::work::InTurn;
use state::Store as _;

use crate::cloud::Fault;
use crate::world::{DISK, World, holder, show};

const SPEC: &str = r#"
[resource.disk.d]
name = "data"
size = 20
zone = "eu"

[resource.unit.u]
name = "u"
disk_id = "${disk.d.id}"
secret = "s3cret"
"#;

fn block(to: &str, id: &str) -> String {
    format!("{SPEC}\n[[import]]\nto = '{to}'\nid = '{id}'\n")
}

fn disk(world: &World, size: i64, zone: &str) -> ObjectId {
    let attributes = [
        ("name", Value::string("data")),
        ("size", Value::Integer(size)),
        ("zone", Value::string(zone)),
    ];
    world.cloud.put("disk", &attributes)
}

async fn open(world: &World) -> Session {
    Session::open(&world.store, &holder(), Duration::ZERO, &world.host, None).await.unwrap()
}

/// Imports as `plumb import` does, and returns the text of its errors.
async fn import(world: &World, spec: &str, address: &str, id: &str) -> String {
    let prepared = world.prepare(spec);
    let providers = world.providers();
    let request = Request {
        config: &prepared.config,
        graph: &prepared.graph,
        providers: &providers,
        options: &Options::default(),
        refresh: true,
        running: false,
        now_ms: 1_000,
        workers: &InTurn,
        reader: &apply::NoData,
    };
    let mut session = open(world).await;
    let (to, id) = (address.parse().unwrap(), ObjectId(id.into()));
    let found = apply::import::import(&mut session, &request, &to, &id).await.unwrap();
    session.close().await.unwrap();
    let errors = found.iter().filter(|d| d.severity == engine::diagnostics::Severity::Error);
    let line = |d: &engine::diagnostics::Diagnostic| {
        format!("{}: {}\n", d.summary, d.label.as_ref().or(d.detail.as_ref()).unwrap())
    };
    errors.map(line).collect::<Vec<_>>().concat()
}

#[tokio::test(start_paused = true)]
async fn a_block_takes_an_object_over_as_it_is() {
    let world = World::new();
    let id = disk(&world, 20, "eu");
    let spec = block("disk.d", &id.0);
    let text = world.plan_text(&spec).await;
    assert_eq!(
        text,
        "import disk.d []\ncreate unit.u []\ns0 = create unit.u\ns1 = activate unit.u after s0\n"
    );
    world.apply(&spec).await.unwrap();
    assert_eq!(world.cloud.take_log(), ["create unit", "activate unit"]);
    assert_eq!(world.cloud.names("disk"), ["data"]);
    // The import block may stay in the spec, and may leave it.
    assert_eq!(world.plan_text(&spec).await, "");
    assert_eq!(world.plan_text(SPEC).await, "");
    world.destroy(SPEC).await.unwrap();
    assert!(world.cloud.names("disk").is_empty(), "what was taken over is ours");
}

#[tokio::test(start_paused = true)]
async fn what_differs_is_updated_in_the_same_plan() {
    let world = World::new();
    let id = disk(&world, 10, "eu");
    let spec = block("disk.d", &id.0);
    let text = world.plan_text(&spec).await;
    assert!(text.starts_with("import disk.d [size]\n"), "{text}");
    assert!(text.contains(&format!("update disk.d ({id})")), "{text}");
    let report = world.apply(&spec).await.unwrap();
    assert_eq!((report.summary.imported, report.summary.created), (1, 1));
    assert_eq!(world.plan_text(&spec).await, "");
    assert_eq!(world.cloud.take_log(), ["update disk", "create unit", "activate unit"]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_holds_for_an_import_too() {
    let world = World::new();
    let id = disk(&world, 30, "eu");
    let text = world.plan_text(&block("disk.d", &id.0)).await;
    assert!(text.contains("disk size must increase"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_an_import_is_finished() {
    let mut writes = 0;
    loop {
        let world = World::new();
        let id = disk(&world, 10, "eu");
        let spec = block("disk.d", &id.0);
        world.store.fail_after(Some(writes));
        let died = world.apply(&spec).await.is_err();
        world.store.fail_after(None);
        world.apply(&spec).await.unwrap();
        assert_eq!(world.plan_text(&spec).await, "", "{writes}");
        assert_eq!(world.cloud.names("disk"), ["data"], "{writes}");
        if !died {
            break;
        }
        writes += 1;
    }
    assert!(writes > 2, "the loop saw only {writes} writes");
}

#[tokio::test(start_paused = true)]
async fn blocks_that_cannot_be() {
    let world = World::new();
    let (far, id) = (disk(&world, 20, "us"), disk(&world, 20, "eu"));
    let text = world.plan_text(&block("disk.d", "disk-77")).await;
    assert!(text.contains("error:14: disk-77 cannot be taken over as disk.d"), "{text}");
    let text = world.plan_text(&block("disk.d", &far.0)).await;
    assert!(text.contains("error:14: taking over disk.d would replace the object"), "{text}");
    let others = ["lose its data", "exists already"];
    assert!(others.iter().all(|other| !text.contains(other)), "one reason is enough: {text}");
    world.apply(&block("disk.d", &id.0)).await.unwrap();
    let text = world.plan_text(&block("disk.d", &far.0)).await;
    assert_eq!(text, "warning:14: the import of disk-1 does nothing\n");
    let second = format!(
        "{SPEC}\n[resource.disk.e]\nname = 'data'\nsize = 20\nzone = 'eu'\n\
         [[import]]\nto = 'disk.e'\nid = '{id}'\n"
    );
    let text = world.plan_text(&second).await;
    assert!(text.contains("cannot be taken over as disk.e"), "{text}");
    let local = "[resource.value.v]\ninput = 1\n[[import]]\nto = 'value.v'\nid = 'x'\n";
    let text = World::new().plan_text(local).await;
    assert!(text.contains("error:5: x cannot be taken over as value.v"), "{text}");
    let keyed = "[resource.disk.d]\nfor_each = ['a']\nname = 'd'\nsize = 1\nzone = 'eu'\n\
                 [[import]]\nto = 'disk.d[b]'\nid = 'x'\n";
    let text = World::new().plan_text(keyed).await;
    assert!(text.contains("the spec has no disk.d[\"b\"] to import to"), "{text}");
    assert!(world.cloud.take_log().iter().all(|call| !call.contains("disk")));
}

/// A create in doubt has made the disk for `disk.a`. The plan and `plumb import` refuse to take it over for
/// `disk.b`, because the create in doubt would never find its object.
#[tokio::test(start_paused = true)]
async fn what_a_create_in_doubt_made_is_not_taken_over_for_another() {
    let world = World::new();
    let of =
        |name: &str| format!("[resource.disk.{name}]\nname = '{name}'\nsize = 1\nzone = 'eu'\n");
    let fail_finds = || world.cloud.shared.lock().unwrap().finds_fail = 1;
    world.cloud.strike(0, Fault::LostAfter);
    fail_finds();
    assert_eq!(world.apply(&of("a")).await.unwrap().in_doubt.len(), 1);
    let both = format!("{}{}[[import]]\nto = 'disk.b'\nid = 'disk-1'\n", of("a"), of("b"));
    fail_finds();
    let text = world.plan_text(&both).await;
    assert!(text.contains("error:11: disk-1 cannot be taken over as disk.b"), "{text}");
    let refused = import(&world, &format!("{}{}", of("a"), of("b")), "disk.b", "disk-1").await;
    assert_eq!(
        refused,
        "disk-1 cannot be taken over as disk.b: the create of disk.a made it, which is in doubt: \
         it has its one-time name\n"
    );
    world.apply(&of("a")).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn by_id_nothing_is_called_and_the_next_plan_says_the_rest() {
    let world = World::new();
    let id = disk(&world, 10, "eu");
    assert_eq!(
        import(&world, SPEC, "disk.d", "disk-9").await,
        "disk-9 cannot be taken over as disk.d: there is no disk with the id disk-9\n"
    );
    assert_eq!(import(&world, SPEC, "disk.d", &id.0).await, "");
    assert!(world.cloud.take_log().is_empty());
    let text = world.plan_text(SPEC).await;
    assert!(text.starts_with("update disk.d [size]\ncreate unit.u []\n"), "{text}");
    let unit = world
        .cloud
        .put("unit", &[("name", Value::string("u")), ("disk_id", Value::String(id.0.clone()))]);
    assert_eq!(import(&world, SPEC, "unit.u", &unit.0).await, "");
    let text = world.plan_text(SPEC).await;
    assert!(text.starts_with("update disk.d [size]\nupdate unit.u [secret workers]\n"), "{text}");
    world.apply(SPEC).await.unwrap();
    assert_eq!(world.plan_text(SPEC).await, "");
}

#[tokio::test(start_paused = true)]
async fn what_the_spec_calls_secret_is_sealed_when_it_is_taken_over() {
    let mut world = World::new();
    world.variables.insert("zone".to_owned(), "canary-zone".to_owned());
    let spec = "[variable.zone]\ntype = 'string'\nsensitive = true\n\
                [resource.disk.d]\nname = 'data'\nsize = 20\nzone = '${var.zone}'\n";
    let id = disk(&world, 20, "canary-zone");
    assert_eq!(import(&world, spec, "disk.d", &id.0).await, "");
    let loaded = world.store.load().await.unwrap();
    let snapshot = fold(loaded.clone(), &world.host).unwrap().snapshot;
    let text = format!("{:?} {}", loaded.records, serde_json::to_string(&snapshot).unwrap());
    assert!(!text.contains("canary-zone"), "{text}");
    let (plan, diagnostics, sources) = world.plan(spec).await;
    assert_eq!(show(&plan, &diagnostics, &sources), "");
}

/// An import block stays in the spec after its import. It does nothing any more, also if the object is
/// replaced or deleted later.
#[tokio::test(start_paused = true)]
async fn an_import_block_that_stays_is_in_nobodys_way() {
    let world = World::new();
    let attributes =
        [("name", "d"), ("zone", "eu")].map(|(name, text)| (name, Value::string(text)));
    let id = world.cloud.put("disk", &[&attributes[..], &[("size", Value::Integer(10))]].concat());
    let moving = format!("{DISK}lifecycle = {{ allow_data_loss = true }}\n");
    let taken = format!("{moving}[[import]]\nto = 'disk.d'\nid = '{id}'\n");
    world.apply(&taken).await.unwrap();
    // The object is replaced, as the spec asks; then somebody deletes the new one.
    let moved = taken.replace("eu", "us");
    world.apply(&moved).await.unwrap();
    assert_eq!(
        world.plan_text(&moved).await,
        format!("warning:8: the import of {id} does nothing\n")
    );
    world.cloud.shared.lock().unwrap().objects.clear();
    world.apply(&moved).await.unwrap();
    assert_eq!(
        world.plan_text(&moved).await,
        format!("warning:8: the import of {id} does nothing\n")
    );
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// A run dies at any write of a replace of an imported object, also after the delete of the old object and
/// before the create of the new one. The next run finishes the replace.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_replace_of_what_was_taken_over_is_finished() {
    let moving = format!("{DISK}lifecycle = {{ allow_data_loss = true }}\n");
    let (mut writes, mut between) = (0, 0);
    loop {
        let world = World::new();
        let attributes =
            [("name", "d"), ("zone", "eu")].map(|(name, text)| (name, Value::string(text)));
        let size = ("size", Value::Integer(10));
        let id = world.cloud.put("disk", &[&attributes[..], &[size]].concat());
        let taken = format!("{moving}[[import]]\nto = 'disk.d'\nid = '{id}'\n");
        world.apply(&taken).await.unwrap();
        let moved = taken.replace("eu", "us");
        world.store.fail_after(Some(writes));
        let died = world.apply(&moved).await.is_err();
        world.store.fail_after(None);
        between += usize::from(world.cloud.names("disk").is_empty());
        world.apply(&moved).await.unwrap();
        let warning = format!("warning:8: the import of {id} does nothing\n");
        assert_eq!(world.plan_text(&moved).await, warning, "{writes}");
        assert_eq!(world.cloud.names("disk"), ["d"], "{writes}");
        if !died {
            break;
        }
        writes += 1;
    }
    assert!(between > 0, "no run died between the delete and the create");
}

/// An object that the state forgot is a stranger's, and the import block takes it over again. An object that
/// vanished and came back is taken over again by `plumb import` only.
#[tokio::test(start_paused = true)]
async fn what_was_let_go_or_is_asked_for_by_id_is_taken_over_again() {
    let world = World::new();
    let id = disk(&world, 20, "eu");
    let spec = block("disk.d", &id.0);
    world.apply(&spec).await.unwrap();
    let address: Address = "disk.d".parse().unwrap();
    let mut session = open(&world).await;
    session.record(Record::Forgot { address: address.clone(), object: id.clone() }).unwrap();
    session.close().await.unwrap();
    assert_eq!(world.plan_text(&spec).await, "import disk.d []\n");
    world.apply(&spec).await.unwrap();
    // The object vanished, and exists again: the import block did its work, and does nothing any more.
    let mut session = open(&world).await;
    session.record(Record::Vanished { address, object: id.clone() }).unwrap();
    session.close().await.unwrap();
    assert!(world.plan_text(&spec).await.contains("the import of disk-1 does nothing"));
    assert_eq!(import(&world, &spec, "disk.d", &id.0).await, "");
    assert_eq!(world.plan_text(&spec).await, "");
}
