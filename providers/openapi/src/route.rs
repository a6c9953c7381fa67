//! Paths of a document: their segments, and their relations to each other.

use crate::names::{is_empty_segment, snake};

/// A path with the names of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Word(String),
    Parameter(String),
}

/// A path without the names of its parameters, such as `/zones/{}`, so that equal paths have equal keys.
pub(crate) type RouteKey = String;

impl Route {
    /// Reads a path; returns none if a segment is more than a word or a parameter.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let segments = path.trim_end_matches('/').split('/').map(segment);
        Some(Self { segments: segments.collect::<Option<_>>()? })
    }

    /// Returns the key of the path.
    pub(crate) fn key(&self) -> RouteKey {
        self.key_of(self.segments.len())
    }

    fn key_of(&self, count: usize) -> RouteKey {
        let word = |segment: &Segment| match segment {
            Segment::Word(word) => format!("/{word}"),
            Segment::Parameter(_) => "/{}".to_owned(),
        };
        self.segments.iter().take(count).map(word).collect()
    }

    /// Returns the names of the parameters, in order.
    pub(crate) fn parameters(&self) -> Vec<&str> {
        let names = self.segments.iter().filter_map(|segment| match segment {
            Segment::Parameter(name) => Some(name.as_str()),
            Segment::Word(_) => None,
        });
        names.collect()
    }

    /// Returns the number of parameters at the end of the path.
    pub(crate) fn own_parameters(&self) -> usize {
        self.segments.iter().rev().take_while(|it| matches!(it, Segment::Parameter(_))).count()
    }

    /// Returns the key of the path without the last segments.
    pub(crate) fn key_above(&self, levels: usize) -> RouteKey {
        self.key_of(self.segments.len().saturating_sub(levels))
    }

    /// Returns the keys of the paths above it that end in a parameter, the nearest first.
    pub(crate) fn items_above(&self) -> Vec<RouteKey> {
        let ends = (1..self.segments.len()).rev();
        let is_item = |end: &usize| matches!(self.segments[*end - 1], Segment::Parameter(_));
        ends.filter(is_item).map(|end| self.key_of(end)).collect()
    }

    /// Returns the path with a text for each parameter, in order.
    pub(crate) fn filled(&self, texts: &[String]) -> String {
        let mut texts = texts.iter();
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            match segment {
                Segment::Word(word) => path.push_str(word),
                Segment::Parameter(name) => path.push_str(texts.next().unwrap_or(name)),
            }
        }
        path
    }

    /// Returns the words of the segments, the last first, without those that say nothing.
    pub(crate) fn nouns(&self) -> Vec<String> {
        let words = self.segments.iter().rev().filter_map(|segment| match segment {
            Segment::Word(word) if !is_empty_segment(word) => snake(word),
            _ => None,
        });
        words.collect()
    }

    /// Returns the number of segments.
    pub(crate) fn depth(&self) -> usize {
        self.segments.len()
    }
}

fn segment(text: &str) -> Option<Segment> {
    if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let is_one = !name.is_empty() && !name.contains(['{', '}', '*', '+']);
        return is_one.then(|| Segment::Parameter(name.to_owned()));
    }
    let is_odd = |letter: char| {
        matches!(letter, '{' | '}' | '?' | '#' | '$' | '%' | '"' | '\\')
            || letter.is_control()
            || letter.is_whitespace()
    };
    (!text.is_empty() && !text.contains(is_odd)).then(|| Segment::Word(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_what_stands_above_them() {
        let route = Route::read("/v1/zones/{zoneId}/records/{name}/{type}").unwrap();
        assert_eq!(route.key(), "/v1/zones/{}/records/{}/{}");
        assert_eq!(route.parameters(), ["zoneId", "name", "type"]);
        assert_eq!(route.own_parameters(), 2);
        assert_eq!(route.key_above(2), "/v1/zones/{}/records");
        assert_eq!(route.items_above(), ["/v1/zones/{}/records/{}", "/v1/zones/{}"]);
        assert_eq!(route.nouns(), ["records", "zones"]);
        let texts = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(route.filled(&texts), "/v1/zones/a/records/b/c");
        for odd in ["zones", "/a/{b}.json", "/a//b", "/a?b=c", "/a/{}", "/{proxy+}", "/${x}", "/"] {
            assert_eq!(Route::read(odd), None, "{odd}");
        }
    }
}
