//! Move rules: the new address of each object of a block, an instance or a module.

use super::pattern::{AddressPattern, Part, Step};
use super::{Address, Block, ModulePath, Name};

/// A pair of patterns: an object whose address fits `from` gets the address that `to` describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRule {
    from: AddressPattern,
    to: AddressPattern,
}

/// The reason that two patterns are no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRuleError {
    /// Both patterns are the same.
    #[error("both addresses are the same")]
    Same,
    /// One pattern names a module, the other a resource.
    #[error("a module cannot become a resource, nor a resource a module")]
    OtherKind,
    /// The types differ.
    #[error("the type of an object cannot change")]
    OtherType,
    /// The numbers of `*` differ.
    #[error("each `*` of one address needs a `*` in the other one")]
    OtherStars,
}

impl MoveRule {
    /// Makes a rule from two patterns.
    pub fn new(from: AddressPattern, to: AddressPattern) -> Result<Self, MoveRuleError> {
        if from == to {
            return Err(MoveRuleError::Same);
        }
        let (stars, wanted) = (from.stars(), to.stars());
        match (&from.resource, &to.resource) {
            (None, None) => {}
            (Some((Part::Exact(before), _)), Some((Part::Exact(after), _))) if before == after => {}
            (Some((Part::Any, _)), Some((Part::Any, _))) if stars.0 == wanted.0 => {}
            (Some(_), Some(_)) => return Err(MoveRuleError::OtherType),
            _ => return Err(MoveRuleError::OtherKind),
        }
        if stars.1 != wanted.1 {
            return Err(MoveRuleError::OtherStars);
        }
        Ok(Self { from, to })
    }

    /// Returns the pattern of the old addresses.
    pub fn from(&self) -> &AddressPattern {
        &self.from
    }

    /// Returns the pattern of the new addresses.
    pub fn to(&self) -> &AddressPattern {
        &self.to
    }

    /// Returns true if the rule moves all instances of a block or of a module, each of which keeps its key.
    pub fn keeps_keys(&self) -> bool {
        !self.from.has_key() && !self.to.has_key()
    }

    /// Returns the new address of the object at `address`; none if the rule does not move it.
    pub fn target(&self, address: &Address) -> Option<Address> {
        let modules = address.block.module.steps();
        let (own, inner) = modules.split_at_checked(self.from.modules.len())?;
        let mut taken = Taken::default();
        let last = own.len().checked_sub(1).filter(|_| self.from.is_module());
        for (index, (step, (name, key))) in self.from.modules.iter().zip(own).enumerate() {
            taken.step(step, name, key.as_ref(), self.keeps_keys() && Some(index) == last)?;
        }
        if let Some((ty, step)) = &self.from.resource {
            if !inner.is_empty() {
                return None;
            }
            taken.part(ty, &address.block.ty)?;
            taken.step(step, &address.block.name, address.key.as_ref(), self.keeps_keys())?;
        }
        taken.put_into(&self.to, inner, address)
    }
}

/// The names and keys of an address that stand for `*`, and the key that is kept.
#[derive(Default)]
struct Taken<'a> {
    stars: std::collections::VecDeque<&'a Name>,
    key: Option<&'a Name>,
}

impl<'a> Taken<'a> {
    /// Takes a name and its key; returns none if they do not fit. Any key fits if keys are kept.
    fn step(
        &mut self,
        step: &Step,
        name: &'a Name,
        key: Option<&'a Name>,
        is_kept: bool,
    ) -> Option<()> {
        self.part(&step.name, name)?;
        match (&step.key, key) {
            (None, key) if is_kept => self.key = key,
            (None, None) => {}
            (Some(part), Some(key)) => self.part(part, key)?,
            _ => return None,
        }
        Some(())
    }

    fn part(&mut self, part: &Part, name: &'a Name) -> Option<()> {
        match part {
            Part::Exact(own) => (own == name).then_some(()),
            Part::Any => {
                self.stars.push_back(name);
                Some(())
            }
        }
    }

    /// Returns the address that a pattern makes of the taken names and keys, with the modules `inner` inside
    /// a whole module.
    fn put_into(
        mut self,
        to: &AddressPattern,
        inner: &[(Name, Option<Name>)],
        address: &Address,
    ) -> Option<Address> {
        let mut path = ModulePath::root();
        let last = to.modules.len().checked_sub(1).filter(|_| to.is_module());
        for (index, step) in to.modules.iter().enumerate() {
            let name = self.next(&step.name)?;
            let kept = self.key.filter(|_| Some(index) == last).cloned();
            let key = match &step.key {
                None => kept,
                Some(key) => Some(self.next(key)?),
            };
            path = path.join(&name, key.as_deref());
        }
        let path = inner.iter().fold(path, |path, (name, key)| path.join(name, key.as_deref()));
        let Some((ty, step)) = &to.resource else {
            return Some(address.block.within(&path).instance(address.key.clone()));
        };
        let (ty, name) = (self.next(ty)?, self.next(&step.name)?);
        let key = match &step.key {
            None => self.key.cloned(),
            Some(key) => Some(self.next(key)?),
        };
        Some(Block::new(ty, name).within(&path).instance(key))
    }

    fn next(&mut self, part: &Part) -> Option<Name> {
        match part {
            Part::Exact(name) => Some(name.clone()),
            Part::Any => self.stars.pop_front().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(from: &str, to: &str) -> Result<MoveRule, MoveRuleError> {
        MoveRule::new(from.parse().unwrap(), to.parse().unwrap())
    }

    #[test]
    fn an_object_gets_the_address_that_the_rule_says() {
        for (from, to, address, target) in [
            ("value.a", "value.b", "value.a", Some("value.b")),
            ("value.a", "value.b", r#"value.a["eu"]"#, Some(r#"value.b["eu"]"#)),
            ("value.a", "value.b", "value.ab", None),
            ("value.a", "value.b", "module.x.value.a", None),
            ("value.a", "value.a[eu]", "value.a", Some(r#"value.a["eu"]"#)),
            ("value.a", "value.a[eu]", "value.a[eu]", None),
            ("value.a[eu]", "value.b", "value.a[eu]", Some("value.b")),
            ("value.a[eu]", "value.b", "value.a", None),
            ("value.a[*]", "value.b[*]", "value.a[eu]", Some(r#"value.b["eu"]"#)),
            ("value.a", "module.x.value.a", "value.a[eu]", Some(r#"module.x.value.a["eu"]"#)),
            ("value.*", "module.x.value.*", "value.q", Some("module.x.value.q")),
            ("*.*", "module.x.*.*", "value.q[k]", Some(r#"module.x.value.q["k"]"#)),
            ("module.x[*].value.a", "value.a[*]", "module.x[eu].value.a", Some(r#"value.a["eu"]"#)),
            ("value.a[*]", "module.x[*].value.a", "value.a[eu]", Some(r#"module.x["eu"].value.a"#)),
            ("module.x", "module.y", "module.x.value.a[k]", Some(r#"module.y.value.a["k"]"#)),
            (
                "module.x",
                "module.y",
                "module.x[eu].module.z[1].value.a",
                Some(r#"module.y["eu"].module.z["1"].value.a"#),
            ),
            ("module.x", "module.x[eu]", "module.x.value.a", Some(r#"module.x["eu"].value.a"#)),
            ("module.x", "module.x[eu]", "module.x[eu].value.a", None),
            ("module.x.value.a", "value.a", "module.x[eu].value.a", None),
            (
                "module.x.module.y",
                "module.y",
                "module.x.module.y[q].value.a",
                Some(r#"module.y["q"].value.a"#),
            ),
        ] {
            let rule = rule(from, to).unwrap();
            let found = rule.target(&address.parse().unwrap()).map(|it| it.to_string());
            assert_eq!(found.as_deref(), target, "{from} → {to}: {address}");
        }
    }

    #[test]
    fn patterns_that_do_not_fit_are_no_rule() {
        for (from, to, why) in [
            ("value.a", "value.a", MoveRuleError::Same),
            ("value.a", "disk.a", MoveRuleError::OtherType),
            ("value.a", "module.x", MoveRuleError::OtherKind),
            ("module.x", "value.a", MoveRuleError::OtherKind),
            ("value.*", "value.a", MoveRuleError::OtherStars),
            ("value.a[*]", "value.a", MoveRuleError::OtherStars),
            ("*.a", "value.*", MoveRuleError::OtherType),
            ("module.a.*.*", "module.*.*.a", MoveRuleError::OtherType),
        ] {
            assert_eq!(rule(from, to).unwrap_err(), why, "{from} → {to}");
        }
    }
}
