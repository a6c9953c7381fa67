//! The expression at the cursor.

use engine::config::keys::{self, Form};

use super::Query;
use super::typing::View;
use crate::text::cursor::Place;
use crate::text::reference::{self, Reference};

/// The reference or the call at the cursor; none outside of expressions.
pub(crate) fn reference(query: &Query<'_>) -> Option<Reference> {
    let Place::Text { key, content, is_basic } = &query.cursor.place else { return None };
    let is_condition =
        matches!(keys::key_at(&query.table(), key).map(|key| key.form), Some(Form::Condition));
    let text = query.text.content();
    // A condition may also have `${…}` around it.
    let is_expression = is_condition && !text[content.clone()].contains("${");
    reference::at(text, content.clone(), query.offset, *is_basic, is_expression)
}

/// The types as seen from the cursor.
pub(crate) fn view<'a>(query: &Query<'a>) -> View<'a> {
    View::new(query.known.whole.config(), query.block())
}
