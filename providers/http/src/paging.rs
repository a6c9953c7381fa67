//! Lists with several pages: the next page, and the end of a list.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::descriptor::model::Paging;
use crate::partial_json;
use crate::template::query_pair;
use crate::wire::at;

/// The next page of a list.
pub(crate) struct Page {
    number: u64,
    cursor: Option<String>,
    /// The cursors that were sent.
    asked: BTreeSet<String>,
    /// The ids of the items of the previous page.
    before: Vec<Json>,
}

impl Page {
    pub(crate) fn first(paging: Option<&Paging>) -> Self {
        let number = if let Some(Paging::Page { first, .. }) = paging { *first } else { 0 };
        Self { number, cursor: None, asked: BTreeSet::new(), before: Vec::new() }
    }

    /// Returns true if a 404 means that there is no such page.
    pub(crate) fn may_be_none(&self) -> bool {
        !self.before.is_empty()
    }

    pub(crate) fn path(&self, first: &str, paging: &Paging) -> String {
        let mut pairs = Vec::new();
        match paging {
            Paging::Page { page, size, .. } => {
                pairs.push(query_pair(page, &self.number.to_string()));
                pairs.extend(size.iter().map(|(name, size)| query_pair(name, &size.to_string())));
            }
            Paging::Offset { offset, size: (name, size) } => {
                pairs.push(query_pair(offset, &self.number.to_string()));
                pairs.push(query_pair(name, &size.to_string()));
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

    /// Goes to the next page. Returns true if there is one, or the reason that this is not known. If a list
    /// ended too early, objects would seem to be gone, so it ends only if the end is certain.
    pub(crate) fn next(
        &mut self,
        paging: &Paging,
        ids: Vec<Json>,
        json: Option<&Json>,
    ) -> Result<bool, &'static str> {
        let count = ids.len();
        match paging {
            Paging::Page { first, size, .. } => {
                let is_second = self.number == first + 1;
                self.number += 1;
                let full = size.as_ref().is_none_or(|(_, size)| count as u64 >= *size);
                self.after(ids, is_second && full)
            }
            Paging::Offset { size: (_, size), .. } => {
                let is_second = self.number > 0 && self.before.len() as u64 == self.number;
                // A server may limit the size of its pages: the next one begins where this one ends.
                self.number += count as u64;
                self.after(ids, is_second && count as u64 >= *size)
            }
            Paging::Cursor { next, .. } => {
                let found = cursor(json.and_then(|json| at(json, next)))?;
                let moves = found.is_some() && found != self.cursor;
                if found.is_some() && !moves && count > 0 {
                    return Err("the cursor behind its items is the one that they were asked with");
                }
                // A cursor of 0 that marks the end would lead to the first page again.
                let is_new = found.iter().all(|cursor| self.asked.insert(cursor.clone()));
                if moves && !is_new {
                    return Err("its cursors go round: one that it was asked with comes again");
                }
                self.cursor = found;
                Ok(moves)
            }
            Paging::Link => Ok(false),
        }
    }
}

impl Page {
    /// Returns true if a page comes after this one. A full second page that repeats the first one is an
    /// error, because it does not show where the list ends.
    fn after(&mut self, ids: Vec<Json>, is_full_second: bool) -> Result<bool, &'static str> {
        let (count, again) = (ids.len(), ids == self.before);
        self.before = ids;
        match (count, again) {
            (0, _) => Ok(false),
            (_, true) if is_full_second => Err("its first two pages show the same objects"),
            // A server without further pages may show its last one again.
            (_, again) => Ok(!again),
        }
    }
}

/// Returns the cursor in an answer; none at the end of a list.
fn cursor(shown: Option<&Json>) -> Result<Option<String>, &'static str> {
    match shown {
        None | Some(Json::Null | Json::Bool(false)) => Ok(None),
        Some(shown) if partial_json::unreadable(shown).is_some() => {
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

    fn ids(ids: &[i64]) -> Vec<Json> {
        ids.iter().map(|id| json!(id)).collect()
    }

    #[test]
    fn a_page_that_is_shown_again_is_the_last_where_pages_are_told_apart() {
        let paging = Paging::Page { page: "p".into(), first: 1, size: Some(("n".into(), 2)) };
        let ends = |pages: &[&[i64]]| {
            let mut page = Page::first(Some(&paging));
            pages.iter().map(|shown| page.next(&paging, ids(shown), None)).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[&[1, 2], &[3, 4], &[3, 4]]), [Ok(true), Ok(true), Ok(false)]);
        assert_eq!(ends(&[&[1], &[1]]), [Ok(true), Ok(false)], "there is but one");
        let why = "its first two pages show the same objects";
        assert_eq!(ends(&[&[1, 2], &[1, 2]]), [Ok(true), Err(why)], "there may be a third");
    }

    #[test]
    fn pages() {
        let paging = Paging::Page { page: "p".into(), first: 1, size: Some(("n".into(), 2)) };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x?a=b", &paging), "/x?a=b&p=1&n=2");
        assert_eq!(page.next(&paging, ids(&[1, 2]), None), Ok(true));
        assert_eq!(page.path("/x", &paging), "/x?p=2&n=2");
        assert_eq!(page.next(&paging, ids(&[3]), None), Ok(true), "a server may cap its pages");
        assert_eq!(page.next(&paging, ids(&[]), None), Ok(false));

        let paging = Paging::Offset { offset: "o".into(), size: ("n".into(), 2) };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x", &paging), "/x?o=0&n=2");
        assert_eq!(page.next(&paging, ids(&[1, 2]), None), Ok(true));
        assert_eq!(page.path("/x", &paging), "/x?o=2&n=2");
        assert_eq!(page.next(&paging, ids(&[3]), None), Ok(true), "a server may cap its pages");
        assert_eq!(page.path("/x", &paging), "/x?o=3&n=2");
        assert_eq!(page.next(&paging, ids(&[]), None), Ok(false));
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.next(&paging, ids(&[1, 2]), None), Ok(true));
        let again = page.next(&paging, ids(&[1, 2]), None);
        assert_eq!(again, Err("its first two pages show the same objects"), "it has no offset");

        let paging = Paging::Cursor { cursor: "c".into(), next: vec!["next".into()] };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x", &paging), "/x");
        let next = json!({"next": "a/b"});
        assert_eq!(page.next(&paging, ids(&[]), Some(&next)), Ok(true));
        assert_eq!(page.path("/x", &paging), "/x?c=a%2Fb");
        assert_eq!(page.next(&paging, ids(&[]), Some(&next)), Ok(false), "an end");
        for end in [json!({}), json!({"next": null}), json!({"next": ""}), json!({"next": false})] {
            assert_eq!(page.next(&paging, ids(&[1]), Some(&end)), Ok(false), "{end}");
        }
    }

    #[test]
    fn what_may_not_be_the_end_of_a_list_is_none() {
        let paging = Paging::Cursor { cursor: "c".into(), next: vec!["next".into()] };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.next(&paging, ids(&[1]), Some(&json!({"next": 7}))), Ok(true));
        let unmoved = page.next(&paging, ids(&[2]), Some(&json!({"next": 7}))).unwrap_err();
        assert_eq!(unmoved, "the cursor behind its items is the one that they were asked with");
        let round =
            [4, 0, 4].map(|next| page.next(&paging, ids(&[3]), Some(&json!({"next": next}))));
        assert_eq!(&round[..2], [Ok(true), Ok(true)], "any cursor may be one");
        let why = round[2].unwrap_err();
        assert_eq!(why, "its cursors go round: one that it was asked with comes again");
        for odd in [json!({"next": true}), json!({"next": {"id": 1}}), json!({"next": ["a"]})] {
            let why = page.next(&paging, ids(&[1]), Some(&odd)).unwrap_err();
            assert_eq!(why, "what stands where its cursor should is none", "{odd}");
        }
    }
}
