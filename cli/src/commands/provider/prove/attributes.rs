//! Trials of single attributes: one that is not sent, one that changes, and a list in another order.

use std::time::Duration;

use engine::address::Name;
use engine::diagnostics::FileId;
use engine::schema::{Attribute, OnChange, Presence, SeenIn};
use engine::value::{Attributes, Value};
use provider_http::HttpProvider;
use provider_openapi::{Answer, Mark, settled, with_replace};
use provider_port::conformance::{Attempt, Suite, change, changed, make, remove};
use provider_port::sample::Sample;
use provider_port::{Object, Provider as _};

use super::super::trial::{configured, seed};
use super::Proof;

/// The time after which a read shows an update.
const LAG: Duration = Duration::from_secs(2);

impl Proof<'_> {
    /// Changes an attribute, with a descriptor that allows the change, to see if the server accepts that.
    pub(super) async fn fixed(
        &self,
        sample: &Sample,
        mark: &Mark,
        object: &Object,
    ) -> Result<Answer, String> {
        let name = mark.attribute.as_deref().unwrap_or_default();
        let value = object.attributes.get(name).filter(|value| !value.is_null());
        let value = value.ok_or("no answer shows it")?;
        let other = sample.changed.get(name).cloned().or_else(|| sample.other(name, value));
        let other = other.ok_or("no other value is known: give one in `change` of --values")?;
        let variant = settled(&self.text, mark, Answer::Otherwise);
        let variant = variant.ok_or("the descriptor has another form here")?;
        let (descriptor, _) = provider_http::load(&variant, FileId(0));
        let descriptor = descriptor.ok_or("the type has no update that may take it")?;
        let takes_all = descriptor.sends_changes(&sample.schema.name);
        if !takes_all {
            return Err("its update sends a list of attributes: try it by hand".to_owned());
        }
        let provider = configured(descriptor, &self.args.against, Some(self.recorder.network()))
            .map_err(|error| error.message)?;
        let suite = Suite::new(&provider).witness(self.ledger, seed());
        let changes = [(name.into(), other)].into_iter().collect();
        let is_taken = change(&suite, &sample.schema.name, object, &changes).await?;
        Ok(if is_taken { Answer::Otherwise } else { Answer::AsWritten })
    }

    /// Changes each attribute that an update takes by the descriptor. One that stays as it was is written as one
    /// whose change replaces the object.
    pub(super) async fn ignored(
        &mut self,
        (provider, suite): (&HttpProvider, &Suite<'_>),
        sample: &Sample,
        object: &Object,
    ) {
        let schema = &sample.schema;
        let is_changeable = |name: &Name, attribute: &Attribute| {
            attribute.on_change == OnChange::Update
                && attribute.presence != Presence::Computed
                && attribute.seen_in != SeenIn::Never
                && !attribute.volatile
                && schema.name_attribute.as_ref() != Some(name)
        };
        for (name, _) in schema.attributes.iter().filter(|(name, it)| is_changeable(name, it)) {
            let Some(value) = object.attributes.get(name) else { continue };
            let other = sample.changed.get(name).cloned().or_else(|| sample.other(name, value));
            let Some(other) = other.filter(|other| !other.same(value)) else { continue };
            let stays =
                |object: &Object| object.attributes.get(name).is_some_and(|it| it.same(value));
            let changes = Attributes::from([(name.clone(), other)]);
            match changed(suite, &schema.name, object, &changes).await {
                Ok(Attempt::Made(shown)) if stays(&shown) => {}
                _ => continue,
            }
            // A read may lag behind the update.
            tokio::time::sleep(LAG).await;
            let read = provider.read(&schema.name, &object.id).await;
            if read.is_ok_and(|read| stays(&read)) {
                self.tell(format!("{}.{name}", schema.name), "an update does not change it");
                let text = with_replace(&self.text, &schema.name, name);
                if let Some(text) = text.filter(|text| super::loads(text)) {
                    self.text = text;
                }
            }
        }
    }

    /// Sends an unsorted list with one item twice, and looks at the list that the server shows.
    pub(super) async fn ordered(
        &mut self,
        suite: &Suite<'_>,
        sample: &Sample,
        mark: &Mark,
        object: &Object,
    ) -> Result<Answer, String> {
        let name = mark.attribute.as_deref().unwrap_or_default();
        let items = sample.items(name);
        let items = items.ok_or("no items are known: give some in `change` of --values")?;
        let twice: Vec<Value> = items.iter().chain(items.first()).cloned().collect();
        let shown = match self.with_list(suite, sample, (name, &twice), object).await? {
            Some(shown) => shown,
            None => match self.with_list(suite, sample, (name, &items), object).await? {
                Some(shown) => shown,
                None => return Err("the server refuses the list".to_owned()),
            },
        };
        judged(&items, &shown)
    }

    /// Sends a list, in an update or in the create of another object. Returns the list that the server shows;
    /// `None` if the server refuses it.
    async fn with_list(
        &mut self,
        suite: &Suite<'_>,
        sample: &Sample,
        (name, items): (&str, &[Value]),
        object: &Object,
    ) -> Result<Option<Vec<Value>>, String> {
        let schema = &sample.schema;
        let list = Value::list(items.to_vec());
        let is_updated =
            schema.attributes.get(name).is_some_and(|it| it.on_change == OnChange::Update);
        let attempt = if is_updated && !schema.update.is_empty() {
            let changes = Attributes::from([(name.into(), list)]);
            changed(suite, &schema.name, object, &changes).await?
        } else {
            let mut wanted = sample.another(&self.made, &object.attributes)?;
            wanted.insert(name.into(), list);
            self.creates += 1;
            let attempt = make(suite, &schema.name, self.creates, wanted).await?;
            if let Attempt::Made(second) = &attempt {
                remove(suite, &schema.name, second).await?;
            }
            attempt
        };
        let Attempt::Made(shown) = attempt else { return Ok(None) };
        match shown.attributes.get(name) {
            Some(Value::List(shown)) => Ok(Some(shown.to_vec())),
            _ => Err("no answer shows it".to_owned()),
        }
    }
}

/// Compares the items that were sent with those that the server shows.
fn judged(sent: &[Value], shown: &[Value]) -> Result<Answer, String> {
    let has = |all: &[Value], item: &Value| all.iter().any(|other| other.same(item));
    if !sent.iter().all(|item| has(shown, item)) || !shown.iter().all(|item| has(sent, item)) {
        return Err("the server shows other items".to_owned());
    }
    let mut once: Vec<&Value> = Vec::new();
    for item in shown {
        if !once.iter().any(|other| other.same(item)) {
            once.push(item);
        }
    }
    let keeps_order = once.iter().zip(sent).all(|(one, other)| one.same(other));
    Ok(if keeps_order { Answer::AsWritten } else { Answer::Otherwise })
}

/// Returns the answer about an attribute that was not sent.
pub(super) fn filled(sample: &Sample, mark: &Mark, object: &Object) -> Result<Answer, String> {
    let name = mark.attribute.as_deref().unwrap_or_default();
    if sample.given.contains_key(name) {
        return Err("--values gives it, so that it is not left out".to_owned());
    }
    let attribute = sample.schema.attributes.get(name).ok_or("there is no such attribute")?;
    if attribute.seen_in == SeenIn::Never {
        return Err("no answer shows it".to_owned());
    }
    let is_shown = object.attributes.get(name).is_some_and(|value| *value != Value::Null);
    Ok(if is_shown { Answer::AsWritten } else { Answer::Otherwise })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_counts_where_it_is_kept() {
        let list =
            |text: &str| text.chars().map(|it| Value::string(it.to_string())).collect::<Vec<_>>();
        for (shown, answer) in [
            ("cab", Ok(Answer::AsWritten)),
            ("cabc", Ok(Answer::AsWritten)),
            ("abc", Ok(Answer::Otherwise)),
            ("abcc", Ok(Answer::Otherwise)),
            ("ca", Err(())),
            ("cabd", Err(())),
        ] {
            assert_eq!(judged(&list("cab"), &list(shown)).map_err(drop), answer, "{shown}");
        }
    }
}
