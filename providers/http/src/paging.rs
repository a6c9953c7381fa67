//! Lists that come in pages: which page is next, and when there is none.

use serde_json::Value as Json;

use crate::descriptor::model::Paging;
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

    /// Goes to the next page; says whether there is one.
    pub(crate) fn next(&mut self, paging: &Paging, count: usize, json: Option<&Json>) -> bool {
        match paging {
            Paging::Page { size, .. } => {
                self.number += 1;
                let full = size.as_ref().is_none_or(|(_, size)| count as u64 >= *size);
                count > 0 && full
            }
            Paging::Cursor { next, .. } => {
                let found = json.and_then(|json| at(json, next)).and_then(|next| match next {
                    Json::String(text) if !text.is_empty() => Some(text.clone()),
                    Json::Number(number) => Some(number.to_string()),
                    _ => None,
                });
                // A cursor that stays where it is would be followed for ever.
                let moves = found.is_some() && found != self.cursor;
                self.cursor = found;
                moves
            }
            Paging::Link => false,
        }
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
        assert!(page.next(&paging, 2, None));
        assert_eq!(page.path("/x", &paging), "/x?p=2&n=2");
        assert!(!page.next(&paging, 1, None));

        let paging = Paging::Cursor { cursor: "c".into(), next: vec!["next".into()] };
        let mut page = Page::first(Some(&paging));
        assert_eq!(page.path("/x", &paging), "/x");
        assert!(page.next(&paging, 0, Some(&json!({"next": "a/b"}))));
        assert_eq!(page.path("/x", &paging), "/x?c=a%2Fb");
        assert!(!page.next(&paging, 5, Some(&json!({"next": "a/b"}))), "it does not move");
        assert!(!page.next(&paging, 5, Some(&json!({"next": null}))));
    }
}
