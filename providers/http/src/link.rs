//! The header `Link` (RFC 8288), as far as it names the next page of a list.
//!
//! If a misread link ended a list early, objects would seem to be gone. So a header that does not follow the
//! grammar is an error.

/// The reason for refusing a header.
const UNREADABLE: &str = "its header `Link` cannot be read";

type Read<'a, T> = Result<(T, &'a str), &'static str>;

/// Returns the target of the first link to a next page; none if there is no such link.
pub(crate) fn next(header: &str) -> Result<Option<&str>, &'static str> {
    let between = |text: &'_ str| text.trim_start_matches([' ', '\t', ',']).len();
    let mut rest = &header[header.len() - between(header)..];
    while !rest.is_empty() {
        let (target, after) =
            rest.strip_prefix('<').and_then(|rest| rest.split_once('>')).ok_or(UNREADABLE)?;
        let (is_next, after) = parameters(after)?;
        if is_next {
            return Ok(Some(target));
        }
        rest = &after[after.len() - between(after)..];
    }
    Ok(None)
}

/// Reads `; name=value; …` up to the end of a link; returns true if it is a link to the next page.
fn parameters(text: &str) -> Read<'_, bool> {
    let (mut rest, mut relation) = (text.trim_start(), None);
    while let Some(after) = rest.strip_prefix(';') {
        let after = after.trim_start();
        let end = after.find(['=', ';', ',']).unwrap_or(after.len());
        let (name, mut after) = (after[..end].trim_end(), &after[end..]);
        if let Some(text) = after.strip_prefix('=') {
            let (value, behind) = value(text.trim_start())?;
            // Of several relations, the first one counts.
            if name.eq_ignore_ascii_case("rel") && relation.is_none() {
                relation = Some(value.split_whitespace().any(|r| r.eq_ignore_ascii_case("next")));
            }
            after = behind;
        }
        rest = after.trim_start();
    }
    let ends = rest.is_empty() || rest.starts_with(',');
    if ends { Ok((relation.unwrap_or(false), rest)) } else { Err(UNREADABLE) }
}

/// Reads a word, or a text in quotes.
fn value(text: &str) -> Read<'_, String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',', ' ', '\t']).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut letters) = (String::new(), quoted.chars());
    loop {
        match letters.next().ok_or(UNREADABLE)? {
            '"' => return Ok((value, letters.as_str())),
            '\\' => value.push(letters.next().ok_or(UNREADABLE)?),
            letter => value.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_however_it_is_written() {
        for header in [
            r#"<https://a/x?page=1>; rel="prev", </x?page=3>; rel="next""#,
            "</x?page=3>; rel=next",
            r#"</x?page=3>; rel="next last""#,
            r#"</x?page=3>; title="next, \"please\"; yes"; rel="next""#,
            r#"</x?page=3>;rel = "NEXT";rel=prev"#,
            r#", ,</x?page=1>; rel=first; odd ,</x?page=3>; REL="start next""#,
        ] {
            assert_eq!(next(header), Ok(Some("/x?page=3")), "{header}");
        }
        assert_eq!(next("</x?a=1,2;3&page=2>; rel=next"), Ok(Some("/x?a=1,2;3&page=2")));
    }

    #[test]
    fn without_a_next_page_there_is_none() {
        for header in
            ["", "<a>; rel=last", "<a>", "<a>; title=\"rel=next\"", "<a>; rel=prev; rel=next"]
        {
            assert_eq!(next(header), Ok(None), "{header}");
        }
    }

    #[test]
    fn what_is_no_link_is_no_end() {
        for header in ["nonsense", "<a", "<a>; rel=\"next", "<a> rel=next", "<a>; rel=\"x\" y"] {
            assert_eq!(next(header), Err(UNREADABLE), "{header}");
        }
    }
}
