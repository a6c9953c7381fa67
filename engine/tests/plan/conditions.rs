//! Preconditions and postconditions while planning: the ones that planning judges, and the steps that judge
//! the others.

use crate::world::{World, check, check_destroy};

const DISK: &str = r#"
[resource.disk.d]
name = "d"
size = 100
zone = "eu"
"#;

/// Returns the disk with one condition.
fn disk(kind: &str, condition: &str) -> String {
    format!("{DISK}lifecycle = {{ {kind} = {{ condition = '{condition}', message = \"No.\" }} }}\n")
}

/// Returns a unit that uses the disk, with one condition.
fn unit(kind: &str, condition: &str) -> String {
    format!(
        "{DISK}\n[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\nworkers = 1\n\
         [[resource.unit.u.lifecycle.{kind}]]\ncondition = '{condition}'\nmessage = \"No ${{disk.d.size}}.\"\n"
    )
}

#[test]
fn a_known_condition_is_judged_at_once() {
    check(
        &World::new(),
        &disk("precondition", "1 > 2"),
        "
create disk.d []
s0 = create disk.d
s1 = activate disk.d after s0
error:6: No.",
    );
    check(&World::of(DISK), &disk("precondition", "1 < 2"), "");
    check(&World::of(DISK), &disk("postcondition", "self.size > 100"), "error:6: No.");
    check(&World::of(DISK), &disk("postcondition", "self.size == 100"), "");
    let grown = disk("postcondition", "self.size > 100").replace("= 100", "= 200");
    check(
        &World::of(DISK),
        &grown,
        "
update disk.d [size]
s0 = update disk.d (disk-1)
s1 = verify disk.d after s0",
    );
    check_destroy(
        &World::of(DISK),
        &disk("precondition", "1 > 2"),
        "
delete disk.d []
s0 = delete disk.d (disk-1)",
    );
}

#[test]
fn a_condition_of_what_is_made_is_judged_around_it() {
    check(
        &World::new(),
        &unit("precondition", "disk.d.id != \"\""),
        "
create disk.d []
create unit.u []
s0 = create disk.d
s1 = activate disk.d after s0
s2 = require unit.u after s1
s3 = create unit.u after s1, s2
s4 = activate unit.u after s3",
    );
    check(
        &World::new(),
        &disk("postcondition", "self.size == 100"),
        "
create disk.d []
s0 = create disk.d
s1 = activate disk.d after s0
s2 = verify disk.d after s1",
    );
}

#[test]
fn what_depends_on_an_object_waits_for_its_postconditions() {
    let spec = disk("postcondition", "self.size == 100")
        + "[resource.unit.u]\nname = \"u\"\ndisk_id = \"${disk.d.id}\"\nworkers = 1\n";
    check(
        &World::new(),
        &spec,
        "
create disk.d []
create unit.u []
s0 = create disk.d
s1 = activate disk.d after s0
s2 = verify disk.d after s1
s3 = create unit.u after s2
s4 = activate unit.u after s3",
    );
}

#[test]
fn what_stays_as_it_is_is_judged_once_the_others_have_changed() {
    let spec = unit("postcondition", "disk.d.id != \"\"")
        .replace("zone = \"eu\"", "zone = \"us\"\nlifecycle = { allow_data_loss = true }")
        .replace("\"${disk.d.id}\"", "\"\"");
    let before = spec.replace("\"us\"", "\"eu\"");
    check(
        &World::of(&before),
        &spec,
        "
replace disk.d [zone]
s0 = delete disk.d (disk-1)
s1 = create disk.d after s0
s2 = activate disk.d after s1
s3 = verify unit.u after s2",
    );
}

#[test]
fn a_replace_that_deletes_first_is_required_before_the_delete() {
    let spec = r#"
[resource.image.base]
name = "base"
"#
    .to_owned()
        + &DISK.replace("eu", "us")
        + "lifecycle = { allow_data_loss = true, precondition = { condition = 'image.base.id != \"\"', message = 'No.' } }\n";
    check(
        &World::of(DISK),
        &spec,
        "
replace disk.d [zone]
create image.base []
s0 = create image.base
s1 = activate image.base after s0
s2 = require disk.d after s1
s3 = delete disk.d (disk-1) after s2
s4 = create disk.d after s1, s2, s3
s5 = activate disk.d after s4",
    );
}

#[test]
fn outputs_have_preconditions() {
    let spec = format!(
        "{DISK}\n[output.size]\nvalue = \"${{disk.d.size}}\"\n\
         [[output.size.precondition]]\ncondition = 'disk.d.size > 100'\nmessage = 'No.'\n"
    );
    check(&World::of(DISK), &spec, "error:10: No.");
}

#[test]
fn a_condition_that_cannot_be_computed_is_an_error() {
    let text = World::of(DISK).plan_text(&disk("postcondition", "[1][self.size] == 1"));
    assert!(text.contains("error:6: expression cannot be evaluated"), "{text}");
}

/// Returns two disks and a policy.
fn policed(policy: &str) -> String {
    format!(
        "{DISK}\n[resource.disk.e]\nname = \"e\"\nsize = 50\nzone = \"eu\"\n[policy.p]\n{policy}\n"
    )
}

#[test]
fn policies_over_each_change() {
    let spec = policed("for = \"disk\"\nassert = 'action == \"create\" && new.size < 100'");
    check(
        &World::of(&DISK.replace("100", "99")),
        &spec,
        "
update disk.d [size]
create disk.e []
s0 = update disk.d (disk-1)
s1 = create disk.e
s2 = activate disk.e after s1
error:13: the policy `p` does not hold",
    );
    let old = policed(
        "for = \"all\"\nassert = 'old == null || old.size <= 50'\nmessage = '${address} is large'",
    );
    check(
        &World::of(&old),
        &policed("for = \"all\"\nassert = 'old == null || old.size <= 50'\nmessage = '${address} is large'")
            .replace("100", "200")
            .replace("= 50", "= 60"),
        "
update disk.d [size]
update disk.e [size]
s0 = update disk.d (disk-1)
s1 = update disk.e (disk-2)
error:13: disk.d is large",
    );
    check_destroy(
        &World::of(&old),
        &policed(
            "for = \"disk\"\nseverity = \"warn\"\nassert = 'action != \"delete\"'\nmessage = '${name} goes'",
        ),
        "
delete disk.d []
delete disk.e []
s0 = delete disk.d (disk-1)
s1 = delete disk.e (disk-2)
warning:14: d goes
warning:14: e goes",
    );
}

#[test]
fn policies_over_the_whole_plan() {
    let sum = "assert = 'sum([for it in plan.resources : it.new.size]) < 150'";
    check(
        &World::of(&policed("assert = 'true'")),
        &policed(sum),
        "error:12: the policy `p` does not hold",
    );
    let deletes =
        "assert = 'length([for it in plan.changes : it if it.action == \"delete\"]) == 0'";
    check(
        &World::of(&policed("assert = 'true'")),
        &format!("{DISK}\n[policy.p]\n{deletes}"),
        "
delete disk.e []
s0 = delete disk.e (disk-2)
error:8: the policy `p` does not hold",
    );
}

#[test]
fn a_policy_that_is_not_known() {
    let of = |policy: &str| unit("precondition", "true") + "[policy.p]\n" + policy;
    let steps = |require: &str, last: usize| {
        format!(
            "
create disk.d []
create unit.u []
s0 = create disk.d
s1 = activate disk.d after s0
{require}s{last} = create unit.u after s1{}
s{} = activate unit.u after s{last}",
            if require.is_empty() { "" } else { ", s2" },
            last + 1,
        )
    };
    let in_time = of("for = \"unit\"\nassert = 'new.disk_id != \"x\"'");
    check(&World::new(), &in_time, &steps("s2 = require unit.u after s1\n", 3));
    let own = of("for = \"unit\"\nassert = 'new.id != \"x\"'");
    let refused = "\nerror:16: whether the policy `p` holds is not known before apply";
    check(&World::new(), &own, &(steps("", 2) + refused));
    let warned = format!("{own}\nseverity = \"warn\"");
    check(&World::new(), &warned, &(steps("", 2) + &refused.replace("error", "warning")));
    let whole = of("assert = 'alltrue([for it in plan.resources : it.new.id != \"x\"])'");
    check(&World::new(), &whole, &(steps("", 2) + &refused.replace("16", "15")));
}
