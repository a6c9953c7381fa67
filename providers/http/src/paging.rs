//! Lists that come in pages: which page is next, and when there is none.

use serde_json::Value as Json;

use crate::descriptor::model::Paging;
use crate::lenient;
use crate::template::query_pair;
use crate::wire::at;

/// Where a list that comes in pages is.
pub(crate) struct Page {
    number: u64,
    cursor: Option<String>,
}

impl Page {
    pub(crate) fn first(paging: Option<&Paging>) -> Self {
        let number = if let Some(Paging::Page { first, .. }) = paging { *first } else { 0 };
        Self { number, cursor: None }
    }

    pub(crate) fn path(&self, first: &str, paging: &Paging) -> String {
        let mut pairs = Vec::new();
        match paging {
            Paging::Page { page, size, .. } => {
                pairs.push(query_pair(page, &self.number.to_string()));
                pairs.extend(size.iter().map(|(name, size)| query_pair(name, &size.to_string())));
            }
            Paging::Cursor { cursor, .. } => {
                pairs.extend(self.cursor.iter().map(|value| query_pair(cursor, value)));
            }
            Paging::Link => {}
        }
        let mut path = first.to_owned();
        for pair in pairs {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(&pair);
        }
        path
    }

    /// Goes to the next page; says whether there is one, or why that cannot be told. A list that
    /// ended early would tell of objects that are gone, so only what certainly is an end ends it.
    pub(crate) fn next(
        &mut self,
        paging: &Paging,
        count: usize,
        json: Option<&Json>,
    ) -> Result<bool, &'static str> {
        match paging {
            Paging::Page { size, .. } => {
                self.number += 1;
                let full = size.as_ref().is_none_or(|(_, size)| count as u64 >= *size);
                Ok(count > 0 && full)
            }
            Paging::Cursor { next, .. } => {
                let found = cursor(json.and_then(|json| at(json, next)))?;
                let moves = found.is_some() && found != self.cursor;
                if found.is_some() && !moves && count > 0 {
                    return Err("the cursor behind its items is the one that they were asked with");
                }
                self.cursor = found;
                Ok(moves)
            }
            Paging::Link => Ok(false),
        }
    }
}

/// The cursor that an answer shows; none at the end of a list.
fn cursor(shown: Option<&Json>) -> Result<Option<String>, &'static str> {
    match shown {
        None | Some(Json::Null | Json::Bool(false)) => Ok(None),
        Some(shown) if lenient::trouble(shown).is_some() => {
            Err("what stands where its cursor should cannot be read")
        }
        Some(Json::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(Json::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err("what stands where its cursor should is none"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages() {
        let paging = Paging::Page { page: "p".into(), first: 1, size: Some(("n".into(), 2)) };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x?a=b", &paging), "/x?a=b&p=1&n=2");
        assert_eq!(page.next(&paging, 2, None), Ok(true));
        assert_eq!(page.path("/x", &paging), "/x?p=2&n=2");
        assert_eq!(page.next(&paging, 1, None), Ok(false));

        let paging = Paging::Cursor { cursor: "c".into(), next: vec!["next".into()] };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x", &paging), "/x");
        assert_eq!(page.next(&paging, 0, Some(&json!({"next": "a/b"}))), Ok(true));
        assert_eq!(page.path("/x", &paging), "/x?c=a%2Fb");
        assert_eq!(page.next(&paging, 0, Some(&json!({"next": "a/b"}))), Ok(false), "an end");
        for end in [json!({}), json!({"next": null}), json!({"next": ""}), json!({"next": false})] {
            assert_eq!(page.next(&paging, 5, Some(&end)), Ok(false), "{end}");
        }
    }

    #[test]
    fn what_may_not_be_the_end_of_a_list_is_none() {
        let paging = Paging::Cursor { cursor: "c".into(), next: vec!["next".into()] };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.next(&paging, 5, Some(&json!({"next": 7}))), Ok(true));
        let unmoved = page.next(&paging, 5, Some(&json!({"next": 7}))).unwrap_err();
        assert_eq!(unmoved, "the cursor behind its items is the one that they were asked with");
        for odd in [json!({"next": true}), json!({"next": {"id": 1}}), json!({"next": ["a"]})] {
            let why = page.next(&paging, 5, Some(&odd)).unwrap_err();
            assert_eq!(why, "what stands where its cursor should is none", "{odd}");
        }
    }
}
