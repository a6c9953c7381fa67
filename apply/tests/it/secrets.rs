//! Secrets that are not where the spec has put them: neither a plan nor the state has them in clear.

use std::sync::Arc;

use engine::plan::Action;
use engine::plan::input::{Mode, Options};
use engine::schema::{Attribute, Presence, Sends};
use engine::types::Type;
use engine::value::{Attributes, Value};

use crate::shapes;
use crate::world::World;

const SECRET: &str = "Hunter2-CANARY-77";

const SPEC: &str = r#"
[variable.tok]
type = "string"
sensitive = true

[resource.image.i]
name = "i"
args = ["x", "${var.tok}", "a"]
tags = ["x", "${var.tok}", "a"]
env = { A = "1", TOKEN = "${var.tok}" }
"#;

fn text(text: &str) -> Value {
    Value::string(text)
}

fn list(items: &[&str]) -> Value {
    Value::list(items.iter().copied().map(text).collect())
}

fn map(entries: &[(&str, &str)]) -> Value {
    Value::map(entries.iter().map(|(name, item)| ((*name).into(), text(item))).collect())
}

/// Returns a world whose images have arguments, tags, an environment and a note. `makes` changes the
/// attributes that the cloud shows.
pub(crate) fn world(makes: fn(&mut Attributes)) -> World {
    let mut world = World::new();
    let mut schema = shapes::schema();
    let image = Arc::make_mut(schema.types.get_mut("image").unwrap());
    let mut add = |name: &str, ty: &str, presence| {
        let ty: Type = ty.parse().unwrap();
        image.attributes.insert(name.into(), Attribute { presence, ..Attribute::new(ty) });
    };
    add("args", "list(string)", Presence::Optional);
    add("tags", "set(string)", Presence::Optional);
    add("env", "map(string)", Presence::Optional);
    add("note", "string", Presence::Computed);
    image.create[0].phases[1].sends = Sends::All;
    world.cloud.schema = Arc::new(schema);
    world.cloud.makes = makes;
    world.variables.insert("tok".to_owned(), SECRET.to_owned());
    world
}

/// Checks that neither a plan, nor its diagnostics, nor the state contains the secret.
async fn assert_clean(world: &World, of: &str) {
    let (plan, found, _) = world.plan(SPEC).await;
    let state = world.state().await;
    let shown = [format!("{plan:?}"), format!("{found:?}"), format!("{state:?}")];
    for shown in shown {
        assert!(!shown.contains(SECRET), "{of}: {shown}");
    }
}

async fn refresh(world: &World) {
    let options = Options { mode: Mode::RefreshOnly, ..Options::default() };
    world.apply_with(SPEC, &options).await.unwrap();
}

/// A server sorts a list, renames entries, or builds a text of a secret. The secret is sealed there.
#[tokio::test(start_paused = true)]
async fn whatever_a_server_makes_of_a_secret_it_is_sealed() {
    let sorts: fn(&mut Attributes) = |object| {
        let Some(Value::List(args)) = object.get("args") else { return };
        let mut args = args.to_vec();
        args.sort_by(Value::order);
        object.insert("args".into(), Value::list(args));
    };
    let renames: fn(&mut Attributes) = |object| {
        let Some(Value::Map(env)) = object.get("env") else { return };
        let env = env.iter().map(|(name, item)| (format!("MY_{name}").into(), item.clone()));
        let env = Value::map(env.collect());
        object.insert("env".into(), env);
    };
    let tells: fn(&mut Attributes) = |object| {
        let Some(Value::List(args)) = object.get("args") else { return };
        let words: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
        let words = Value::string(words.join(" "));
        object.insert("note".into(), words);
    };
    let keeps: fn(&mut Attributes) = |_| {};
    for (of, makes, converges) in [
        ("keeps", keeps, true),
        ("sorts", sorts, false),
        ("renames", renames, false),
        ("tells", tells, true),
    ] {
        let world = world(makes);
        world.apply(SPEC).await.unwrap();
        assert_clean(&world, of).await;
        if converges {
            assert_eq!(world.plan_text(SPEC).await, "", "{of}");
        }
        refresh(&world).await;
        assert_clean(&world, of).await;
    }
}

/// Somebody moves a secret by hand. It is sealed in its new place, also if the variable has another value by
/// now.
#[tokio::test(start_paused = true)]
async fn a_secret_that_somebody_moved_is_sealed() {
    let joined = format!("x {SECRET}");
    for (name, value) in [
        ("args", list(&["new", "x", SECRET, "a"])),
        ("args", list(&[SECRET])),
        ("args", list(&["sh", "-c", &joined])),
        ("env", map(&[("A", "1"), ("TOKEN_OLD", SECRET)])),
        ("env", map(&[("A", SECRET), ("TOKEN", "1")])),
        ("tags", Value::set(vec![text("0"), text(SECRET)])),
        ("kind", text(SECRET)),
    ] {
        for now in [SECRET, "another-secret"] {
            let of = format!("{name} {value:?} {now}");
            let mut world = world(|_| {});
            world.apply(SPEC).await.unwrap();
            for object in world.cloud.shared.lock().unwrap().objects.values_mut() {
                object.insert(name.into(), value.clone());
            }
            world.variables.insert("tok".to_owned(), now.to_owned());
            assert_clean(&world, &of).await;
            refresh(&world).await;
            assert_clean(&world, &of).await;
            world.apply(SPEC).await.unwrap();
            assert_clean(&world, &of).await;
            assert_eq!(world.plan_text(SPEC).await, "", "{of}");
        }
    }
}

/// A saved plan sends no secret, and a server shows one in a note. The apply makes the plan again with all
/// secrets, and it fits the saved one.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_fits_beside_a_secret_that_it_does_not_send() {
    let world = world(|object| drop(object.insert("note".into(), text("by Hunter2-CANARY-77"))));
    let spec = SPEC.replace("${var.tok}", "y");
    world.apply(&spec).await.unwrap();
    let (plan, ..) = world.plan(&spec.replace("\"1\"", "\"2\"")).await;
    assert!(!format!("{plan:?}").contains(SECRET));
    world.apply_saved(&plan).await.unwrap();
}

/// A refresh-only plan saw a secret in a place where somebody has put it. The saved plan is applied, because
/// the apply sees the same.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_only_looks_fits_where_a_secret_has_turned_up() {
    let spec = format!("{SPEC}[output.tok]\nvalue = \"${{var.tok}}\"\nsensitive = true\n");
    let looks = Options { mode: Mode::RefreshOnly, ..Options::default() };
    let joined = format!("x {SECRET}");
    for (name, value) in [
        ("args", list(&["new", "x", SECRET, "a"])),
        ("args", list(&["sh", "-c", &joined])),
        ("env", map(&[("A", "1"), ("TOKEN_OLD", SECRET)])),
        ("env", map(&[("A", SECRET), ("TOKEN", "1")])),
        ("env", map(&[(SECRET, "1")])),
        ("tags", Value::set(vec![text("0"), text(SECRET)])),
        ("kind", text(SECRET)),
        ("note", text(&joined)),
    ] {
        let world = world(|_| {});
        world.apply(&spec).await.unwrap();
        for object in world.cloud.shared.lock().unwrap().objects.values_mut() {
            object.insert(name.into(), value.clone());
        }
        let (plan, ..) = world.plan_with(&spec, &looks).await;
        assert_eq!(plan.seen.len(), 1, "{name} {value:?}");
        world.apply_saved(&plan).await.unwrap();
        assert!(!format!("{:?}", world.state().await).contains(SECRET));
        let (again, ..) = world.plan_with(&spec, &looks).await;
        assert!(again.seen.is_empty(), "{name} {value:?}: {:?}", again.seen);
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_changes_nothing_leaves_secret_outputs_alone() {
    let spec = format!("{SPEC}[output.tok]\nvalue = \"${{var.tok}}\"\nsensitive = true\n");
    let world = world(|_| {});
    world.apply(&spec).await.unwrap();
    let (plan, ..) = world.plan(&spec).await;
    assert!(plan.is_empty());
    let before = world.state().await;
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.state().await.outputs, before.outputs);
}

/// A server puts a secret into a note. The output of that note is sealed.
#[tokio::test(start_paused = true)]
async fn an_output_shows_no_secret_that_a_server_put_somewhere() {
    let world = world(|object| drop(object.insert("note".into(), text("by Hunter2-CANARY-77"))));
    let spec = format!("{SPEC}[output.note]\nvalue = \"${{image.i.note}}\"\n");
    let report = world.apply(&spec).await.unwrap();
    assert!(report.outputs["note"].0.holds_sealed());
    assert!(!format!("{:?}", world.state().await).contains(SECRET));
    let (plan, ..) = world.plan(&spec).await;
    assert_eq!(plan.outputs["note"].action, Action::NoOp);
}

/// The spec does not call a value sensitive any more, so the value is in clear again.
#[tokio::test(start_paused = true)]
async fn what_the_spec_says_in_clear_is_no_secret() {
    let world = world(|_| {});
    world.apply(SPEC).await.unwrap();
    let open = SPEC.replace("sensitive = true", "sensitive = false");
    assert_eq!(world.plan_text(&open).await, "");
    world.apply(&open).await.unwrap();
    assert!(format!("{:?}", world.state().await).contains(SECRET));
    let (plan, ..) = world.plan(&open).await;
    assert!(plan.seen.is_empty(), "{:?}", plan.seen);

    let without = SPEC.replace("\"x\", \"${var.tok}\"", "\"fresh-word\"");
    world.apply(&without).await.unwrap();
    assert!(format!("{:?}", world.state().await).contains("fresh-word"));
    assert_eq!(world.plan_text(&without).await, "");
}

/// A value that `try` chose because of a secret is a secret, also through a local. A local that fails over a
/// secret also fails for a `try` around it.
#[tokio::test(start_paused = true)]
async fn nothing_that_a_secret_decided_is_shown() {
    let spec = |local: &str, value: &str| {
        format!(
            "[variable.tok]\ntype = \"string\"\nsensitive = true\n\
             [local]\na = '${{{local}}}'\n\
             [output.o]\nvalue = '${{{value}}}'\n"
        )
    };
    let world = world(|_| {});
    let stolen = "join(\"\", [for i in range(0, 4) : coalesce(one([for c in split(\"\", \"Huntxyz\") : c \
                  if try([true, [0][substr(var.tok, i, 1) == c ? 0 : 9]][0], false)]), \"-\")])";
    for (local, value, expected) in [
        (stolen, "local.a", "output `o` shows something sensitive"),
        ("range(length(var.tok))", "length(local.a[*])", "output `o` shows something sensitive"),
        ("[0][length(var.tok)]", "try([true, local.a][0], false)", "none here"),
    ] {
        let (_, diagnostics, _) = world.plan(&spec(local, value)).await;
        let found = format!("{diagnostics:?}");
        assert!(found.contains(expected), "{local}: {found}");
    }
    let (plan, diagnostics, _) = world.plan(&spec("1", "try([0][local.a], local.a)")).await;
    assert!(plan.outputs["o"].after == Some(Value::Integer(1)), "{diagnostics:?}");
}
