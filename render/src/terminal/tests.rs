use std::collections::BTreeMap;

use engine::address::Address;
use engine::diagnostics::{Diagnostics, Sources};
use engine::digest::SealKey;
use engine::expression::Expr;
use engine::journal::CallId;
use engine::plan::{Cause, Change, Doubt, Drift, OutputChange, Plan, Reason, Step, StepId};
use engine::schema::Operation;
use engine::sorted::Set;
use engine::state::{ObjectId, Progress};
use engine::stored::{from_json, seal_attributes};
use engine::types::Type;
use engine::value::{Attributes, Path, Paths, Value};
use serde_json::json;

use super::*;

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

fn shared(json: &serde_json::Value) -> std::sync::Arc<Attributes> {
    attributes(json).into()
}

fn attributes(json: &serde_json::Value) -> Attributes {
    from_json(json).as_map().unwrap().clone()
}

fn change(at: &str, action: Action, reason: Reason) -> Change {
    Change {
        address: address(at),
        moved_from: None,
        deposed: false,
        provider: "test".into(),
        action,
        reason,
        before: None,
        after: None,
        causes: Vec::new(),
        object: None,
        progress: Progress::Ready,
        sensitive: Paths::none(),
        secrets: BTreeMap::new(),
        managed: Set::new(),
        dependencies: Set::new(),
        effects: Vec::new(),
        loss: None,
        cost: None,
        deferred_rules: 0,
        conditions: Vec::new(),
        allow_unknown: engine::sorted::Set::new(),
        ignored: engine::sorted::Set::new(),
        span: None,
    }
}

fn step(id: u32, operation: Operation, at: &str, change: usize, needs: &[u32]) -> Step {
    Step {
        id: StepId(id),
        operation,
        address: address(at),
        change,
        phase: None,
        object: None,
        deposes: false,
        needs: needs.iter().map(|need| StepId(*need)).collect(),
    }
}

fn cause(attribute: &str, replaces: bool, span: Option<engine::diagnostics::Span>) -> Cause {
    Cause { attribute: attribute.into(), replaces, span, drifted: span.is_none(), unset: false }
}

/// Returns a plan with one example of everything, which a reviewer sees at once.
#[expect(clippy::too_many_lines, reason = "data")]
pub(crate) fn plan() -> (Plan, Sources) {
    let mut sources = Sources::default();
    let file = sources.add("plumb.toml", "[resource.disk.eu]\nsize = 200\nplace = \"us\"\n");
    let line = |start: usize, end: usize| Some(engine::config::span(file, start..end));
    let seal = |json: &serde_json::Value, places: &Paths| {
        seal_attributes(&attributes(json), places, &SealKey::from_random([1; 32]))
    };
    let slot = |at: &str, ty: Type| Value::unknown(ty, Expr::slot(&address(at), &Name::from("id")));
    let secret = Paths::from_iter([Path::attribute("env").join(Name::from("TOKEN"))]);

    let mut create = change("app.chat", Action::Create, Reason::NotInState);
    create.sensitive = secret.clone();
    let mut after = seal(
        &json!({"name": "chat", "gpus": ["A", "B"], "env": {"MODEL": "tiny", "TOKEN": "hunter2"},
                "command": "set -e\nrun --fast\n", "note": null}),
        &secret,
    );
    after.insert("id".into(), slot("app.chat", Type::String));
    after.insert("disk_id".into(), slot("disk.eu", Type::String));
    create.after = Some(after.into());
    create.deferred_rules = 1;

    let mut replace = change(r#"disk.a["x"]"#, Action::Replace, Reason::CannotUpdate);
    replace.before = Some(shared(&json!({"id": "d1", "place": "eu", "size": 10})));
    let mut after = attributes(&json!({"place": "us", "size": 10}));
    after.insert("id".into(), slot(r#"disk.a["x"]"#, Type::String));
    replace.after = Some(after.into());
    replace.object = Some(ObjectId("d1".into()));
    replace.causes = vec![cause("place", true, line(30, 41))];
    replace.loss = Some("its data".to_owned());

    let mut update = change("disk.eu", Action::Update, Reason::Differs);
    update.before =
        Some(shared(&json!({"id": "d2", "size": 100, "name": "m", "tags": {"a": 1, "b": 2}})));
    update.after =
        Some(shared(&json!({"id": "d2", "size": 200, "name": "n", "tags": {"a": 1, "b": 3}})));
    update.object = Some(ObjectId("d2".into()));
    update.causes = vec![cause("size", false, line(19, 29)), cause("name", false, None)];
    update.effects = vec!["replaces workers".to_owned()];

    let mut delete = change("disk.old", Action::Delete, Reason::NotInSpec);
    delete.before = Some(shared(&json!({"id": "d3", "size": 5, "name": null})));
    delete.object = Some(ObjectId("d3".into()));
    delete.loss = Some("its data".to_owned());

    let keep = change("disk.same", Action::NoOp, Reason::InSync);
    let plan = Plan {
        complete: true,
        drift: vec![
            Drift {
                address: address("disk.eu"),
                before: attributes(&json!({"name": "n", "size": 100})),
                after: Some(attributes(&json!({"name": "m", "size": 300}))),
                attributes: vec!["name".into(), "size".into()],
                proposal: Some("size = 300".to_owned()),
                wanted: Attributes::new(),
            },
            Drift {
                address: address("disk.gone"),
                before: attributes(&json!({"name": "n"})),
                after: None,
                attributes: Vec::new(),
                proposal: None,
                wanted: Attributes::new(),
            },
        ],
        changes: vec![create, replace, update, delete, keep],
        outputs: BTreeMap::from([
            (
                Name::from("chat_id"),
                OutputChange {
                    action: Action::Create,
                    before: None,
                    after: Some(slot("app.chat", Type::String)),
                    sensitive: false,
                    secret: None,
                    conditions: Vec::new(),
                },
            ),
            (
                Name::from("token"),
                OutputChange {
                    action: Action::Update,
                    before: Some(Value::string("hunter1")),
                    after: Some(Value::string("hunter2")),
                    sensitive: true,
                    secret: None,
                    conditions: Vec::new(),
                },
            ),
        ]),
        steps: vec![
            step(0, Operation::Update, "disk.eu", 2, &[]),
            step(1, Operation::Create, "app.chat", 0, &[0]),
            step(2, Operation::Delete, r#"disk.a["x"]"#, 1, &[]),
            step(3, Operation::Create, r#"disk.a["x"]"#, 1, &[1, 2]),
            step(4, Operation::Delete, "disk.old", 3, &[]),
        ],
        doubts: vec![Doubt {
            call: CallId(7),
            address: address("disk.lost"),
            operation: Operation::Create,
            reason: "the answer was cut off".to_owned(),
            running: false,
        }],
        ..Plan::default()
    };
    (plan, sources)
}

pub(crate) fn view() -> PlanView<'static> {
    let (plan, sources) = Box::leak(Box::new(plan()));
    let units = [("disk".into(), BTreeMap::from([("size".into(), "GB".to_owned())]))];
    let units = Box::leak(Box::new(BTreeMap::from(units)));
    let mut view = PlanView::new(plan, sources, &Diagnostics::new(), None).with_units(units);
    name_slots(&mut view);
    view
}

/// Sets the texts of slots, so that these tests do not depend on the engine's printer, which has its own
/// tests.
fn name_slots(view: &mut PlanView<'_>) {
    let name = |from: &mut String| {
        for at in ["app.chat", r#"disk.a["x"]"#, "disk.eu"] {
            if *from == Expr::slot(&address(at), &Name::from("id")).to_string() {
                *from = format!("{at}.id");
            }
        }
    };
    let objects = view.changes.to_mut().iter_mut().filter_map(|change| change.after.as_mut());
    let outputs = view.outputs.values_mut().filter_map(|output| output.after.as_mut());
    for value in objects.flat_map(Object::values_mut).chain(outputs) {
        if let Shown::Unknown(from) = value {
            name(from);
        }
    }
    let outputs = view.outputs.values_mut().map(|output| &mut output.unknown);
    for unknown in view.changes.to_mut().iter_mut().map(|change| &mut change.unknown).chain(outputs)
    {
        unknown.values_mut().for_each(name);
    }
}

fn text(view: &PlanView<'_>, steps: bool) -> String {
    super::plan(view, Options { colour: Colour::Off, steps })
}

#[test]
fn everything_at_once() {
    insta::assert_snapshot!(text(&view(), true), @r#"
    Changed outside since the last run:
      ~ disk.eu changed
            name  "n" → "m"
            size  100 → 300 GB
            to keep it as it is, write: size = 300
      - disk.gone is gone

    In doubt:
      ? disk.lost: it is not known whether create (c7) happened
            the answer was cut off
            to decide it: plumb resolve 'disk.lost' --adopt ID, or --absent

      + app.chat will be created
            new in the spec
            command
                | set -e
                | run --fast
            disk_id  (known after apply: disk.eu.id)
            env      { MODEL = "tiny", TOKEN = (sensitive) }
            gpus     ["A", "B"]
            name     "chat"
            (known after apply: id)
            (1 rule is checked before the call)

      ± disk.a["x"] will be replaced: the old one is deleted first  (id d1)
            place cannot be changed in place
          ! its data
            place  "eu" → "us"  # forces the replace   plumb.toml:3
            (known after apply: id)
            (1 attribute is unchanged)

      ~ disk.eu will be updated in place  (id d2)
            the spec changes size, and name changed outside
          ! replaces workers
            name  "m" → "n"  # changed outside
            size  100 → 200 GB   plumb.toml:2
            tags
              ~ b  2 → 3
                (1 unchanged)
            (1 attribute is unchanged)

      - disk.old will be deleted  (id d3)
            removed from the spec
          ! its data
            id    "d3"
            size  5 GB

    Outputs:
      + chat_id  (known after apply: app.chat.id)
      ~ token    (sensitive, changes)

    Steps:
        s0 = update disk.eu
        s1 = create app.chat after s0
        s2 = delete disk.a["x"]
        s3 = create disk.a["x"] after s1, s2
        s4 = delete disk.old

    Lost for good when this is applied:
      ! disk.a["x"]: its data
      ! disk.old: its data

    Plan: 1 to create, 1 to update, 1 to replace, 1 to delete.
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the expected text")]
fn as_json() {
    let text = crate::json::pretty(&view());
    assert!(!text.contains("hunter"));
    insta::assert_snapshot!(text, @r#"
    {
      "format": "plumb-plan/1",
      "complete": true,
      "summary": {
        "create": 1,
        "update": 1,
        "replace": 1,
        "delete": 1,
        "read": 0,
        "forget": 0,
        "import": 0,
        "move": 0,
        "no-op": 1
      },
      "changes": [
        {
          "address": "app.chat",
          "type": "app",
          "provider": "test",
          "action": "create",
          "reason": "new in the spec",
          "id": null,
          "before": null,
          "after": {
            "command": "set -e\nrun --fast\n",
            "disk_id": null,
            "env": {
              "MODEL": "tiny",
              "TOKEN": null
            },
            "gpus": [
              "A",
              "B"
            ],
            "id": null,
            "name": "chat",
            "note": null
          },
          "unknown": {
            "disk_id": "disk.eu.id",
            "id": "app.chat.id"
          },
          "sensitive": [
            "env[\"TOKEN\"]"
          ],
          "causes": [],
          "effects": [],
          "loss": null,
          "deferred_rules": 1,
          "deposed": false,
          "create_first": null,
          "managed": [],
          "file": null,
          "line": null,
          "column": null
        },
        {
          "address": "disk.a[\"x\"]",
          "type": "disk",
          "provider": "test",
          "action": "replace",
          "reason": "place cannot be changed in place",
          "id": "d1",
          "before": {
            "id": "d1",
            "place": "eu",
            "size": 10
          },
          "after": {
            "id": null,
            "place": "us",
            "size": 10
          },
          "unknown": {
            "id": "disk.a[\"x\"].id"
          },
          "sensitive": [],
          "causes": [
            {
              "attribute": "place",
              "replaces": true,
              "drifted": false,
              "file": "plumb.toml",
              "line": 3,
              "column": 1
            }
          ],
          "effects": [],
          "loss": "its data",
          "deferred_rules": 0,
          "deposed": false,
          "create_first": false,
          "managed": [],
          "file": null,
          "line": null,
          "column": null,
          "units": {
            "size": "GB"
          }
        },
        {
          "address": "disk.eu",
          "type": "disk",
          "provider": "test",
          "action": "update",
          "reason": "the spec changes size, and name changed outside",
          "id": "d2",
          "before": {
            "id": "d2",
            "name": "m",
            "size": 100,
            "tags": {
              "a": 1,
              "b": 2
            }
          },
          "after": {
            "id": "d2",
            "name": "n",
            "size": 200,
            "tags": {
              "a": 1,
              "b": 3
            }
          },
          "unknown": {},
          "sensitive": [],
          "causes": [
            {
              "attribute": "size",
              "replaces": false,
              "drifted": false,
              "file": "plumb.toml",
              "line": 2,
              "column": 1
            },
            {
              "attribute": "name",
              "replaces": false,
              "drifted": true,
              "file": null,
              "line": null,
              "column": null
            }
          ],
          "effects": [
            "replaces workers"
          ],
          "loss": null,
          "deferred_rules": 0,
          "deposed": false,
          "create_first": null,
          "managed": [],
          "file": null,
          "line": null,
          "column": null,
          "units": {
            "size": "GB"
          }
        },
        {
          "address": "disk.old",
          "type": "disk",
          "provider": "test",
          "action": "delete",
          "reason": "removed from the spec",
          "id": "d3",
          "before": {
            "id": "d3",
            "name": null,
            "size": 5
          },
          "after": null,
          "unknown": {},
          "sensitive": [],
          "causes": [],
          "effects": [],
          "loss": "its data",
          "deferred_rules": 0,
          "deposed": false,
          "create_first": null,
          "managed": [],
          "file": null,
          "line": null,
          "column": null,
          "units": {
            "size": "GB"
          }
        }
      ],
      "drift": [
        {
          "address": "disk.eu",
          "type": "disk",
          "action": "update",
          "before": {
            "name": "n",
            "size": 100
          },
          "after": {
            "name": "m",
            "size": 300
          },
          "sensitive": [],
          "attributes": [
            "name",
            "size"
          ],
          "proposal": "size = 300",
          "units": {
            "size": "GB"
          }
        },
        {
          "address": "disk.gone",
          "type": "disk",
          "action": "delete",
          "before": {
            "name": "n"
          },
          "after": null,
          "sensitive": [],
          "attributes": [],
          "proposal": null
        }
      ],
      "outputs": {
        "chat_id": {
          "action": "create",
          "before": null,
          "after": null,
          "unknown": {
            "chat_id": "app.chat.id"
          },
          "sensitive": false
        },
        "token": {
          "action": "update",
          "before": null,
          "after": null,
          "unknown": {},
          "sensitive": true
        }
      },
      "steps": [
        {
          "id": "s0",
          "operation": "update",
          "address": "disk.eu",
          "needs": []
        },
        {
          "id": "s1",
          "operation": "create",
          "address": "app.chat",
          "needs": [
            "s0"
          ]
        },
        {
          "id": "s2",
          "operation": "delete",
          "address": "disk.a[\"x\"]",
          "needs": []
        },
        {
          "id": "s3",
          "operation": "create",
          "address": "disk.a[\"x\"]",
          "needs": [
            "s1",
            "s2"
          ]
        },
        {
          "id": "s4",
          "operation": "delete",
          "address": "disk.old",
          "needs": []
        }
      ],
      "doubts": [
        {
          "call": "c7",
          "address": "disk.lost",
          "operation": "create",
          "reason": "the answer was cut off",
          "running": false
        }
      ],
      "diagnostics": [],
      "digest": null
    }
    "#);
}

#[test]
fn steps_as_a_program() {
    insta::assert_snapshot!(crate::steps::text(&plan().0), @r#"
    s0 = update disk.eu
    s1 = create app.chat after s0
    s2 = delete disk.a["x"]
    s3 = create disk.a["x"] after s1, s2
    s4 = delete disk.old
    "#);
}

#[test]
fn nothing_to_do_and_incomplete() {
    let sources = Sources::default();
    let empty = Plan { complete: true, ..Plan::default() };
    let view = PlanView::new(&empty, &sources, &Diagnostics::new(), None);
    insta::assert_snapshot!(text(&view, false), @"No changes. What is live agrees with the spec.");
    let said = |aim| summary(&view.clone().with_aim(aim));
    assert_eq!(
        [Aim::ApplyUnseen, Aim::Destroy, Aim::RefreshOnly].map(said),
        [
            "No changes. The state agrees with the spec; nothing live was looked at.",
            "Nothing to destroy.",
            "Nothing changed outside.",
        ]
    );
    let json = crate::json::line(&view.clone().with_aim(Aim::ApplyUnseen));
    let mut shown = view.clone();
    shown.restore(&serde_json::from_str(&json).unwrap());
    assert_eq!(shown.aim, Aim::ApplyUnseen);
    let drifted = Plan { complete: true, drift: plan().0.drift, ..Plan::default() };
    let view = PlanView::new(&drifted, &sources, &Diagnostics::new(), None);
    assert_eq!(
        summary(&view),
        "Nothing to change. An apply updates the state with what changed outside."
    );
    let running = Doubt { running: true, ..plan().0.doubts.remove(0) };
    let busy = Plan { complete: true, doubts: vec![running], ..Plan::default() };
    let view = PlanView::new(&busy, &sources, &Diagnostics::new(), None);
    let shown = text(&view, false);
    assert!(shown.starts_with("Under way in another run:\n"), "{shown}");
    assert!(shown.ends_with("No changes beside what another run is doing right now.\n"), "{shown}");
    let incomplete = Plan { complete: false, changes: plan().0.changes, ..Plan::default() };
    let view = PlanView::new(&incomplete, &sources, &Diagnostics::new(), None);
    let text = text(&view, false);
    assert!(text.ends_with(&format!("1 to delete.\n{INCOMPLETE}\n")), "{text}");
}

#[test]
fn what_waits_for_a_call_is_not_counted_as_left_alone() {
    let doubt = |address: &str, running| Doubt {
        address: address.parse().unwrap(),
        running,
        ..plan().0.doubts.remove(0)
    };
    let still = |address: &str| change(address, Action::NoOp, Reason::InSync);
    let busy = Plan {
        complete: true,
        doubts: vec![doubt("disk.a", true), doubt("disk.b", false)],
        changes: vec![still("disk.a"), still("disk.b"), still("disk.c")],
        ..Plan::default()
    };
    let sources = Sources::default();
    let view = PlanView::new(&busy, &sources, &Diagnostics::new(), None);
    let counts = [view.summary.running, view.summary.in_doubt, view.summary.no_op];
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn what_is_proposed_can_be_pasted_or_is_named() {
    let mut drifted = Plan { complete: true, drift: plan().0.drift, ..Plan::default() };
    let long = "x".repeat(200);
    drifted.drift[0].proposal =
        Some(format!("size = 300\nname = \"\u{202e}evil\"\nnote = \"{long}\""));
    let sources = Sources::default();
    let view = PlanView::new(&drifted, &sources, &Diagnostics::new(), None);
    let shown = text(&view, false);
    let lines: Vec<_> = shown.lines().filter(|line| line.contains(": ")).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "to keep it as it is, write: size = 300",
            r#"and: name = "\u202eevil""#,
            "and: `note` as it is now, which `plumb drift --json` has in full",
        ]
    );
}

#[test]
fn many_changes_are_written_in_order() {
    let create = |n| change(&format!("app.v{n:05}"), Action::Create, Reason::NotInState);
    let changes: Vec<Change> = (0..3_000).map(create).collect();
    let plan = Plan { complete: true, changes, ..Plan::default() };
    let sources = Sources::default();
    let mut view = PlanView::new(&plan, &sources, &Diagnostics::new(), None);
    let text = text(&view, false);
    let written: Vec<&str> = text.lines().filter(|line| line.contains("will be created")).collect();
    let wanted = plan.changes.iter().map(|c| format!("  + {} will be created", c.address));
    assert!(written.into_iter().eq(wanted));
    assert_eq!(text.matches("\n\n").count(), plan.changes.len());
    // Views that were made beforehand give the same text.
    view.changes.to_mut();
    assert_eq!(super::plan(&view, Options { colour: Colour::Off, steps: false }), text);
}

#[test]
fn colour_changes_no_word() {
    let view = view();
    let options = Options { colour: Colour::On, steps: true };
    let coloured = super::plan(&view, options);
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\u{1b}') {
        plain.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find('m').unwrap() + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, text(&view, true));
}

#[test]
fn hostile_names_never_begin_a_line() {
    let mut hostile = change(r#"app.x["\n::add-mask::k"]"#, Action::Create, Reason::NotInState);
    hostile.after = Some(shared(&json!({
        "name": "\u{1b}]52;c;x\u{7}", "text": "##vso[x]\n::error::y", "list": ["\r\n-- "],
    })));
    let plan = Plan { complete: true, changes: vec![hostile], ..Plan::default() };
    let sources = Sources::default();
    let view = PlanView::new(&plan, &sources, &Diagnostics::new(), None);
    insta::assert_snapshot!(text(&view, false), @r#"
      + app.x["\n::add-mask::k"] will be created
            new in the spec
            list  ["\r\n-- "]
            name  "\u{1b}]52;c;x\u{7}"
            text
                | #\u{23}vso[x]
                | ::error::y

    Plan: 1 to create, 0 to update, 0 to replace, 0 to delete.
    "#);
}

#[test]
fn a_replace_that_lets_go_says_nothing_of_an_order() {
    for (first, expected) in [
        (Operation::Create, "will be replaced: the new one is made first"),
        (Operation::Delete, "will be replaced: the old one is deleted first"),
        (Operation::Forget, "will be replaced"),
    ] {
        let (mut plan, sources) = plan();
        let second = plan.steps.iter_mut().find(|step| step.id.0 == 2).unwrap();
        second.operation = first;
        let view = PlanView::new(&plan, &sources, &Diagnostics::new(), None);
        let change = view.changes.iter().find(|change| change.kind == Action::Replace).unwrap();
        assert_eq!(verdict(&change), expected);
    }
}

#[test]
fn a_move_shows_where_an_object_comes_from() {
    let mut plain = change("disk.b", Action::Move, Reason::Moved);
    plain.moved_from = Some(address("disk.a"));
    plain.object = Some(ObjectId("d1".into()));
    plain.before = Some(shared(&json!({"size": 1})));
    plain.after.clone_from(&plain.before);
    let mut update = change("disk.d", Action::Update, Reason::Differs);
    update.moved_from = Some(address("disk.c"));
    update.before = Some(shared(&json!({"size": 1})));
    update.after = Some(shared(&json!({"size": 2})));
    update.causes = vec![cause("size", false, None)];
    let plan = Plan { complete: true, changes: vec![plain, update], ..Plan::default() };
    let (sources, found) = (Sources::default(), Diagnostics::new());
    let view = PlanView::new(&plan, &sources, &found, None);
    insta::assert_snapshot!(text(&view, false), @r"
      → disk.b gets this address  (id d1)
            moved from disk.a

      ~ disk.d will be updated in place
            size changed outside
          → moved from disk.c
            size  1 → 2  # changed outside

    Plan: 0 to create, 1 to update, 0 to replace, 0 to delete, 2 to move.
    ");
}
