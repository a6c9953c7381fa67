//! Look-ups: the objects that data blocks stand for, found in what was read from outside.
//!
//! This module does no input or output, like all of planning: the lists of objects are an input. If a look-up
//! needs more reads, it asks for them, and the shell plans again with the answers; until then the object
//! counts as unknown.

mod diagnostics;
mod fetch;
mod matching;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::diagnostics as say;
use self::fetch::Given;
use self::matching::{Condition, Sought};
use crate::address::{Address, Name};
use crate::condition::Verdict;
use crate::config::{self, DataConfig, Fetched, Item};
use crate::expression::evaluate::Scope;
use crate::plan::data_request::{DataRequest, Question};
use crate::plan::decide::Reached;
use crate::plan::decide::action::all_unknown;
use crate::plan::decide::conditions::{WithObject, verdict};
use crate::plan::evaluate::desired::{Instance, evaluate_spec};
use crate::plan::evaluate::scope::{SpecScope, object};
use crate::plan::facts::prior::derive;
use crate::plan::facts::unavailable;
use crate::plan::findings::Findings;
use crate::plan::input::Observed;
use crate::plan::{Missing, Why};
use crate::schema::{Presence, SeenIn};
use crate::sorted::Set;
use crate::value::{Attributes, Datum, Paths, Value};

/// The result of a look-up.
pub(in crate::plan) struct LookedUp {
    /// The object, as other resources may refer to it.
    pub(in crate::plan) object: Datum,
    /// The secrets of the object that no run has in clear.
    pub(in crate::plan) unavailable: Vec<Missing>,
    /// The resources that the conditions were computed from.
    pub(in crate::plan) touched: Set<Address>,
}

/// Looks up the object of one instance of a data block.
pub(in crate::plan) fn look_up(
    reached: &Reached<'_, '_>,
    data: &DataConfig,
    instance: &Instance<'_>,
    found: &mut Findings,
) -> LookedUp {
    let scope = reached.context.scope(reached.evaluation).with_each(instance.each.as_ref());
    let look_up = LookUp { reached, data, address: &instance.address };
    look_up.judge("precondition", &data.lifecycle.preconditions, &scope, found);
    let read = if let Some(kind) = Fetched::of(&data.block) {
        look_up.fetched(kind, &scope, found)
    } else {
        let attributes = look_up.found(&scope, found);
        attributes.map(|attributes| (attributes, data.schema.sensitive()))
    };
    let is_found = read.is_some();
    let (attributes, sensitive, unavailable) = if let Some((attributes, sensitive)) = read {
        let (attributes, unavailable) = look_up.shown(attributes);
        (attributes, sensitive, unavailable)
    } else {
        // A diagnostic has reported the error; expressions that refer to the object are still checked.
        let unknown = all_unknown(&data.schema, &instance.address);
        (Arc::new(unknown), data.schema.sensitive(), Vec::new())
    };
    look_up.touch_dependencies(&scope);
    let object = object(attributes, sensitive);
    if is_found {
        let scope = WithObject::new(&scope, &instance.address, &object);
        look_up.judge("postcondition", &data.lifecycle.postconditions, &scope, found);
    }
    LookedUp { object, unavailable, touched: scope.touched() }
}

struct LookUp<'p, 'a> {
    reached: &'p Reached<'p, 'a>,
    data: &'p DataConfig,
    address: &'p Address,
}

impl LookUp<'_, '_> {
    /// Judges conditions of some kind. No run judges them later, so one that is not known now is an error.
    fn judge(
        &self,
        kind: &str,
        conditions: &[config::Condition],
        scope: &dyn Scope,
        found: &mut Findings,
    ) {
        for condition in conditions {
            let what = (kind, condition);
            let verdict = verdict(what, scope, self.address, &mut found.diagnostics);
            let validating = self.reached.context.input.options.validating;
            if verdict == Some(Verdict::Unknown) && !validating {
                let at = condition.condition.span;
                found.diagnostics.push(say::condition_unknown(kind, at, self.address));
            }
        }
    }

    /// Returns the attributes of the object; none if they are not known. Then an error is reported, or a read
    /// is requested.
    fn found(&self, scope: &SpecScope<'_>, found: &mut Findings) -> Option<Attributes> {
        let Self { reached, data, address } = self;
        let input = reached.context.input;
        let conditions = self.conditions(scope, found)?;
        if input.options.validating || !self.is_settled(found) {
            return None;
        }
        let provider = data.provider.of(address);
        let key = (provider.clone(), data.block.ty.clone());
        let Some(listed) = input.observations.listed.get(&key) else {
            found.diagnostics.push(say::not_listed(data, address));
            return None;
        };
        let sought = Sought { schema: &data.schema, key: &input.snapshot.seal_key };
        let (id, listed) = match sought.find(listed, &conditions) {
            Ok(found) => found,
            Err(miss) => {
                found.diagnostics.push(say::missed(data, address, &miss));
                return None;
            }
        };
        if let Some(manager) = reached.context.manager(&provider, &data.block.ty, id) {
            found.diagnostics.push(say::managed_here(data, address, manager));
        }
        if !data.is_read_by_id() {
            return Some(listed.clone());
        }
        match input.observations.read.get(*address) {
            Some(Observed::Live(attributes)) => Some(attributes.clone()),
            Some(Observed::Gone) => {
                found.diagnostics.push(say::gone_meanwhile(data, address, id));
                None
            }
            None => {
                let question = Question::Object { provider, id: id.clone() };
                found.requests.push(DataRequest { address: Address::clone(address), question });
                None
            }
        }
    }

    /// Returns data that is no object; none if it is not known. Then an error is reported, or a read is
    /// requested.
    fn fetched(
        &self,
        kind: Fetched,
        scope: &SpecScope<'_>,
        found: &mut Findings,
    ) -> Option<(Attributes, Paths)> {
        let Self { reached, data, address } = self;
        let input = reached.context.input;
        let given = self.given(scope, found)?;
        let question = given.question(kind, &mut found.diagnostics)?;
        if input.options.validating || !self.is_settled(found) {
            return None;
        }
        match input.observations.answers.get(*address) {
            Some(Ok(answer)) => {
                let (attributes, sensitive) = given.object(answer);
                let clear = object(attributes.clone(), sensitive.clone());
                found.looked_up.insert(Address::clone(address), clear);
                Some((attributes, sensitive))
            }
            Some(Err(unanswered)) => {
                found.diagnostics.push(say::unanswered(data, address, unanswered));
                None
            }
            None => {
                let question = Question::Fetch(question);
                found.requests.push(DataRequest { address: Address::clone(address), question });
                None
            }
        }
    }

    /// Evaluates the attributes of a block that looks for data that is no object.
    fn given(&self, scope: &SpecScope<'_>, found: &mut Findings) -> Option<Given> {
        let (mut values, mut is_whole) = (BTreeMap::new(), true);
        for (name, item) in self.data.attributes.iter() {
            match self.condition(name, item, scope, found) {
                Ok(None) => {}
                Ok(Some(Condition { name, value, is_secret })) => {
                    let sensitive = if is_secret { Paths::whole() } else { Paths::none() };
                    values.insert(name, (Datum { value, sensitive }, item.value.span));
                }
                Err(Refused) => is_whole = false,
            }
        }
        is_whole.then_some(Given { values, header: self.data.header })
    }

    /// Evaluates the attributes that the object must have; none if one of them is wrong or not known, which a
    /// diagnostic then says.
    fn conditions(&self, scope: &SpecScope<'_>, found: &mut Findings) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        let mut is_whole = true;
        for (name, item) in self.data.attributes.iter() {
            match self.condition(name, item, scope, found) {
                Ok(condition) => conditions.extend(condition),
                Err(Refused) => is_whole = false,
            }
        }
        if is_whole && conditions.is_empty() {
            found.diagnostics.push(say::no_condition(self.data, self.address));
            return None;
        }
        is_whole.then_some(conditions)
    }

    /// Evaluates one condition; none for a null, which is no condition.
    fn condition(
        &self,
        name: &Name,
        item: &Item,
        scope: &SpecScope<'_>,
        found: &mut Findings,
    ) -> Result<Option<Condition>, Refused> {
        let Self { data, address, reached } = self;
        let diagnostics = &mut found.diagnostics;
        let datum = evaluate_spec(&item.value, scope, address, diagnostics).ok_or(Refused)?;
        if datum.value.is_null() {
            return Ok(None);
        }
        if !datum.value.is_known() {
            if !reached.context.input.options.validating {
                diagnostics.push(say::unknown_condition(name, item.value.span, address));
            }
            return Err(Refused);
        }
        let attribute = data.schema.attributes.get(name);
        let is_secret =
            !datum.sensitive.is_empty() || attribute.is_some_and(|attribute| attribute.sensitive);
        let Some(attribute) = attribute else {
            return Ok(Some(Condition { name: name.clone(), value: datum.value, is_secret }));
        };
        let value = datum.value.convert(&attribute.ty).map_err(|misfit| {
            let what = (&**name, is_secret);
            diagnostics.push(say::misfit(item.value.span, what, &misfit, address));
            Refused
        })?;
        Ok(Some(Condition { name: name.clone(), value: attribute.as_shown(value), is_secret }))
    }

    /// Returns true if this plan changes nothing that the look-up waits for; else reports the change.
    fn is_settled(&self, found: &mut Findings) -> bool {
        let changing = &self.reached.decisions.changing;
        let is_open = |(before, _): &&(Address, _)| changing.is_changing(before);
        let open = self.data.depends_on.iter().find(is_open);
        if let Some((before, span)) = open {
            found.diagnostics.push(say::comes_after(self.address, before, *span));
        }
        open.is_none()
    }

    /// Completes the observed attributes of an object; returns them with the secrets that no run has in
    /// clear.
    fn shown(&self, mut attributes: Attributes) -> (Arc<Attributes>, Vec<Missing>) {
        let Self { data, address, .. } = self;
        let schema = &data.schema;
        derive(schema, &mut attributes, &mut schema.sensitive());
        let mut missing = Vec::new();
        for (name, attribute) in &schema.attributes {
            let value = attributes.get(name).cloned().unwrap_or(Value::Null);
            attributes.insert(name.clone(), value.clone());
            let is_hidden = attribute.seen_in == SeenIn::Never || attribute.local;
            let why = if is_hidden && attribute.derived.is_none() {
                Why::Never
            } else if value.holds_sealed() {
                Why::LookedUp
            } else if value.is_null()
                && attribute.sensitive
                && attribute.presence == Presence::Computed
            {
                Why::Unshown
            } else {
                continue;
            };
            let (address, attribute) = (Address::clone(address), name.clone());
            missing.push(Missing { address, attribute, why, may_show: false });
        }
        let mut attributes = Arc::new(attributes);
        unavailable::mark(&missing, schema, &mut attributes);
        (attributes, missing)
    }

    /// Records in the scope the resources that the block waits for.
    fn touch_dependencies(&self, scope: &SpecScope<'_>) {
        for (target, _) in &self.data.depends_on {
            // The resolution has already reported a resource that does not exist.
            let _seen = scope.resource(&target.block, target.key.as_deref());
        }
    }
}

/// An error: a condition is wrong, which a diagnostic has reported.
struct Refused;

/// Returns an unknown object, for a block whose look-ups are not carried out.
pub(in crate::plan) fn unknown(data: &DataConfig, address: &Address) -> Datum {
    object(all_unknown(&data.schema, address), data.schema.sensitive())
}
