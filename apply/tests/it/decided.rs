//! Saved plans whose changes follow from `for_each` or from the flags of `lifecycle`. Another run, or
//! somebody at the API, may change the values that decided after the plan was saved.

use engine::value::Value;

use crate::world::World;

/// Returns a spec with a value that decides, by its outputs `on` and `keys`.
fn switch(on: bool) -> String {
    format!(
        "[resource.value.v]\ninput = {{ on = {on}, keys = ['{}'] }}\n",
        if on { "b" } else { "a" }
    )
}

fn disk(zone: &str, lifecycle: &str) -> String {
    format!(
        "[resource.disk.d]\nname = 'd'\nsize = 10\nzone = '{zone}'\nlifecycle = {{ allow_data_loss = true{lifecycle} }}\n"
    )
}

fn disks(of: &str) -> String {
    format!(
        "[resource.disk.d]\nfor_each = '${{{of}}}'\nname = '${{each.key}}'\nsize = 10\nzone = 'eu'\n"
    )
}

/// Applies a saved plan, after another run has applied `meanwhile` if it is given. Returns the text of the
/// error, or an empty text if the plan was applied.
async fn overtaken(before: &str, planned: &str, meanwhile: Option<&str>) -> String {
    let world = World::new();
    world.apply(before).await.unwrap();
    let (plan, diagnostics, _) = world.plan(planned).await;
    assert!(!diagnostics.has_errors() && !plan.steps.is_empty(), "{planned}: {diagnostics:?}");
    if let Some(meanwhile) = meanwhile {
        world.apply(meanwhile).await.unwrap();
    }
    let names = world.cloud.names("disk");
    let error =
        world.apply_saved(&plan).await.map_or_else(|error| error.to_string(), |()| String::new());
    assert!(error.is_empty() || world.cloud.names("disk") == names, "it says {error}");
    error
}

/// In each case, the plan deletes, creates or replaces an object because the switch is off. Another run
/// turns the switch on, and the saved plan is stale.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_is_stale_where_what_decided_it_changed() {
    let on = "value.v.output.on";
    let chosen = format!("{on} ? [\"a\", \"b\"] : [\"a\"]");
    let all = "[\"a\", \"b\"]";
    let local = |of: &str| format!("[local]\nkeys = '${{{of}}}'\n{}", disks("local.keys"));
    let derived =
        "[resource.value.u]\nfor_each = '${value.v.output.keys}'\ninput = '${each.key}'\n";
    let followed = "[resource.value.u]\ninput = '${value.v.output.on}'\n";
    let kept = |flag: &str| format!(", {flag} = '${{{on}}}'");
    let enabled = disk("eu", ", enabled = '${value.v.output.on}'");
    let through = disk("eu", ", enabled = '${value.u.output}'");
    let cases = [
        ("a delete by `enabled`", disk("eu", ""), enabled.clone()),
        (
            "a delete by what follows it",
            format!("{followed}{}", disk("eu", "")),
            format!("{followed}{through}"),
        ),
        ("a delete by `for_each`", disks(all), disks(&chosen)),
        ("a delete by a local", disks(all), local(&chosen)),
        ("a create by `for_each`", String::new(), disks("value.v.output.keys")),
        ("a create by a local", String::new(), local("value.v.output.keys")),
        ("a create for instances", derived.to_owned(), format!("{derived}{}", disks("value.u"))),
        (
            "a delete by `retain`",
            disk("eu", &kept("retain")),
            disk("eu", &format!("{}, enabled = false", kept("retain"))),
        ),
        (
            "a replace by `prevent_destroy`",
            disk("eu", &kept("prevent_destroy")),
            disk("us", &kept("prevent_destroy")),
        ),
        ("a replace by `retain`", disk("eu", &kept("retain")), disk("us", &kept("retain"))),
    ];
    for (case, before, planned) in cases {
        let before = switch(false) + &before;
        let planned_off = switch(false) + &planned;
        // The spec of the other run differs from the first one in the switch alone.
        let turned = before.replace(&switch(false), &switch(true));
        let error = overtaken(&before, &planned_off, Some(&turned)).await;
        let why = "stale plan: ";
        assert!(error.starts_with(why) && error.contains("value."), "{case}: {error}");
        assert_eq!(overtaken(&before, &planned_off, None).await, "", "{case}");
        assert_eq!(overtaken(&before, &planned_off, Some(&before)).await, "", "{case}");
    }
}

/// Somebody changes the value that decided at the API. The saved plan is stale, as after a change by a run.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_is_stale_where_what_decided_it_changed_outside() {
    let unit = "[resource.unit.u]\nname = 'u'\n";
    let enabled = disk("eu", ", enabled = '${unit.u.workers > 2}'");
    let world = World::new();
    world.apply(&format!("{unit}{}", disk("eu", ""))).await.unwrap();
    let (plan, ..) = world.plan(&format!("{unit}{enabled}")).await;
    assert!(!plan.steps.is_empty());
    let by_hand = |workers| {
        let mut shared = world.cloud.shared.lock().unwrap();
        let unit = shared.objects.iter_mut().find(|((ty, _), _)| &**ty == "unit");
        unit.unwrap().1.insert("workers".into(), Value::Integer(workers));
    };
    by_hand(5);
    let error = world.apply_saved(&plan).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: unit.u: nothing was planned, now update");
    assert_eq!(world.cloud.names("disk"), ["d"]);
    by_hand(0);
    world.apply_saved(&plan).await.unwrap();
    assert!(world.cloud.names("disk").is_empty());
}

/// Another run changes a value that decided nothing of the saved plan, and the plan is applied.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_does_not_mind_what_decided_nothing_of_it() {
    let other =
        "[resource.unit.u]\nname = 'u'\nlifecycle = { prevent_destroy = '${value.v.output.on}' }\n";
    let before = format!("{}{other}", switch(false));
    let planned = format!("{before}{}", disks("[\"a\"]"));
    let meanwhile = format!("{}{other}", switch(true));
    assert_eq!(overtaken(&before, &planned, Some(&meanwhile)).await, "");
}
