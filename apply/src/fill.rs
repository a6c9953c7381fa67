//! Filling residuals: the one thing that apply computes.
//!
//! A residual refers to objects that are there by now and to sensitive variables that were given
//! again. What a plan knew already is not computed a second time.

use std::collections::BTreeMap;

use engine::address::{Address, Block, Name};
use engine::expression::evaluate::{self, Scope};
use engine::expression::{Expr, Root};
use engine::plan::live::stored_attributes;
use engine::schema::TypeSchema;
use engine::state::{Entry, Object, Snapshot};
use engine::value::{Attributes, Datum, Path, Paths, Value};

use crate::Providers;
use crate::observe::sensitive;

/// What residuals may refer to.
pub(crate) struct FillScope<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) providers: &'a Providers,
    pub(crate) variables: &'a BTreeMap<Name, Datum>,
    /// Objects with secrets, in clear, as far as this run knows them.
    pub(crate) clear: &'a BTreeMap<Address, Attributes>,
}

impl FillScope<'_> {
    fn object(&self, address: &Address, entry: &Entry, object: &Object) -> Result<Datum, String> {
        let provider = self.providers.get(&entry.provider);
        let schema: Option<std::sync::Arc<TypeSchema>> =
            provider.and_then(|p| p.schema().types.get(&address.block.ty).cloned());
        let schema = schema.ok_or_else(|| format!("{address} has no provider"))?;
        let mut attributes = stored_attributes(&object.attributes, &schema)?;
        if let Some(clear) = self.clear.get(address) {
            attributes.extend(clear.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let sensitive = sensitive(&schema, &object.sensitive);
        Ok(Datum { value: Value::map(attributes), sensitive })
    }
}

impl Scope for FillScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) => match self.variables.get(name) {
                Some(datum) => Ok(datum.clone()),
                None => Err(format!("the variable `{name}` is not given")),
            },
            _ => Err("a residual refers to objects and variables only".to_owned()),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let address = block.instance(key.map(Into::into));
        if let Some(entry) = self.snapshot.entries.get(&address) {
            return match &entry.current {
                Some(object) => self.object(&address, entry, object),
                None => Err(format!("{address} is not there")),
            };
        }
        if key.is_some() {
            return Err(format!("{address} is not there"));
        }
        let (mut objects, mut paths) = (Attributes::new(), Paths::none());
        for (address, entry) in &self.snapshot.entries {
            let Some(key) = address.key.as_ref().filter(|_| address.block == *block) else {
                continue;
            };
            let Some(object) = &entry.current else { continue };
            let datum = self.object(address, entry, object)?;
            paths.extend_below(&Path::attribute(key.clone()), &datum.sensitive);
            objects.insert(key.clone(), datum.value);
        }
        if objects.is_empty() {
            return Err(format!("{block} is not there"));
        }
        Ok(Datum { value: Value::map(objects), sensitive: paths })
    }
}

/// Computes an expression whose value must be known and in clear now.
pub(crate) fn known(expr: &Expr, scope: &FillScope<'_>) -> Result<Datum, String> {
    let datum = evaluate::evaluate(expr, scope).map_err(|error| error.message)?;
    if !datum.value.is_known() || datum.value.holds_sealed() {
        return Err(format!("`{expr}` is still not known"));
    }
    Ok(datum)
}

/// Replaces every unknown in a value by what it is now.
pub(crate) fn fill(value: &Value, scope: &FillScope<'_>) -> Result<Value, String> {
    match value {
        Value::Unknown(unknown) => {
            let datum = known(&unknown.residual, scope)?;
            datum.value.convert(&unknown.ty).map_err(|misfit| misfit.to_string())
        }
        Value::List(items) => {
            Ok(Value::list(items.iter().map(|item| fill(item, scope)).collect::<Result<_, _>>()?))
        }
        Value::Set(items) => {
            Ok(Value::set(items.iter().map(|item| fill(item, scope)).collect::<Result<_, _>>()?))
        }
        Value::Map(entries) => {
            let fill = |(name, item): (&Name, &Value)| Ok((name.clone(), fill(item, scope)?));
            Ok(Value::map(entries.iter().map(fill).collect::<Result<_, String>>()?))
        }
        plain => Ok(plain.clone()),
    }
}
