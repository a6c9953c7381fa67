//! Secrets in a server's words, however it wrote them.
//!
//! A server that refuses a call often repeats what it was sent: whole, in part, in capitals,
//! escaped or encoded. What can be seen where it stands is masked; of words that hold a secret only
//! once they are decoded nothing is shown, because there is no telling which of them it is.
//! This is for what people see. Nothing of a server's words is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use engine::value::Value;
use percent_encoding::percent_decode_str;

/// What stands for a secret.
const MASKED: &str = "…";
/// What is shown in place of words that hold a secret somewhere.
const UNSHOWN: &str = "(its words are not shown: they repeat a secret)";
/// The longest part of a secret, in characters, that may be shown is one shorter.
const PART: usize = 6;
/// Shorter secrets are no secrets, and would tear ordinary words apart.
const SHORTEST: usize = 3;
/// As many characters of base64 stand for a part, and as many of hexadecimal.
const PART_IN_BASE64: usize = 8;
const PART_IN_HEX: usize = 12;

/// Secrets that no words may show.
#[derive(Clone, Default)]
pub struct Hidden(Vec<Arc<str>>);

impl Hidden {
    /// Adds the texts and numbers of a value. What is true or false tells nothing by itself.
    pub fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text.clone()),
            Value::Integer(number) => self.add_text(number.to_string().into()),
            Value::Float(number) => self.add_text(number.to_string().into()),
            Value::List(items) | Value::Set(items) => items.iter().for_each(|item| self.add(item)),
            Value::Map(entries) => entries.values().for_each(|item| self.add(item)),
            Value::Null | Value::Bool(_) | Value::Unknown(_) | Value::Sealed(_) => {}
        }
    }

    fn add_text(&mut self, text: Arc<str>) {
        if text.chars().count() >= SHORTEST {
            self.0.push(text);
        }
    }

    /// The words without the secrets.
    pub fn hide(&self, words: String) -> String {
        if self.0.is_empty() || words.is_empty() {
            return words;
        }
        let parts = Parts::of(&self.0);
        let masked = parts.mask(&words);
        let shows = |decoded: String| decoded != masked && parts.mask(&decoded) != decoded;
        if decodings(&masked).into_iter().any(shows) { UNSHOWN.to_owned() } else { masked }
    }
}

/// How secrets are written, and how long a part of each may not be. The parts are not listed: a secret may be
/// a file of a megabyte, and what is searched are a server's few words.
#[derive(Default)]
struct Parts {
    /// In small letters: as they are, and in hexadecimal.
    plain: Vec<(Vec<char>, usize)>,
    /// As they are; in base64, of the usual alphabet, case tells.
    encoded: Vec<(Vec<char>, usize)>,
}

impl Parts {
    fn of(secrets: &[Arc<str>]) -> Self {
        let mut parts = Self::default();
        for secret in secrets {
            let small: Vec<char> = secret.chars().map(small).collect();
            parts.plain.push((small, PART));
            let hex = secret.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes());
            parts.plain.push((hex.map(char::from).collect(), PART_IN_HEX));
            for before in 0..3 {
                parts.encoded.push((in_base64(secret.as_bytes(), before), PART_IN_BASE64));
            }
        }
        parts
    }

    /// The text with every part masked.
    fn mask(&self, text: &str) -> String {
        let letters: Vec<char> = text.chars().collect();
        let plain: Vec<char> = letters.iter().copied().map(small).collect();
        let usual: Vec<char> = letters.iter().copied().map(usual_alphabet).collect();
        let mut covered = vec![false; letters.len()];
        cover(&plain, &self.plain, &mut covered);
        cover(&usual, &self.encoded, &mut covered);
        let mut masked = String::with_capacity(text.len());
        for (index, letter) in letters.iter().enumerate() {
            match (covered[index], index > 0 && covered[index - 1]) {
                (false, _) => masked.push(*letter),
                (true, false) => masked.push_str(MASKED),
                (true, true) => {}
            }
        }
        masked
    }
}

/// Marks where parts of these secrets stand: of their length, or the whole of a shorter one.
fn cover(text: &[char], secrets: &[(Vec<char>, usize)], covered: &mut [bool]) {
    let mut places: BTreeMap<usize, HashMap<&[char], Vec<usize>>> = BTreeMap::new();
    for (secret, length) in secrets.iter().filter(|(secret, _)| !secret.is_empty()) {
        let length = secret.len().min(*length);
        let places = places.entry(length).or_insert_with(|| places_of(text, length));
        for part in secret.windows(length) {
            // What was marked once need not be found again.
            for start in places.remove(part).unwrap_or_default() {
                covered[start..start + length].fill(true);
            }
        }
    }
}

/// Where each part of a text of this length stands.
fn places_of(text: &[char], length: usize) -> HashMap<&[char], Vec<usize>> {
    let mut places: HashMap<&[char], Vec<usize>> = HashMap::new();
    for (start, part) in text.windows(length).enumerate() {
        places.entry(part).or_default().push(start);
    }
    places
}

/// A small letter for a capital, one for one, so that places stay the same.
fn small(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

fn usual_alphabet(letter: char) -> char {
    match letter {
        '-' => '+',
        '_' => '/',
        letter => letter,
    }
}

/// The characters of base64 that depend on these bytes alone, when as many others stand before.
fn in_base64(bytes: &[u8], before: usize) -> Vec<char> {
    let padded = [&[0; 2][..before], bytes].concat();
    let text = STANDARD_NO_PAD.encode(&padded);
    let from = (before * 8).div_ceil(6);
    let to = padded.len() * 8 / 6;
    text.chars().take(to).skip(from).collect()
}

/// The text as it reads once what is escaped in it is not.
fn decodings(text: &str) -> Vec<String> {
    let percent =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let twice = without_entities(&without_escapes(&percent(text)));
    vec![
        percent(text),
        percent_decode_str(text).decode_utf8_lossy().into_owned(),
        without_escapes(text),
        without_entities(text),
        without_entities(&without_escapes(&percent(&twice))),
        twice,
    ]
}

/// Without the escapes of JSON.
fn without_escapes(text: &str) -> String {
    let mut clear = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        clear.push_str(before);
        let mut letters = after.chars();
        let escape = letters.next();
        rest = letters.as_str();
        match escape {
            Some('u') => match code(rest.get(..4)) {
                Some(letter) => {
                    clear.push(letter);
                    rest = &rest[4..];
                }
                None => clear.push('u'),
            },
            Some('n') => clear.push('\n'),
            Some('r') => clear.push('\r'),
            Some('t') => clear.push('\t'),
            Some(letter) => clear.push(letter),
            None => {}
        }
    }
    clear + rest
}

fn code(hex: Option<&str>) -> Option<char> {
    char::from_u32(u32::from_str_radix(hex?, 16).ok()?)
}

/// Without the entities of HTML that stand for what one would escape.
fn without_entities(text: &str) -> String {
    let mut clear = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        clear.push_str(before);
        let entity = after.split_once(';').filter(|(name, _)| name.len() <= 8);
        let letter = entity.and_then(|(name, _)| entity_of(name));
        if let (Some(letter), Some((_, after))) = (letter, entity) {
            clear.push(letter);
            rest = after;
        } else {
            clear.push('&');
            rest = after;
        }
    }
    clear + rest
}

fn entity_of(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = hex.map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16));
        return char::from_u32(code.ok()?);
    }
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(values: &[Value]) -> Hidden {
        let mut hidden = Hidden::default();
        for value in values {
            hidden.add(value);
        }
        hidden
    }

    #[test]
    fn secrets_show_in_no_form() {
        let secret = "P\"rt&<Canary>+7é";
        let hidden = hidden(&[Value::string(secret), Value::Integer(7_423_187_465)]);
        let base64 = |text: &str| STANDARD_NO_PAD.encode(text);
        let forms = [
            secret.to_owned(),
            secret.to_uppercase(),
            secret.to_lowercase(),
            serde_json::Value::from(secret).to_string(),
            percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC)
                .to_string(),
            secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
            secret.chars().map(|c| format!("&#{};", u32::from(c))).collect::<Vec<_>>().concat(),
            secret.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<Vec<_>>().concat(),
            secret[..9].to_owned(),
            secret[7..].to_owned(),
            base64(secret),
            base64(&format!("u:{secret}")),
            base64(&format!("user:{secret}")).replace('+', "-").replace('/', "_"),
            base64(&format!("me:{secret}@host")),
            secret.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat(),
            "7423187465".to_owned(),
            "-7423187465.0".to_owned(),
        ];
        let small: Vec<char> = secret.to_lowercase().chars().collect();
        for form in forms {
            let shown = hidden.hide(format!("the value {form} is bad"));
            assert!(!shown.contains(&form), "{form}: {shown}");
            let letters: Vec<char> = shown.to_lowercase().chars().collect();
            let part = letters.windows(PART).any(|part| small.windows(PART).any(|s| s == part));
            assert!(!part && !shown.contains("742318"), "{form}: {shown}");
        }
    }

    #[test]
    fn ordinary_words_stay() {
        let hidden = hidden(&[
            Value::string("hunter2-hunter2"),
            Value::string("ab"),
            Value::Bool(true),
            Value::Integer(42),
        ]);
        let words = "the name \"hunt\" is taken: true, 42 & more &copy; 100% \\ab \\";
        assert_eq!(hidden.hide(words.to_owned()), words);
        assert_eq!(hidden.hide("no Hunter2- here".to_owned()), "no … here");
        assert_eq!(Hidden::default().hide("as it is".to_owned()), "as it is");
    }

    #[test]
    fn short_secrets_are_known_as_a_whole() {
        let hidden = hidden(&[Value::Integer(123), Value::string("ab12")]);
        assert_eq!(hidden.hide("pin 123 or AB12, 12".to_owned()), "pin … or …, 12");
    }

    /// A file that is a secret, in words as long as an error's may be.
    #[test]
    fn a_long_secret_is_found_in_words_that_repeat_a_part_of_it() {
        let secret: String = (0..20_000).map(|n| (n * 7919).to_string() + ",").collect();
        let hidden = hidden(&[Value::string(&*secret)]);
        let words = format!("it begins so: {}, and ends", &secret[100_000..100_040]);
        assert_eq!(hidden.hide(words), "it begins so: …, and ends");
    }
}
