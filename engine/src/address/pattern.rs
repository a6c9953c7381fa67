//! Patterns of addresses: a module, a block or one instance, with `*` for names and keys.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::{Address, AddressError, Block, ModulePath, Name, in_brackets, is_name, split_key};

/// The address of a module, of a block or of one instance, in which `*` stands for any name, and `[*]` for any key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressPattern {
    /// The modules, from the outside in.
    pub(super) modules: Vec<Step>,
    /// The type, and the name with its key; none for a whole module.
    pub(super) resource: Option<(Part, Step)>,
}

/// A name with the key behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) name: Part,
    pub(super) key: Option<Part>,
}

/// A name or a key of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// This name or key.
    Exact(Name),
    /// Any name or key.
    Any,
}

impl AddressPattern {
    /// Returns the same pattern inside an instance of a module.
    #[must_use]
    pub fn within(&self, module: &ModulePath) -> Self {
        let exact = |(name, key): (Name, Option<Name>)| Step {
            name: Part::Exact(name),
            key: key.map(Part::Exact),
        };
        let mut modules: Vec<Step> = module.steps().into_iter().map(exact).collect();
        modules.extend(self.modules.iter().cloned());
        Self { modules, resource: self.resource.clone() }
    }

    /// Returns the pattern with `[*]` in place of a key.
    #[must_use]
    pub fn with_any_key(&self, key: &str) -> Self {
        let mut pattern = self.clone();
        let last = pattern.resource.as_mut().map(|(_, step)| step);
        for step in pattern.modules.iter_mut().chain(last) {
            if matches!(&step.key, Some(Part::Exact(own)) if &**own == key) {
                step.key = Some(Part::Any);
            }
        }
        pattern
    }

    /// Returns the module that the pattern names, or that holds the block which it names; none if it has a
    /// `*`.
    pub fn module(&self) -> Option<ModulePath> {
        self.modules.iter().try_fold(ModulePath::root(), |path, step| {
            let key = step.key.as_ref().map(Part::exact);
            Some(path.join(step.name.exact()?, key.map_or(Some(None), |key| key.map(Some))?))
        })
    }

    /// Returns the block that the pattern names; none for a module, and if it has a `*` outside the key.
    pub fn block(&self) -> Option<Block> {
        let (ty, step) = self.resource.as_ref()?;
        let block = Block::new(ty.exact()?, step.name.exact()?);
        Some(block.within(&self.module()?))
    }

    /// Returns the only instance that the pattern can name: the one without a key if the pattern has no key.
    pub fn instance(&self) -> Option<Address> {
        let (_, step) = self.resource.as_ref()?;
        let key = match &step.key {
            None => None,
            Some(key) => Some(key.exact()?.into()),
        };
        Some(self.block()?.instance(key))
    }

    /// Returns true if the pattern names a whole module.
    pub fn is_module(&self) -> bool {
        self.resource.is_none()
    }

    /// Returns true if the pattern names one instance, and not a module or a block with all its instances.
    pub fn has_key(&self) -> bool {
        self.last().is_some_and(|step| step.key.is_some())
    }

    /// Returns true if the pattern names the address. A pattern without a key names all instances.
    pub fn covers(&self, address: &Address) -> bool {
        let modules = address.block.module.steps();
        let is_long_enough = match &self.resource {
            Some(_) => modules.len() == self.modules.len(),
            None => modules.len() >= self.modules.len(),
        };
        let covers =
            |(step, (name, key)): (&Step, &(Name, Option<Name>))| step.covers(name, key.as_ref());
        is_long_enough
            && self.modules.iter().zip(&modules).all(covers)
            && self.resource.as_ref().is_none_or(|(ty, step)| {
                let Block { ty: own, name, .. } = &address.block;
                ty.covers(own) && step.covers(name, address.key.as_ref())
            })
    }

    /// Returns the rank of the pattern among those that fit one address; the most exact pattern has the
    /// lowest rank. A resource ranks before its module, a name before `*`, and an instance before its block.
    pub fn generality(&self) -> impl Ord + use<> {
        let steps = || self.modules.iter().chain(self.resource.as_ref().map(|(_, step)| step));
        let count = |is: fn(&&Step) -> bool| steps().filter(is).count();
        let key_stars = count(|step| step.key == Some(Part::Any));
        let names = self.stars().1 - key_stars;
        let keyless = count(|step| step.key.is_none());
        (self.is_module(), Reverse(self.modules.len()), names, keyless, key_stars)
    }

    /// Returns the last name, with its key.
    pub(super) fn last(&self) -> Option<&Step> {
        self.resource.as_ref().map(|(_, step)| step).or(self.modules.last())
    }

    /// Returns the number of `*` before the type, and in the whole pattern.
    pub(super) fn stars(&self) -> (usize, usize) {
        let before = self.modules.iter().map(Step::stars).sum();
        let (ty, own) = self
            .resource
            .as_ref()
            .map_or((0, 0), |(ty, step)| (usize::from(*ty == Part::Any), step.stars()));
        (before, before + ty + own)
    }
}

impl Step {
    fn covers(&self, name: &Name, key: Option<&Name>) -> bool {
        let key_fits = match (&self.key, key) {
            (None, _) => true,
            (Some(part), key) => key.is_some_and(|key| part.covers(key)),
        };
        self.name.covers(name) && key_fits
    }

    fn stars(&self) -> usize {
        usize::from(self.name == Part::Any) + usize::from(self.key == Some(Part::Any))
    }

    /// Splits a name and its key off the beginning of a text.
    fn split(text: &str) -> Result<(Self, &str), &'static str> {
        let end = text.find(['.', '[']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let name = Part::name(name).ok_or("a part of it is neither a name nor `*`")?;
        if let Some(rest) = rest.strip_prefix("[*]") {
            return Ok((Self { name, key: Some(Part::Any) }, rest));
        }
        if !rest.starts_with('[') {
            return Ok((Self { name, key: None }, rest));
        }
        let (key, rest) = split_key(rest)?;
        Ok((Self { name, key: Some(Part::Exact(key.into())) }, rest))
    }
}

impl Part {
    fn name(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::Any),
            text => is_name(text).then(|| Self::Exact(text.into())),
        }
    }

    fn covers(&self, name: &Name) -> bool {
        match self {
            Self::Exact(own) => own == name,
            Self::Any => true,
        }
    }

    fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(name) => Some(name),
            Self::Any => None,
        }
    }
}

impl FromStr for AddressPattern {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError { text: text.to_owned(), reason };
        let (mut modules, mut rest) = (Vec::new(), text);
        while let Some(after) = rest.strip_prefix("module.") {
            let (step, behind) = Step::split(after).map_err(fail)?;
            modules.push(step);
            if behind.is_empty() {
                return Ok(Self { modules, resource: None });
            }
            rest = behind.strip_prefix('.').ok_or(fail("there is no dot behind the module"))?;
        }
        let (ty, rest) = rest.split_once('.').ok_or(fail("there is no dot"))?;
        let ty = Part::name(ty).ok_or(fail("the part before the dot is not a resource type"))?;
        let (step, behind) = Step::split(rest).map_err(fail)?;
        if !behind.is_empty() {
            return Err(fail("something stands behind the name"));
        }
        Ok(Self { modules, resource: Some((ty, step)) })
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.modules.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}module.{step}")?;
        }
        let Some((ty, step)) = &self.resource else { return Ok(()) };
        let dot = if self.modules.is_empty() { "" } else { "." };
        write!(f, "{dot}{}.{step}", ty.exact().unwrap_or("*"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.exact().unwrap_or("*"))?;
        match &self.key {
            None => Ok(()),
            Some(Part::Any) => f.write_str("[*]"),
            Some(Part::Exact(key)) => f.write_str(&in_brackets(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_are_inverse() {
        for text in [
            "value.a",
            r#"value.a["eu"]"#,
            r#"value.a["*"]"#,
            "value.a[*]",
            "value.*",
            "*.*",
            "module.x",
            r#"module.x["a].b"].module.*[*]"#,
            r#"module.x[*].value.a["eu"]"#,
        ] {
            assert_eq!(text.parse::<AddressPattern>().unwrap().to_string(), text);
        }
        for text in
            ["", "*", "value", "value.a*", "value.a[", "value.a.b", "module.", "module.x[*]y"]
        {
            assert!(text.parse::<AddressPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_without_a_key_means_all_instances() {
        let covers = |pattern: &str, address: &str| {
            pattern.parse::<AddressPattern>().unwrap().covers(&address.parse().unwrap())
        };
        assert!(covers("value.a", "value.a") && covers("value.a", "value.a[eu]"));
        assert!(covers("value.a[*]", "value.a[eu]") && !covers("value.a[*]", "value.a"));
        assert!(covers("value.a[eu]", "value.a[eu]") && !covers("value.a[eu]", "value.a[us]"));
        assert!(covers("module.x", "module.x[eu].module.y.value.a"));
        assert!(covers("module.x.value.a", "module.x[eu].value.a[k]"));
        assert!(
            !covers("module.x", "value.a")
                && !covers("module.x.value.a", "module.x.module.y.value.a")
        );
        assert!(covers("*.*", "value.a") && !covers("*.*", "module.x.value.a"));
    }

    #[test]
    fn exact_patterns_come_first() {
        let order = [
            "module.x[eu].value.a[k]",
            "module.x[eu].value.a",
            "module.x[*].value.a",
            "module.x.value.a",
            "module.x[eu].value.*",
            "*.*",
            "module.x[eu].module.y",
            "module.x[eu]",
            "module.x[*]",
            "module.x",
            "module.*",
        ];
        let mut patterns = order.map(|text| text.parse::<AddressPattern>().unwrap());
        patterns.reverse();
        patterns.sort_by_key(AddressPattern::generality);
        assert_eq!(patterns, order.map(|text| text.parse().unwrap()));
    }
}
