//! Functions that turn values into text and back.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Fault;
use super::texts::text;
use crate::address::Name;
use crate::expression::text::text_of;
use crate::stored::{from_json, to_json};
use crate::types::Type;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The message about a secret, whatever the mistake.
const NO_NUMBER: &str = "this is no number";

/// Encodes a value as JSON. Keys are sorted, so equal values give equal texts.
pub(super) fn json_encode(a: &[Value]) -> Out {
    Ok(Value::string(to_json(&a[0]).to_string()))
}

pub(super) fn json_decode(a: &[Value]) -> Out {
    // The parser's message would show parts of the text.
    let json = serde_json::from_str(text(a, 0)).map_err(|error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        let message = format!("this is no JSON: see line {line}, column {column} of the text");
        Fault::new(0, message).of_secret("this is no JSON")
    })?;
    Ok(from_json(&json))
}

pub(super) fn base64_encode(a: &[Value]) -> Out {
    Ok(Value::string(STANDARD.encode(text(a, 0))))
}

pub(super) fn base64_decode(a: &[Value]) -> Out {
    let fault = |message: &str| Fault::new(0, message).of_secret("this is no base64 of a text");
    let bytes = STANDARD.decode(text(a, 0)).map_err(|_| fault("this is no base64 text"))?;
    let text =
        String::from_utf8(bytes).map_err(|_| fault("what is encoded here is no text in UTF-8"))?;
    Ok(Value::string(text))
}

/// Encodes text as a form sends it: letters, digits and `-_.~` stay, a blank becomes `+`.
pub(super) fn url_encode(a: &[Value]) -> Out {
    let mut encoded = String::new();
    for byte in text(a, 0).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            // Writing to a string cannot fail.
            other => drop(write!(encoded, "%{other:02X}")),
        }
    }
    Ok(Value::string(encoded))
}

pub(super) fn url_decode(a: &[Value]) -> Out {
    let text = "this is no encoded part of a URL";
    url_decoded(text_bytes(a)).map_err(|fault| fault.of_secret(text))
}

fn text_bytes(a: &[Value]) -> &[u8] {
    text(a, 0).as_bytes()
}

fn url_decoded(mut bytes: &[u8]) -> Out {
    let mut decoded = Vec::with_capacity(bytes.len());
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        match (first, rest) {
            (b'+', _) => decoded.push(b' '),
            (b'%', [high, low, rest @ ..]) => {
                let digits = [*high, *low].map(|digit| char::from(digit).to_digit(16));
                let [Some(high), Some(low)] = digits else { return Err(no_escape()) };
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(0));
                bytes = rest;
            }
            (b'%', _) => return Err(no_escape()),
            (other, _) => decoded.push(*other),
        }
    }
    let no_text = |_| Fault::new(0, "what is encoded here is no text in UTF-8");
    Ok(Value::string(String::from_utf8(decoded).map_err(no_text)?))
}

fn no_escape() -> Fault {
    Fault::new(0, "a `%` in it is not followed by two hexadecimal digits")
        .help("a percent sign itself is written %25")
}

/// Reads a CSV text whose first row has the names of the columns.
pub(super) fn csv_decode(a: &[Value]) -> Out {
    rows(text(a, 0)).map_err(|fault| fault.of_secret("this is no CSV text with a header"))
}

fn rows(text: &str) -> Out {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<Name> = match reader.headers() {
        Ok(names) if !names.is_empty() => names.iter().map(Name::from).collect(),
        Ok(_) => return Err(Fault::new(0, "there is no row with the names of the columns")),
        Err(error) => return Err(no_row(&error)),
    };
    let distinct: std::collections::BTreeSet<&Name> = names.iter().collect();
    if distinct.len() < names.len() {
        return Err(Fault::new(0, "two columns have the same name"));
    }
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.map_err(|error| no_row(&error))?;
        let cells = names.iter().cloned().zip(record.iter().map(Value::string));
        Ok(Value::map(cells.collect()))
    };
    reader.records().map(row).collect::<Result<Vec<Value>, Fault>>().map(Value::list)
}

fn no_row(error: &csv::Error) -> Fault {
    let line = error.position().map_or(1, csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!(
                "the row on line {line} of the text has {len} cells, and there are {expected_len} columns"
            )
        }
        _ => format!("this is no CSV: see line {line} of the text"),
    };
    Fault::new(0, message)
}

/// Returns the type of a list of maps of texts.
pub(super) fn rows_type(_: &[Type]) -> Type {
    Type::list(Type::map(Type::String))
}

pub(super) fn to_string(a: &[Value]) -> Out {
    Ok(text_of(&a[0]).map_or(Value::Null, Value::string))
}

pub(super) fn to_number(a: &[Value]) -> Out {
    match &a[0] {
        Value::Null | Value::Integer(_) | Value::Float(_) => Ok(a[0].clone()),
        Value::String(text) => number(text.trim()).ok_or_else(|| {
            let fault = Fault::new(0, "this text is no number").of_secret(NO_NUMBER);
            fault.help("write a number such as 3 or 0.5")
        }),
        _ => Err(Fault::new(0, "a boolean is no number").of_secret(NO_NUMBER)),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse() {
        return Some(Value::Integer(whole));
    }
    // The parser reads the words `inf` and `nan` as numbers, which people do not expect.
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number: f64 = plain.then(|| text.parse().ok())??;
    number.is_finite().then_some(Value::Float(number))
}

pub(super) fn to_bool(a: &[Value]) -> Out {
    match &a[0] {
        Value::Null | Value::Bool(_) => Ok(a[0].clone()),
        Value::String(text) if &**text == "true" => Ok(Value::Bool(true)),
        Value::String(text) if &**text == "false" => Ok(Value::Bool(false)),
        _ => Err(Fault::new(0, "this is no boolean").help("write \"true\" or \"false\"")),
    }
}
