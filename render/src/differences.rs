//! The differences between a plan and the plan that was made again, as lines: the planned change, and the
//! change now.

use std::fmt::Write as _;

use engine::address::Name;
use engine::digest::Digest;
use engine::plan::{Action, Change, Difference, OutputChange, Step, text as program};
use engine::shell;
use engine::state::ObjectId;
use engine::value::{Attributes, Paths, Segment, Value};

use crate::safe;
use crate::shown::Shown;

/// The most attributes that a line names.
const NAMED_MAX: usize = 4;

/// The longest text of a value, in characters.
const VALUE_MAX: usize = 60;

/// Returns the differences as lines: `-` for the planned change, `+` for the change now.
pub fn text(differences: &[Difference]) -> String {
    let head = "The plan is another one by now (- as it was made, + as it would be made now):\n";
    let mut lines = Lines(head.to_owned());
    for difference in differences {
        lines.add(difference);
    }
    lines.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, mark: char, about: &str, what: &str) {
        let _infallible = writeln!(self.0, "  {mark} {}: {what}", safe::text(about));
    }

    fn add(&mut self, difference: &Difference) {
        match difference {
            Difference::State => {
                self.line('-', "state", "the one that the plan was made for");
                self.line('+', "state", "another one: its lineage differs");
            }
            Difference::Descriptor { provider, planned, now } => {
                let about = format!("provider {provider}");
                self.line('-', &about, &descriptor_words(planned.as_ref()));
                self.line('+', &about, &descriptor_words(now.as_ref()));
            }
            Difference::Account(provider) => {
                let about = format!("provider {provider}");
                self.line('-', &about, "the account and address that the plan was made for");
                self.line('+', &about, "another account, or another address");
            }
            Difference::Change { address, planned, now } => {
                self.add_change(&address.to_string(), planned.as_deref(), now.as_deref());
            }
            Difference::Namesake { address, objects } => {
                let about = address.to_string();
                for id in objects {
                    self.line('+', &about, &namesake_words(&about, id));
                }
            }
            Difference::User { address, users } => {
                for user in users {
                    self.line('+', &address.to_string(), &format!("{user} uses it now"));
                }
            }
            Difference::Output { name, planned, now } => {
                let about = format!("output {name}");
                self.line('-', &about, &output_words(planned.as_deref()));
                self.line('+', &about, &output_words(now.as_deref()));
            }
            Difference::Steps { planned, now } => self.add_steps(planned, now),
            Difference::Accepted(addresses) => {
                let what = "something else is live there than the plan was to accept";
                for address in addresses {
                    self.line('+', &address.to_string(), what);
                }
            }
        }
    }

    fn add_change(&mut self, about: &str, planned: Option<&Change>, now: Option<&Change>) {
        let names = differing(planned, now);
        if let Some(change) = planned {
            self.line('-', about, &change_words(change, &names, now));
        }
        match now {
            Some(change) => self.line('+', about, &change_words(change, &names, planned)),
            None => {
                self.line('+', about, "nothing to do: it is neither in the spec nor in the state");
            }
        }
    }

    fn add_steps(&mut self, planned: &[Step], now: &[Step]) {
        let [planned, now]: [Vec<String>; 2] =
            [planned, now].map(|steps| steps.iter().map(program::line).collect());
        for step in planned.iter().filter(|step| !now.contains(step)) {
            self.line('-', "step", step);
        }
        for step in now.iter().filter(|step| !planned.contains(step)) {
            self.line('+', "step", step);
        }
    }
}

fn descriptor_words(digest: Option<&Digest>) -> String {
    digest.map_or_else(|| "not configured".to_owned(), |digest| format!("descriptor {digest}"))
}

fn namesake_words(address: &str, id: &ObjectId) -> String {
    let id = safe::text(&id.0);
    format!(
        "{id} has its name now, and the state does not know it; if that is its object, `plumb import {} {}` takes it over",
        shell::quoted(address),
        shell::quoted(&id)
    )
}

/// Returns the attributes to which the two changes give different values.
fn differing(planned: Option<&Change>, now: Option<&Change>) -> Vec<Name> {
    let (Some(planned), Some(now)) = (planned, now) else { return Vec::new() };
    let empty = Attributes::new();
    let of = |object: &Option<std::sync::Arc<Attributes>>, name: &Name| {
        object.as_deref().and_then(|object| object.get(name)).map(engine::stored::Stored::of_sealed)
    };
    let objects = [&planned.before, &planned.after, &now.before, &now.after];
    let mut names: Vec<Name> = objects
        .iter()
        .flat_map(|object| object.as_deref().unwrap_or(&empty).keys())
        .filter(|name| {
            of(&planned.before, name) != of(&now.before, name)
                || of(&planned.after, name) != of(&now.after, name)
        })
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    // Attributes that the API computes depend on the given ones, so only the given ones are compared.
    let is_given = |name: &Name| planned.managed.contains(name) || now.managed.contains(name);
    if names.iter().any(is_given) {
        names.retain(is_given);
    }
    names
}

/// Returns a description of a change: its action, and the new values of the attributes in which the two
/// changes differ.
fn change_words(change: &Change, names: &[Name], other: Option<&Change>) -> String {
    let mut text = match change.action {
        Action::NoOp => "no change".to_owned(),
        action => action.word().to_owned(),
    };
    if let Some(object) = change
        .object
        .as_ref()
        .filter(|own| other.is_some_and(|other| other.object.as_ref() != Some(own)))
    {
        let _infallible = write!(text, ", of the object {}", safe::text(&object.0));
    }
    // If only one of the changes has an object before, all its attributes differ.
    if other.is_some_and(|other| other.before.is_some() != change.before.is_some()) {
        return text;
    }
    let shown: Vec<String> =
        names.iter().take(NAMED_MAX).map(|name| becomes(change, name)).collect();
    let separator = if change.action == Action::NoOp { ": " } else { " " };
    if !shown.is_empty() {
        text = text + separator + &shown.join(", ");
    }
    if names.len() > NAMED_MAX {
        let _infallible = write!(text, ", and {} more", names.len() - NAMED_MAX);
    }
    text
}

/// Returns the change of an attribute: `size 10 -> 20`, or `size is 10` if it stays.
fn becomes(change: &Change, name: &Name) -> String {
    let places = change.sensitive.inside(&Segment::Key(name.clone()));
    let of = |object: &Option<std::sync::Arc<Attributes>>| {
        object.as_deref().map(|object| value(object.get(name).unwrap_or(&Value::Null), &places))
    };
    match (of(&change.before), of(&change.after)) {
        (Some(before), Some(after)) if before == after => format!("{name} is {after}"),
        (Some(before), Some(after)) => format!("{name} {before} -> {after}"),
        (Some(only), None) | (None, Some(only)) => format!("{name} is {only}"),
        (None, None) => name.to_string(),
    }
}

fn output_words(output: Option<&OutputChange>) -> String {
    let Some(output) = output else { return "no change".to_owned() };
    let places = if output.sensitive { Paths::whole() } else { Paths::none() };
    let shown = |value: &Option<Value>| value.as_ref().map(|it| self::value(it, &places));
    let values = match (shown(&output.before), shown(&output.after)) {
        (Some(before), Some(after)) => format!(" {before} -> {after}"),
        (Some(only), None) | (None, Some(only)) => format!(" {only}"),
        (None, None) => String::new(),
    };
    match output.action {
        Action::NoOp => "no change".to_owned(),
        action => format!("{}{values}", action.word()),
    }
}

fn value(value: &Value, places: &Paths) -> String {
    let shown = match Shown::new(value, places) {
        Shown::Sensitive(_) => "(sensitive)".to_owned(),
        Shown::Unknown(_) => "(known after apply)".to_owned(),
        shown => serde_json::to_string(&shown).unwrap_or_default(),
    };
    let shown = safe::text(&shown);
    if shown.chars().count() <= VALUE_MAX {
        return shown;
    }
    shown.chars().take(VALUE_MAX - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use engine::value::Path;

    use super::*;

    fn attributes(size: i64, password: &str, seen: i64) -> Arc<Attributes> {
        let entries = [
            ("password", Value::string(password)),
            ("seen", Value::Integer(seen)),
            ("size", Value::Integer(size)),
        ];
        Arc::new(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Returns a change of `disk.d`, whose size and password the spec gives.
    fn change(action: Action, before: Option<i64>, after: Option<i64>) -> Change {
        let mut change = Change::new("disk.d".parse().unwrap(), "cloud".into());
        change.action = action;
        change.before = before.map(|size| attributes(size, &format!("hunter{size}"), 1));
        change.after = after.map(|size| attributes(size, "halibut", 2));
        change.managed = ["size".into(), "password".into()].into_iter().collect();
        change.sensitive.insert(Path::attribute("password"));
        change
    }

    fn change_difference(planned: Option<Change>, now: Option<Change>) -> Difference {
        let [planned, now] = [planned, now].map(|change| change.map(Box::new));
        Difference::Change { address: "disk.d".parse().unwrap(), planned, now }
    }

    #[test]
    fn a_changed_update_names_what_the_spec_gives_and_shows_no_secret() {
        let planned = change(Action::Update, Some(1), Some(3));
        let now = change(Action::Update, Some(2), Some(3));
        let text = text(&[change_difference(Some(planned), Some(now))]);
        insta::assert_snapshot!(text, @r"
        The plan is another one by now (- as it was made, + as it would be made now):
          - disk.d: update password is (sensitive), size 1 -> 3
          + disk.d: update password is (sensitive), size 2 -> 3
        ");
    }

    #[test]
    fn each_difference_is_a_line_as_planned_and_a_line_as_now() {
        let done = change(Action::NoOp, Some(3), Some(3));
        let users = BTreeSet::from(["unit.u".parse().unwrap()]);
        let objects = BTreeSet::from([ObjectId("disk-7".into())]);
        let text = text(&[
            Difference::State,
            Difference::Account("cloud".into()),
            change_difference(Some(change(Action::Create, None, Some(3))), Some(done)),
            change_difference(None, Some(change(Action::Delete, Some(3), None))),
            change_difference(Some(change(Action::Delete, Some(3), None)), None),
            Difference::Namesake { address: "disk.d".parse().unwrap(), objects },
            Difference::User { address: "disk.d".parse().unwrap(), users },
        ]);
        insta::assert_snapshot!(text, @r"
        The plan is another one by now (- as it was made, + as it would be made now):
          - state: the one that the plan was made for
          + state: another one: its lineage differs
          - provider cloud: the account and address that the plan was made for
          + provider cloud: another account, or another address
          - disk.d: create
          + disk.d: no change
          + disk.d: delete
          - disk.d: delete
          + disk.d: nothing to do: it is neither in the spec nor in the state
          + disk.d: disk-7 has its name now, and the state does not know it; if that is its object, `plumb import disk.d disk-7` takes it over
          + disk.d: unit.u uses it now
        ");
    }
}
