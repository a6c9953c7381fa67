//! Functions that turn values into text and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Fault;
use super::texts::text;
use crate::expression::text::text_of;
use crate::stored::{from_json, to_json};
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The words about a secret, whatever it is.
const NO_NUMBER: &str = "this is no number";

/// Keys are sorted, so equal values give equal texts.
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
    // `inf` and `nan` are words to the parser, not to people.
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
