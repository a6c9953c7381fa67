//! What is secret now of an object that goes, or that is left as it is without being decided about: a plan shows
//! what it was.
//!
//! What the state says of it was said by an earlier spec. The schema may say more by now, and so may the spec,
//! where it still has the object: in a destroy, where it is disabled, where its key is gone, and where another
//! took its place.
//!
//! What cannot be told any more is hidden where it is shown, and is no secret to the state: the next plan may tell,
//! and what an object names has to be read until it is gone.

use crate::address::{Address, Name};
use crate::config::{ResourceConfig, SpecExpr};
use crate::expression::evaluate::evaluate;
use crate::plan::context::Context;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::gone::{self, GoneInstances};
use crate::plan::evaluate::scope::Each;
use crate::plan::facts::prior;
use crate::plan::secrets::sources::Source;
use crate::plan::secrets::turned::Now;
use crate::schema::TypeSchema;
use crate::value::{Attributes, Datum, Path, Paths, Value};

/// What the spec gives that may be secret, and what is secret of an object.
pub(in crate::plan) struct Said {
    wanted: Attributes,
    /// What is known to be secret.
    pub(in crate::plan) sensitive: Paths,
    /// That, and what may be.
    hidden: Paths,
}

/// What is secret now of an object that goes.
pub(in crate::plan) fn said(
    gone: &mut GoneInstances<'_, '_>,
    (address, schema): (&Address, &TypeSchema),
    object: &Attributes,
) -> Said {
    let config = gone.context.input.config;
    let resource = config.resources.get(&address.block).filter(|it| it.schema.name == schema.name);
    let Some(resource) = resource else {
        return Said::by_schema(schema).with_derived(object, schema);
    };
    let each = each(gone, address, resource);
    of_spec(gone.context, gone.evaluation, resource, each.as_ref()).with_derived(object, schema)
}

/// The sensitive places of an object of the state that nothing is decided about: what follows from something
/// secret in it is secret, too.
pub(in crate::plan) fn places(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    (resource, each): (&ResourceConfig, Option<&Each<'_>>),
    object: &Attributes,
) -> Paths {
    let mut places = of_spec(context, evaluation, resource, each).sensitive;
    prior::derive(&resource.schema, &mut object.clone(), &mut places);
    places
}

/// What is secret of an instance by the schema and by the spec, without deciding about it.
pub(in crate::plan) fn of_spec(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    resource: &ResourceConfig,
    each: Option<&Each>,
) -> Said {
    let mut said = Said::by_schema(&resource.schema);
    let sources = context.sources().of_block(&resource.block);
    for (name, source) in sources.into_iter().flat_map(|block| &block.attributes) {
        if let Some(item) = resource.attributes.get(name) {
            said.add(name, value(context, evaluation, &item.value, each), *source, resource);
        }
    }
    said
}

/// Whether anything in the spec may be a secret that the state does not know as one.
pub(in crate::plan) fn are_secrets(context: &Context<'_>) -> bool {
    let mut resources = context.input.config.resources.values();
    resources.any(|it| !it.schema.sensitive().is_empty()) || context.sources().has_secrets()
}

impl Said {
    fn by_schema(schema: &TypeSchema) -> Self {
        let sensitive = schema.sensitive();
        Self { wanted: Attributes::new(), hidden: sensitive.clone(), sensitive }
    }

    /// With what follows from something secret in an object. It is hidden as a whole: the places are those of what the
    /// spec gives now, and what there was may have had it at others.
    #[must_use]
    fn with_derived(mut self, object: &Attributes, schema: &TypeSchema) -> Self {
        prior::derive(schema, &mut object.clone(), &mut self.sensitive);
        prior::derive(schema, &mut object.clone(), &mut self.hidden);
        for (name, _) in schema.attributes.iter().filter(|(_, it)| it.derived.is_some()) {
            let path = Path::attribute(name.clone());
            if self.hidden.touches(&path) {
                self.hidden.insert(path);
            }
        }
        self
    }

    /// What is to be sealed of an object that nothing comes after, where it is shown.
    pub(in crate::plan) fn now(&self) -> Now<'_> {
        Now { sensitive: &self.hidden, ..self.known() }
    }

    /// The same where it is kept.
    pub(in crate::plan) fn known(&self) -> Now<'_> {
        Now {
            wanted: &self.wanted,
            planned: None,
            sensitive: &self.sensitive,
            shown: None,
            ignored: None,
        }
    }

    /// Adds an attribute. One that is made of a secret, or of what may have one, and cannot be computed any more is
    /// hidden as a whole.
    fn add(&mut self, name: &Name, datum: Option<Datum>, source: Source, of: &ResourceConfig) {
        let path = Path::attribute(name.clone());
        match datum {
            Some(datum) => {
                let ty = of.schema.attributes.get(name).map(|attribute| &attribute.ty);
                let datum = ty.and_then(|ty| datum.convert(ty).ok()).unwrap_or(datum);
                self.sensitive.extend_below(&path, &datum.sensitive);
                self.hidden.extend_below(&path, &datum.sensitive);
                self.wanted.insert(name.clone(), datum.value);
            }
            None if source == Source::Plain => {}
            None => self.hidden.insert(path),
        }
    }
}

fn value(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    item: &SpecExpr,
    each: Option<&Each>,
) -> Option<Datum> {
    evaluate(&item.expr, &context.scope(evaluation).with_each(each)).ok()
}

/// `each` of an instance that goes. Where its key is gone nobody knows what its value was, only whether it was
/// made of a secret.
fn each<'a>(
    gone: &mut GoneInstances<'_, 'a>,
    address: &Address,
    resource: &'a ResourceConfig,
) -> Option<Each<'a>> {
    let reads = |value_only| {
        let mut items = resource.attributes.values();
        items.find(|item| gone::reads(&item.value.expr, value_only))
    };
    let item = reads(true).or_else(|| reads(false))?;
    let mut each = gone.each(address, resource, &item.value).ok()??;
    let is_gone = matches!(each.value.value, Value::Unknown(_));
    let made_for = gone.context.sources().of_block(&resource.block).map(|block| block.for_each);
    if is_gone && made_for == Some(Source::Secret) {
        each.value.sensitive = Paths::whole();
    }
    Some(each)
}
