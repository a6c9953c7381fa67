//! Phases that add elements to a set, or remove elements from it, with one call for each element.
//!
//! The set is read just before, so that an interrupted phase continues with the remaining elements. Each call
//! may be made twice: an element that exists already, or is gone already, is no failure.

use engine::value::Value;
use provider_port::{Kind, Object};

use crate::classify::Failure;
use crate::descriptor::model::{CallModel, Elements, Way};
use crate::perform::Act;
use crate::subject::what;

impl Act<'_> {
    /// Makes the call of the phase for each element that is to be added or removed. Does nothing if the spec
    /// does not give the set.
    pub(crate) async fn change_elements(
        &self,
        model: &CallModel,
        elements: &Elements,
    ) -> Result<Option<Object>, Failure> {
        let Some(id) = self.known_id() else { return self.silent(None, false).await };
        let Some(wanted) = self.call.desired.get(&elements.attribute).and_then(Value::as_items)
        else {
            return self.silent(Some(id), false).await;
        };
        let object = self.subject.read(&id).await.map_err(|failure| not_sent(model, failure))?;
        let live = object.attributes.get(&elements.attribute).and_then(Value::as_items);
        let live = live.ok_or_else(|| {
            let message = format!("no answer shows `{}`", elements.attribute);
            Failure::new(Kind::NotSent, message)
        })?;
        let (of, less) = match elements.way {
            Way::Adds => (wanted, live),
            Way::Removes => (live, wanted),
        };
        let form = self.subject.schema.attributes.get(&elements.attribute).and_then(|it| it.form);
        let is_same = |one: &Value, other: &Value| match form {
            Some(form) => form.is_same(one, other),
            None => one.same(other),
        };
        let left = of.iter().filter(|item| !less.iter().any(|other| is_same(item, other)));
        for element in left {
            let act = Act { element: Some(element), naming: self.naming.clone(), ..*self };
            let mut prepared = act.prepare(model)?;
            if self.is_secret(elements) {
                prepared.masker = prepared.masker.with_secrets(std::slice::from_ref(element));
            }
            match self.subject.caller.call(&prepared, self.call.progress).await {
                Ok(_) => {}
                Err(failure) if failure.done => {}
                Err(failure)
                    if elements.way == Way::Removes && failure.error.kind == Kind::NotFound => {}
                Err(failure) => return Err(self.about(failure, elements, element)),
            }
        }
        self.silent(Some(id), false).await
    }

    /// Returns true if the elements are secrets, or nothing is known of them.
    fn is_secret(&self, elements: &Elements) -> bool {
        let attribute = self.subject.schema.attributes.get(&elements.attribute);
        attribute.is_none_or(|it| it.sensitive)
    }

    /// Adds the element to the failure of its call. The API's own text does not show it.
    fn about(&self, mut failure: Failure, elements: &Elements, element: &Value) -> Failure {
        if !self.is_secret(elements) && !element.holds_sealed() {
            failure.error.message = format!("{element:?}: {}", failure.error.message);
        }
        failure
    }
}

/// Returns the failure of the read before the first call: nothing was sent.
fn not_sent(model: &CallModel, mut failure: Failure) -> Failure {
    if failure.error.kind != Kind::NotFound {
        failure.error.kind = Kind::NotSent;
    }
    let message = failure.error.message;
    failure.error.message = format!("{} was not called: {message}", what(model));
    failure
}
