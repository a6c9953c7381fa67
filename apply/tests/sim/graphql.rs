//! A reader for the part of GraphQL that the provider writes: one operation, one path of fields, literals.

use serde_json::{Map, Value as Json};

/// A GraphQL operation.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) mutation: bool,
    pub(crate) alias: String,
    /// The first field; if that is `myself`, the first field inside it.
    pub(crate) field: String,
    pub(crate) arguments: Map<String, Json>,
}

struct Reader<'a> {
    rest: &'a str,
}

/// Reads a document. A document that is written in another way fails the test.
pub(crate) fn read(text: &str) -> Document {
    let mut reader = Reader { rest: text };
    let mutation = reader.name() == "mutation";
    reader.expect('{');
    let alias = reader.name();
    reader.expect(':');
    let mut field = reader.name();
    if field == "myself" {
        reader.expect('{');
        field = reader.name();
    }
    let arguments = if reader.next_is('(') { reader.arguments() } else { Map::new() };
    Document { mutation, alias, field, arguments }
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', ',', '\n']);
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.skip();
        self.rest.starts_with(wanted)
    }

    fn expect(&mut self, wanted: char) {
        assert!(self.next_is(wanted), "`{wanted}` is due at {}", self.rest);
        self.rest = &self.rest[wanted.len_utf8()..];
    }

    fn name(&mut self) -> String {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        assert!(!name.is_empty(), "a name is due at {rest}");
        self.rest = rest;
        name.to_owned()
    }

    fn arguments(&mut self) -> Map<String, Json> {
        self.expect('(');
        self.pairs(')')
    }

    fn pairs(&mut self, end: char) -> Map<String, Json> {
        let mut pairs = Map::new();
        while !self.next_is(end) {
            let name = self.name();
            self.expect(':');
            let value = self.value();
            pairs.insert(name, value);
        }
        self.expect(end);
        pairs
    }

    fn value(&mut self) -> Json {
        self.skip();
        match self.rest.chars().next() {
            Some('{') => {
                self.expect('{');
                Json::Object(self.pairs('}'))
            }
            Some('[') => {
                self.expect('[');
                let mut items = Vec::new();
                while !self.next_is(']') {
                    items.push(self.value());
                }
                self.expect(']');
                Json::Array(items)
            }
            Some('"' | '-' | '0'..='9') => {
                let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter();
                let value: Json = stream.next().unwrap().unwrap();
                self.rest = &self.rest[stream.byte_offset()..];
                value
            }
            _ => match self.name().as_str() {
                "true" => true.into(),
                "false" => false.into(),
                "null" => Json::Null,
                name => name.into(),
            },
        }
    }
}

#[test]
fn documents_are_read() {
    let document = read(
        r#"mutation { a7: save(input: {list: ["a,}", 1], of: {type: QB}, no: null, size: -1.5}) { id pods { x } } }"#,
    );
    assert_eq!((document.mutation, &*document.alias, &*document.field), (true, "a7", "save"));
    let wanted = serde_json::json!({"input": {"list": ["a,}", 1], "of": {"type": "QB"}, "no": null, "size": -1.5}});
    assert_eq!(Json::Object(document.arguments), wanted);
    let document = read(r#"query { a1: myself { endpoint(id: "x") { id } } }"#);
    assert_eq!((&*document.field, document.arguments["id"].as_str()), ("endpoint", Some("x")));
    assert_eq!(read("query { a2: myself { endpoints { id } } }").field, "endpoints");
}
