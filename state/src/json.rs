//! JSON that can always be read back: its nesting is bounded when writing, below the reader's bound.
//!
//! Not canonical JSON: digests are made of the written bytes.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The deepest nesting that is written. The reader's own bound is 128.
pub(crate) const MAX_DEPTH: usize = 120;

/// Appends the compact JSON of `value` to `bytes`.
pub(crate) fn write(value: &impl Serialize, bytes: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let mut serializer = Serializer::with_formatter(bytes, Bounded { depth: 0 });
    value.serialize(&mut serializer)
}

/// The compact form with a bound; the trait's default methods write it.
struct Bounded {
    depth: usize,
}

impl Bounded {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let why = format!("a value is nested deeper than {MAX_DEPTH} levels");
            return Err(io::Error::other(why));
        }
        Ok(())
    }
}

impl Formatter for Bounded {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> serde_json::Value {
        (0..depth).fold(serde_json::Value::Null, |inner, n| {
            if n % 2 == 0 { serde_json::json!([inner]) } else { serde_json::json!({ "a": inner }) }
        })
    }

    #[test]
    fn what_is_written_is_compact_and_reads_back() {
        let mut bytes = Vec::new();
        let value = serde_json::json!({"a": [1, {"b": "ü\u{0}"}], "c": 0.1});
        write(&value, &mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), serde_json::to_string(&value).unwrap());
    }

    #[test]
    fn nesting_is_refused_before_it_could_not_be_read_back() {
        let mut bytes = Vec::new();
        write(&nested(MAX_DEPTH), &mut bytes).unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        let error = write(&nested(MAX_DEPTH + 1), &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "a value is nested deeper than 120 levels");
    }
}
