//! Names in a descriptor, made from names in a document; and descriptions in one line.

use engine::address::{RESERVED_TYPES, is_name};

/// The longest description.
const WORDS_MAX: usize = 140;
/// The names that an attribute cannot have, because a spec uses them.
const RESERVED_ATTRIBUTES: [&str; 9] =
    ["for_each", "depends_on", "provider", "lifecycle", "old", "one_time", "parent", "self", "api"];
/// The segments of a path that say nothing about the objects below them.
const EMPTY_SEGMENTS: [&str; 4] = ["api", "rest", "v", "public"];

/// Returns a name in lower case with underscores, such as `data_center` for `dataCenter`; none if nothing is
/// left.
pub(crate) fn snake(text: &str) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut name = String::with_capacity(text.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            separate(&mut name);
            continue;
        }
        let before = index.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(index + 1);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|it| {
                it.is_ascii_lowercase()
                    || it.is_ascii_digit()
                    || it.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if begins {
            separate(&mut name);
        }
        name.push(letter.to_ascii_lowercase());
    }
    let name = name.trim_end_matches('_');
    let name = if name.starts_with(|letter: char| letter.is_ascii_digit()) {
        format!("n{name}")
    } else {
        name.to_owned()
    };
    is_name(&name).then_some(name)
}

fn separate(name: &mut String) {
    if !name.is_empty() && !name.ends_with('_') {
        name.push('_');
    }
}

/// Returns the wire name that the descriptor's rule `camel` makes from an attribute's name.
pub(crate) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let mut letters = part.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        head.into_iter().chain(letters).fold(text, |mut text, letter| {
            text.push(letter);
            text
        })
    })
}

/// Returns the singular of the last word of a name.
pub(crate) fn singular(name: &str) -> String {
    let (before, word) = match name.rfind('_') {
        Some(at) => name.split_at(at + 1),
        None => ("", name),
    };
    let irregular = [
        ("aliases", "alias"),
        ("children", "child"),
        ("indices", "index"),
        ("indexes", "index"),
        ("people", "person"),
        ("data", "data"),
        ("series", "series"),
        ("dns", "dns"),
    ];
    if let Some((_, one)) = irregular.iter().find(|(many, _)| *many == word) {
        return format!("{before}{one}");
    }
    let cut = |end: usize| word.get(..word.len().saturating_sub(end)).unwrap_or(word);
    let one = match word {
        _ if word.len() < 4 => word.to_owned(),
        _ if word.ends_with("ies") => format!("{}y", cut(3)),
        _ if ["sses", "shes", "ches", "xes", "zzes", "uses"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            cut(2).to_owned()
        }
        _ if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => word.to_owned(),
        _ => word.strip_suffix('s').unwrap_or(word).to_owned(),
    };
    format!("{before}{one}")
}

/// Returns true if a segment of a path says nothing about the objects below it, such as `v1`.
pub(crate) fn is_empty_segment(segment: &str) -> bool {
    let word = segment.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    EMPTY_SEGMENTS.contains(&word)
}

/// Returns the name of an attribute of a type; a reserved name gets the noun of the type before it.
pub(crate) fn attribute_name(wire: &str, noun: &str) -> Option<String> {
    let name = snake(wire)?;
    Some(if RESERVED_ATTRIBUTES.contains(&name.as_str()) { format!("{noun}_{name}") } else { name })
}

/// Returns a name that a type can have.
pub(crate) fn type_name(name: &str, provider: &str) -> String {
    if RESERVED_TYPES.contains(&name) { format!("{provider}_{name}") } else { name.to_owned() }
}

/// Returns the name of a provider, from the title of its document.
pub(crate) fn provider_name(title: &str) -> String {
    const NO_NAMES: [&str; 14] = [
        "api",
        "rest",
        "the",
        "openapi",
        "swagger",
        "official",
        "spec",
        "specification",
        "server",
        "http",
        "s",
        "description",
        "public",
        "service",
    ];
    let title = title.to_ascii_lowercase();
    let is_version =
        |word: &str| word.trim_start_matches('v').chars().all(|letter| letter.is_ascii_digit());
    let mut words = title.split(|letter: char| !letter.is_ascii_alphanumeric());
    let name = words.find(|word| {
        !word.is_empty() && !NO_NAMES.contains(word) && !is_version(word) && is_name(word)
    });
    name.unwrap_or("acme").to_owned()
}

/// Returns the first sentence of a text in one line, without marks of markdown.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.trim();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = without_links(&words).chars().filter(|it| !is_hidden(*it)).collect();
    let sentence = words.find(". ").map_or(words.as_str(), |end| &words[..=end]);
    if sentence.chars().count() <= WORDS_MAX {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(WORDS_MAX).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{} …", &cut[..end])
}

/// Returns the description of the object that a call makes: `A label.` for `Create a label`.
pub(crate) fn made(summary: &str) -> String {
    const VERBS: [&str; 12] = [
        "create",
        "creates",
        "add",
        "adds",
        "register",
        "registers",
        "insert",
        "new",
        "get",
        "gets",
        "retrieve",
        "retrieves",
    ];
    let mut words = summary.split_whitespace();
    let is_verb = words.next().is_some_and(|word| VERBS.contains(&word.to_lowercase().as_str()));
    let mut rest = words.next().into_iter().chain(words);
    let article = rest.next().filter(|_| is_verb);
    let article = article.filter(|word| matches!(word.to_lowercase().as_str(), "a" | "an"));
    let Some(article) = article else { return summary.to_owned() };
    let article = if article.eq_ignore_ascii_case("an") { "An" } else { "A" };
    let rest = rest.collect::<Vec<_>>().join(" ");
    format!("{article} {}.", rest.trim_end_matches('.'))
}

/// Returns true if a character controls a terminal, is invisible, or changes the direction of text.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{feff}'
        )
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{e0000}'..='\u{e0fff}')
}

/// Returns a text with `[words](address)` replaced by the words, and without bold marks.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let Some(end) = after.find(')') else { break };
        match before.rfind('[') {
            Some(open) => {
                plain.push_str(before[..open].trim_end_matches('!'));
                plain.push_str(&before[open + 1..]);
            }
            None => plain.push_str(before),
        }
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    plain.replace("**", "").replace("<br>", " ").replace("<br/>", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_lower_case() {
        for (text, name) in [
            ("dataCenter", Some("data_center")),
            ("SOAEdit", Some("soa_edit")),
            ("gpuTypeIds", Some("gpu_type_ids")),
            ("x-Rate Limit", Some("x_rate_limit")),
            ("@id", Some("id")),
            ("2fa", Some("n2fa")),
            ("v2Name", Some("v2_name")),
            ("ü", None),
            ("", None),
        ] {
            assert_eq!(snake(text).as_deref(), name, "{text}");
        }
        assert_eq!(camel("data_center_id"), "dataCenterId");
    }

    #[test]
    fn singulars() {
        for (many, one) in [
            ("labels", "label"),
            ("network_volumes", "network_volume"),
            ("registries", "registry"),
            ("databases", "database"),
            ("addresses", "address"),
            ("statuses", "status"),
            ("boxes", "box"),
            ("ssh_keys", "ssh_key"),
            ("serverless", "serverless"),
            ("dns", "dns"),
        ] {
            assert_eq!(singular(many), one);
        }
    }

    #[test]
    fn providers() {
        for (title, name) in [
            ("GitHub's official OpenAPI spec", "github"),
            ("Runpod API v2", "runpod"),
            ("The Swagger Petstore API", "petstore"),
            ("API", "acme"),
        ] {
            assert_eq!(provider_name(title), name, "{title}");
        }
    }

    #[test]
    fn hidden_characters_are_left_out_or_written_as_codes() {
        assert_eq!(one_line("a\u{202e}b\u{1b}[2J"), "ab[2J");
        assert_eq!(
            crate::attribute::quoted("a\u{202e}\"\u{7f}\u{e0001}"),
            r#""a\u202e\"\u007f\U000e0001""#
        );
    }

    #[test]
    fn words_for_what_is_made() {
        for (summary, words) in [
            ("Create a label", "A label."),
            ("Register an ECR delegation.", "An ECR delegation."),
            ("Create or update a secret", "Create or update a secret"),
            ("", ""),
        ] {
            assert_eq!(made(summary), words);
        }
    }

    #[test]
    fn words_in_one_line() {
        assert_eq!(
            one_line("The **name** of the [zone](https://a.example/b).\nMore of it. And more."),
            "The name of the zone."
        );
        assert!(one_line(&"word ".repeat(100)).chars().count() <= WORDS_MAX + 2);
    }
}
