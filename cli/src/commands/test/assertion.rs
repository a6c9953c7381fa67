//! The values that an assertion sees, and the result of one.

use std::collections::BTreeMap;

use engine::address::{Address, Block};
use engine::condition::{Verdict, judge};
use engine::expression::evaluate::Scope;
use engine::expression::{Expr, Root};
use engine::stored::from_json;
use engine::value::{Attributes, Datum, Value};
use serde_json::Value as Json;

/// The plan, outputs and objects after a step.
pub(super) struct World {
    words: BTreeMap<&'static str, Value>,
    objects: BTreeMap<String, Value>,
}

impl World {
    /// Returns the world of a step: the plan as `plumb plan --json` prints it, the outputs, and the state as
    /// `plumb show --json` prints it.
    pub(super) fn new(plan: &Json, outputs: &Json, state: &Json) -> Self {
        let resources = state["resources"].as_array().into_iter().flatten();
        let object = |it: &Json| {
            let address = it["address"].as_str()?.to_owned();
            Some((address, from_json(&it["attributes"])))
        };
        let objects: BTreeMap<String, Value> = resources.filter_map(object).collect();
        let by_address: Attributes = objects
            .iter()
            .map(|(address, attributes)| (address.as_str().into(), attributes.clone()))
            .collect();
        let words = BTreeMap::from([
            ("plan", from_json(plan)),
            ("outputs", from_json(outputs)),
            ("objects", Value::map(by_address)),
        ]);
        Self { words, objects }
    }

    /// Returns `None` if an assertion holds, else the reason: the values that made it false, or why it cannot
    /// be computed.
    pub(super) fn failure(&self, expr: &Expr) -> Option<String> {
        match judge(expr, None, self) {
            Verdict::Holds => None,
            Verdict::Broken(broken) => Some(broken.values),
            Verdict::Unknown => Some("it refers to something that is not known".to_owned()),
            Verdict::Unclear(error) => {
                let help = error.help.map(|help| format!("\n{help}")).unwrap_or_default();
                Some(error.message + &help)
            }
        }
    }
}

impl Scope for World {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else {
            return Err("a test sees `plan`, `outputs`, `objects`, and resources by their address"
                .to_owned());
        };
        let word = self.words.get(&**name).cloned().map(Datum::plain);
        word.ok_or_else(|| format!("a test sees `plan`, `outputs` and `objects`, and no `{name}`"))
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let address = block.instance(key.map(Into::into));
        if let Some(word) = self.words.get(&*block.ty) {
            // Two names are parsed as the address of a resource.
            let part = word.as_map().and_then(|parts| parts.get(&*block.name));
            let part = match key {
                Some(key) => part.and_then(|part| part.as_map()?.get(key)),
                None => part,
            };
            let part = part.cloned().map(Datum::plain);
            return part.ok_or_else(|| format!("there is no `{address}`"));
        }
        if let Some(object) = self.objects.get(&address.to_string()) {
            return Ok(Datum::plain(object.clone()));
        }
        let instance = |(address, object): (&String, &Value)| {
            let address: Address = address.parse().ok()?;
            (address.block == *block).then_some((address.key?, object.clone()))
        };
        let instances: Attributes = self.objects.iter().filter_map(instance).collect();
        if key.is_none() && !instances.is_empty() {
            return Ok(Datum::plain(Value::map(instances)));
        }
        Err(format!("there is no {address} in the state after this step"))
    }

    fn is_keyed(&self, block: &Block) -> bool {
        let prefix = format!("{block}[");
        self.objects.keys().any(|address| address.starts_with(&prefix))
    }
}

#[cfg(test)]
mod tests {
    use engine::expression::parse::{Dialect, expression};
    use serde_json::json;

    use super::*;

    fn failure(text: &str) -> String {
        let plan = json!({ "summary": { "create": 2 } });
        let state = json!({ "resources": [
            { "address": "endpoint.chat", "attributes": { "workers_max": 3 } },
            { "address": "value.a[\"x\"]", "attributes": { "input": 1 } },
        ] });
        let world = World::new(&plan, &json!({ "url": "http://x" }), &state);
        let expr = expression(text, Dialect::Spec).unwrap();
        world.failure(&expr).unwrap_or_else(|| "holds".to_owned())
    }

    #[test]
    fn assertions_see_plan_outputs_and_objects() {
        for (text, result) in [
            ("plan.summary.create == 2", "holds"),
            ("plan.summary.create == 3", "`plan.summary.create` is 2"),
            ("endpoint.chat.workers_max <= 3 && value.a[\"x\"].input == 1", "holds"),
            ("length(value.a) == 1", "holds"),
            ("startswith(outputs.url, \"https\")", "`outputs.url` is \"http://x\""),
            (
                "objects[\"endpoint.chat\"].workers_max > 3",
                "`objects[\"endpoint.chat\"].workers_max` is 3",
            ),
            (
                "endpoint.chat.workers_max",
                "this is neither true nor false\nwrite a condition, such as `self.workers > 0`",
            ),
            ("endpoint.other.id == 1", "there is no endpoint.other in the state after this step"),
        ] {
            assert_eq!(failure(text), result, "{text}");
        }
    }
}
