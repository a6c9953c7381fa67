//! An instance as the spec wants it: its attributes evaluated, converted and checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::config::for_each::keys;
use crate::config::{Item, ResourceConfig, SpecExpr};
use crate::constraint;
use crate::diagnostics::Diagnostics;
use crate::expression::{Expr, ExprError, evaluate};
use crate::plan::evaluate::for_each_provenance::Origins;
use crate::plan::evaluate::scope::{Each, EachSource, SpecScope};
use crate::plan::evaluate::trigger_references;
use crate::plan::limits;
use crate::plan::{SecretInputs, diagnostics};
use crate::schema::{Attribute, Identity, Presence};
use crate::sorted::Set;
use crate::value::{Attributes, Datum, Path, Paths, Value};

/// The attributes that the spec wants for one instance, with their secrets and dependencies.
#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Wanted {
    /// The managed attributes, in clear, in the schema's types.
    pub(in crate::plan) attributes: Attributes,
    /// The sensitive places of the attributes, by the spec and by the schema.
    pub(in crate::plan) sensitive: Paths,
    /// The expressions by which apply computes the sensitive attributes again, by attribute.
    pub(in crate::plan) secrets: BTreeMap<Name, Expr>,
    /// The inputs of the sensitive attributes that cannot be computed now, by attribute.
    pub(in crate::plan) secret_inputs: BTreeMap<Name, SecretInputs>,
    /// The resources that the attributes were computed from, and those of `depends_on`.
    pub(in crate::plan) dependencies: Set<Address>,
    /// The resources that attributes with ignored changes were computed from, by attribute: an object that
    /// exists does not depend on them.
    pub(in crate::plan) ignored: BTreeMap<Name, Set<Address>>,
}

/// One instance of a block, before its attributes are evaluated.
pub(in crate::plan) struct Instance<'a> {
    /// The address of the instance.
    pub(in crate::plan) address: Address,
    /// The `each` of the instance; none if the block has no `for_each`.
    pub(in crate::plan) each: Option<Each<'a>>,
}

/// Returns the instances of a resource by key; none if `for_each` is wrong, which a diagnostic then says.
pub(in crate::plan) fn expand<'a>(
    resource: &'a ResourceConfig,
    scope: &SpecScope<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Instance<'a>>> {
    expand_block((&resource.block, resource.for_each.as_ref()), scope, diagnostics)
}

/// Returns the instances of a block with this `for_each`; none if `for_each` is wrong, which a diagnostic
/// then says.
pub(in crate::plan) fn expand_block<'a>(
    (block, for_each): (&Block, Option<&'a SpecExpr>),
    scope: &SpecScope<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Instance<'a>>> {
    let Some(for_each) = for_each else {
        return Some(vec![Instance { address: block.instance(None), each: None }]);
    };
    let datum = evaluate_spec(for_each, scope, &block.instance(None), diagnostics)?;
    let keys = match keys(&datum) {
        Ok(keys) if keys.iter().any(|(key, _)| key.is_empty()) => {
            diagnostics.push(diagnostics::empty_key(for_each.span));
            return None;
        }
        Ok(keys) => keys,
        Err(why) => {
            diagnostics.push(diagnostics::bad_for_each(for_each.span, why));
            return None;
        }
    };
    let all = Arc::new(scope.touched());
    let mut origins = if all.len() > 1 { Origins::of(&for_each.expr, scope) } else { None };
    let source = EachSource::new(&for_each.expr);
    let instance = |(key, value): (Name, Datum)| {
        let own = origins.as_mut().and_then(|origins| origins.take(&key));
        let touched = own.map_or_else(|| all.clone(), Arc::new);
        Instance {
            address: block.instance(Some(key.clone())),
            each: Some(Each { key, value, source: source.clone(), touched }),
        }
    };
    Some(keys.into_iter().map(instance).collect())
}

/// Evaluates an expression of a resource; returns none if it fails, which a diagnostic then says.
pub(in crate::plan) fn evaluate_spec(
    item: &SpecExpr,
    scope: &SpecScope<'_>,
    address: &Address,
    diagnostics: &mut Diagnostics,
) -> Option<Datum> {
    match evaluate::evaluate(&item.expr, scope) {
        Ok(datum) => Some(datum),
        Err(error) => {
            diagnostics.push(diagnostics::evaluation(item.span_of(error.range), &error, address));
            None
        }
    }
}

/// Evaluates a boolean of `lifecycle`; returns none if it is absent or wrong. The boolean must not be
/// sensitive: the plan shows its effects, so a series of conditions over a secret would reveal the secret bit
/// by bit.
pub(in crate::plan) fn flag(
    item: Option<&SpecExpr>,
    word: &'static str,
    scope: &SpecScope<'_>,
    address: &Address,
    diagnostics: &mut Diagnostics,
) -> Option<bool> {
    let item = item?;
    let datum = evaluate_spec(item, scope, address, diagnostics)?;
    if !datum.sensitive.is_empty() {
        diagnostics.push(diagnostics::flag_sensitive(item.span, word, address));
        return None;
    }
    match datum.value {
        Value::Bool(value) => Some(value),
        Value::Unknown(_) => {
            diagnostics.push(diagnostics::flag_unknown(item.span, word, address));
            None
        }
        _ => {
            diagnostics.push(diagnostics::flag_not_bool(item.span, word, address));
            None
        }
    }
}

/// Evaluates the attributes of an instance; returns none if one of them is wrong, which a diagnostic then
/// says.
pub(in crate::plan) fn wanted(
    resource: &ResourceConfig,
    address: &Address,
    scope: &SpecScope<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Wanted> {
    let mut wanted = Wanted { sensitive: resource.schema.sensitive(), ..Wanted::default() };
    let mut whole = true;
    wanted.note_touched(None, resource, scope);
    for (name, attribute) in &resource.schema.attributes {
        if attribute.presence == Presence::Computed {
            continue;
        }
        let given = match resource.attributes.get(name) {
            Some(item) => given(resource, (name, attribute), item, (address, scope), diagnostics),
            None => Given::Absent,
        };
        match given {
            Given::Value(datum) => {
                let put = wanted.put(name, datum, resource, scope);
                let item = resource.attributes.get(name);
                if let (Err(error), Some(item)) = (put, item) {
                    let span = item.value.span_of(error.range);
                    diagnostics.push(diagnostics::evaluation(span, &error, address));
                    whole = false;
                }
            }
            Given::Wrong => whole = false,
            Given::Absent => match &attribute.default {
                Some(default) => {
                    wanted.attributes.insert(name.clone(), default.clone());
                }
                None if attribute.presence == Presence::Required => {
                    diagnostics.push(diagnostics::required_is_null(resource, name, address));
                    whole = false;
                }
                None => {}
            },
        }
        wanted.note_touched(Some(name), resource, scope);
    }
    let secrets = wanted.secrets.values().map(limits::weight_of_expression);
    scope.spend(limits::weight_of(&wanted.attributes) + secrets.sum::<usize>());
    wanted.dependencies.extend(dependencies(resource, scope));
    // An instance never depends on itself.
    wanted.dependencies.remove(address);
    wanted.ignored.values_mut().for_each(|touched| {
        touched.remove(address);
    });
    whole.then_some(wanted)
}

impl Wanted {
    /// Returns all resources that the spec refers to, including those of attributes with ignored changes.
    pub(in crate::plan) fn referred(&self) -> impl Iterator<Item = &Address> {
        self.dependencies.iter().chain(self.ignored.values().flatten())
    }

    /// Adds dependencies of an instance, except the instance itself.
    pub(in crate::plan) fn depends_on(&mut self, address: &Address, others: &Set<Address>) {
        self.dependencies.extend(others.iter().filter(|other| *other != address).cloned());
    }

    /// Records the resources that an attribute was computed from: in `ignored` if its changes are ignored,
    /// else in `dependencies`.
    fn note_touched(
        &mut self,
        name: Option<&Name>,
        resource: &ResourceConfig,
        scope: &SpecScope<'_>,
    ) {
        let ignored = &resource.lifecycle.ignore_changes;
        if ignored.is_empty() {
            return;
        }
        match name.filter(|name| ignored.contains(*name)) {
            Some(name) => {
                self.ignored.insert(name.clone(), scope.touched());
            }
            None => self.dependencies.extend(scope.touched()),
        }
    }

    /// Adds an attribute. For a secret, also adds the expression by which apply computes it again: a plan
    /// cannot hold the secret itself.
    fn put(
        &mut self,
        name: &Name,
        datum: Datum,
        resource: &ResourceConfig,
        scope: &SpecScope<'_>,
    ) -> Result<(), ExprError> {
        if self.sensitive.is_empty() && datum.sensitive.is_empty() {
            self.attributes.insert(name.clone(), datum.value);
            return Ok(());
        }
        let path = Path::attribute(name.clone());
        self.sensitive.extend_below(&path, &datum.sensitive);
        self.attributes.insert(name.clone(), datum.value);
        if let Some(item) = resource.attributes.get(name)
            && self.sensitive.touches(&path)
        {
            let expr = evaluate::residual(&item.value.expr, scope)?;
            if !self.attributes[name].is_known()
                && let Some(inputs) = SecretInputs::new(&expr, scope)
            {
                self.secret_inputs.insert(name.clone(), inputs);
            }
            self.secrets.insert(name.clone(), expr);
        }
        Ok(())
    }
}

/// The value that the spec gives for an attribute. A null counts as absent; another word for null, such as ""
/// for an id, is a value: it says that the attribute is to have none.
enum Given {
    Value(Datum),
    Absent,
    Wrong,
}

fn given(
    resource: &ResourceConfig,
    (name, attribute): (&Name, &Attribute),
    item: &Item,
    (address, scope): (&Address, &SpecScope<'_>),
    diagnostics: &mut Diagnostics,
) -> Given {
    let Some(datum) = evaluate_spec(&item.value, scope, address, diagnostics) else {
        return Given::Wrong;
    };
    if datum.value.is_null() {
        return Given::Absent;
    }
    let secret = attribute.sensitive || !datum.sensitive.is_empty();
    let datum = match datum.convert(&attribute.ty) {
        Ok(datum) => datum,
        Err(misfit) => {
            diagnostics.push(diagnostics::misfit(
                item.value.span,
                (name, secret),
                &misfit,
                address,
            ));
            return Given::Wrong;
        }
    };
    let datum = Datum { value: attribute.as_shown(datum.value), ..datum };
    if datum.value.is_null() && attribute.presence == Presence::Required {
        return Given::Absent;
    }
    let tolerated = resource.lifecycle.allow_unknown.contains(name);
    let mut wrong = false;
    if secret
        && matches!(&resource.schema.identity, Identity::ClientId { attribute } if attribute == name)
    {
        diagnostics.push(diagnostics::id_sensitive(item.value.span, name, address));
        return Given::Wrong;
    }
    for violation in
        constraint::violations(name, attribute.unit.as_deref(), &attribute.constraint, &datum.value)
    {
        let warning = violation.outside_list && tolerated;
        wrong |= !warning;
        diagnostics.push(diagnostics::violation(
            item.value.span,
            (name, secret),
            violation,
            warning,
            address,
        ));
    }
    if wrong { Given::Wrong } else { Given::Value(datum) }
}

/// Returns the resources that were looked at, with those that `depends_on` names.
fn dependencies(resource: &ResourceConfig, scope: &SpecScope<'_>) -> Set<Address> {
    use crate::expression::evaluate::Scope as _;
    for (target, _) in &resource.depends_on {
        // Looking is enough: the scope remembers the resource. The resolution has already reported one that
        // does not exist.
        let _seen = scope.resource(&target.block, target.key.as_deref());
    }
    trigger_references::touch(resource, scope);
    scope.touched()
}
