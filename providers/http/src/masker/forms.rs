//! The forms in which a server may write a secret: in part, in upper or lower case, in hexadecimal, in
//! base64, escaped.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;

/// The length of the parts of a secret that are masked, in characters. A shorter secret is masked as a whole.
pub(super) const PART: usize = 6;
/// The number of base64 characters that encode a part.
const PART_IN_BASE64: usize = 8;
/// The number of hexadecimal characters that encode a part.
const PART_IN_HEX: usize = 12;

/// The forms of some secrets. Their parts are not listed, because a secret may be a file of a megabyte; the
/// text that is searched is short.
pub(super) struct SecretForms {
    /// The forms in lower case: the secrets themselves, and in hexadecimal.
    ignoring_case: Vec<SecretForm>,
    /// The forms in base64, in the usual alphabet.
    in_base64: Vec<SecretForm>,
}

/// One form of a secret.
struct SecretForm {
    letters: Vec<char>,
    /// The length of the parts that are searched for, in characters.
    part: usize,
}

impl SecretForms {
    pub(super) fn of(secrets: &[Arc<str>]) -> Self {
        let (mut ignoring_case, mut in_base64) = (Vec::new(), Vec::new());
        for secret in secrets {
            let letters = secret.chars().map(small).collect();
            ignoring_case.push(SecretForm { letters, part: PART });
            let hex = secret.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes());
            let letters = hex.map(char::from).collect();
            ignoring_case.push(SecretForm { letters, part: PART_IN_HEX });
            for before in 0..3 {
                let letters = base64_letters(secret.as_bytes(), before);
                in_base64.push(SecretForm { letters, part: PART_IN_BASE64 });
            }
        }
        Self { ignoring_case, in_base64 }
    }

    /// Marks the bytes of a text that belong to parts of the secrets.
    pub(super) fn cover(&self, text: &str, is_covered: &mut [bool]) {
        let starts: Vec<usize> =
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut cover = |letters: Vec<char>, forms: &[SecretForm]| {
            for (start, length) in parts_in(&letters, forms) {
                is_covered[starts[start]..starts[start + length]].fill(true);
            }
        };
        cover(text.chars().map(small).collect(), &self.ignoring_case);
        cover(text.chars().map(usual_alphabet).collect(), &self.in_base64);
    }

    /// Returns true if the text contains a part of a secret.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let mut is_covered = vec![false; text.len()];
        self.cover(text, &mut is_covered);
        is_covered.contains(&true)
    }
}

/// Returns the start and the length of each part of these forms in a text.
fn parts_in(text: &[char], forms: &[SecretForm]) -> Vec<(usize, usize)> {
    let mut places: BTreeMap<usize, HashMap<&[char], Vec<usize>>> = BTreeMap::new();
    let mut found = Vec::new();
    for SecretForm { letters, part } in forms.iter().filter(|form| !form.letters.is_empty()) {
        let length = letters.len().min(*part);
        let places = places.entry(length).or_insert_with(|| places_of(text, length));
        for part in letters.windows(length) {
            // A part that was found need not be searched again.
            let starts = places.remove(part).unwrap_or_default();
            found.extend(starts.into_iter().map(|start| (start, length)));
        }
    }
    found
}

/// Returns the places of each part of a text of this length.
fn places_of(text: &[char], length: usize) -> HashMap<&[char], Vec<usize>> {
    let mut places: HashMap<&[char], Vec<usize>> = HashMap::new();
    for (start, part) in text.windows(length).enumerate() {
        places.entry(part).or_default().push(start);
    }
    places
}

/// Returns the lower-case letter for an upper-case one: one letter for one, so that places stay the same.
fn small(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

/// Returns the character of the usual base64 alphabet for one of the alphabet for URLs.
fn usual_alphabet(letter: char) -> char {
    match letter {
        '-' => '+',
        '_' => '/',
        letter => letter,
    }
}

/// Returns the base64 characters that depend only on these bytes if `before` other bytes come before them.
fn base64_letters(bytes: &[u8], before: usize) -> Vec<char> {
    let padded = [&[0; 2][..before], bytes].concat();
    let text = STANDARD_NO_PAD.encode(&padded);
    let from = (before * 8).div_ceil(6);
    let to = padded.len() * 8 / 6;
    text.chars().take(to).skip(from).collect()
}

/// Returns a text decoded in each of the encodings in which servers repeat texts.
pub(super) fn decodings(text: &str) -> Vec<String> {
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

/// Returns a text without the escapes of JSON.
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

/// Returns the character with this code.
fn code(hex: Option<&str>) -> Option<char> {
    char::from_u32(u32::from_str_radix(hex?, 16).ok()?)
}

/// Returns a text without the entities of HTML.
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

/// Returns the character that an HTML entity means: one by number, or one of the names that encoders write.
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
