//! Patterns of paths: `*.txt`, `**/*.{yaml,yml}`.

/// The most patterns that a pattern with braces may stand for.
const PATTERNS_MAX: usize = 100;

/// A pattern without braces: the parts between its slashes.
pub(in crate::expression) struct Glob(Vec<Vec<Piece>>);

/// A piece of a part.
enum Piece {
    One(char),
    Any,
    Star,
    /// A part of two stars: any folders.
    Folders,
    /// A character in these ranges, or in none of them.
    Class {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
}

/// Reads a pattern; returns one or more patterns without braces.
pub(in crate::expression) fn read(pattern: &str) -> Result<Vec<Glob>, String> {
    expanded(pattern)?
        .iter()
        .map(|pattern| {
            let parts = pattern.split('/').filter(|part| *part != ".");
            parts.map(pieces).collect::<Result<_, _>>().map(Glob)
        })
        .collect()
}

/// Returns true if one of the patterns matches the path.
pub(in crate::expression) fn name(patterns: &[Glob], path: &str) -> bool {
    let parts: Vec<Vec<char>> = path.split('/').map(|part| part.chars().collect()).collect();
    patterns.iter().any(|glob| {
        matches(&glob.0, &parts, &|glob| matches!(&**glob, [Piece::Folders]), &|glob, part| {
            let is_star = |piece: &Piece| matches!(piece, Piece::Star);
            matches(glob, part, &is_star, &|piece, character| piece.names(*character))
        })
    })
}

impl Piece {
    fn names(&self, character: char) -> bool {
        match self {
            Self::One(one) => *one == character,
            Self::Any => true,
            Self::Star | Self::Folders => false,
            Self::Class { ranges, negated } => {
                let inside = |(first, last): &(char, char)| (*first..=*last).contains(&character);
                ranges.iter().any(inside) != *negated
            }
        }
    }
}

/// Returns true if a sequence matches pieces, some of which match any items. The search goes back only to the
/// last such piece, so it takes time for the product of both lengths at most.
pub(crate) fn matches<P, T>(
    pieces: &[P],
    items: &[T],
    is_star: &dyn Fn(&P) -> bool,
    names: &dyn Fn(&P, &T) -> bool,
) -> bool {
    let (mut piece, mut item) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while item < items.len() {
        match pieces.get(piece) {
            Some(found) if is_star(found) => {
                star = Some((piece, item));
                piece += 1;
            }
            Some(found) if names(found, &items[item]) => {
                piece += 1;
                item += 1;
            }
            _ => match &mut star {
                Some((last, taken)) => {
                    *taken += 1;
                    (piece, item) = (*last + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pieces[piece..].iter().all(is_star)
}

fn pieces(part: &str) -> Result<Vec<Piece>, String> {
    if part == "**" {
        return Ok(vec![Piece::Folders]);
    }
    let mut pieces = Vec::new();
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '*' => Piece::Star,
            '?' => Piece::Any,
            '[' => class(&mut characters)?,
            '\\' => Piece::One(characters.next().ok_or("the pattern ends in a backslash")?),
            other => Piece::One(other),
        });
    }
    Ok(pieces)
}

fn class(characters: &mut std::str::Chars<'_>) -> Result<Piece, String> {
    let inside: String = characters.as_str().chars().take_while(|c| *c != ']').collect();
    characters.by_ref().nth(inside.chars().count()).ok_or("a `[` in the pattern is not closed")?;
    let plain = inside.strip_prefix(['!', '^']);
    let (inside, negated) = (plain.unwrap_or(&inside), plain.is_some());
    let mut ranges = Vec::new();
    let mut rest = inside.chars();
    while let Some(first) = rest.next() {
        let behind: Vec<char> = rest.clone().take(2).collect();
        match behind.as_slice() {
            ['-', last] => {
                ranges.push((first, *last));
                rest.nth(1);
            }
            _ => ranges.push((first, first)),
        }
    }
    Ok(Piece::Class { ranges, negated })
}

/// Returns the patterns that a pattern with braces stands for.
fn expanded(pattern: &str) -> Result<Vec<String>, String> {
    let (mut open, mut done) = (vec![pattern.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        if open.len() + done.len() > PATTERNS_MAX {
            return Err(format!("the pattern stands for more than {PATTERNS_MAX} others"));
        }
        // The innermost braces are those that close first.
        let Some(end) = next.find('}') else {
            if next.contains('{') {
                return Err("a `{` in the pattern is not closed".to_owned());
            }
            done.push(next);
            continue;
        };
        let start = next[..end].rfind('{').ok_or("a `}` in the pattern has no `{` before it")?;
        let around = |choice: &str| format!("{}{choice}{}", &next[..start], &next[end + 1..]);
        open.extend(next[start + 1..end].split(',').map(around));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        let patterns = read(pattern).unwrap();
        assert_eq!(name(&patterns, path), expected, "{pattern} of {path}");
    }

    #[test]
    fn paths_that_patterns_name() {
        check("*.txt", "a.txt", true);
        check("*.txt", "b/a.txt", false);
        check("**/*.txt", "a.txt", true);
        check("**/*.txt", "b/c/a.txt", true);
        check("b/**", "b/c/a.txt", true);
        check("b/**/d/*", "b/d/a", true);
        check("b/**/d/*", "b/x/y/d/a", true);
        check("b/**/d/*", "b/x/y/a", false);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("*a*b", "xaayb", true);
        check("[a-c]x", "bx", true);
        check("[!a-c]x", "bx", false);
        check("*.{yaml,yml}", "a.yml", true);
        check("{a,b{c,d}}.txt", "bd.txt", true);
        check("{a,b{c,d}}.txt", "b.txt", false);
        check(r"\*", "*", true);
        check(r"\*", "a", false);
    }

    #[test]
    fn patterns_that_are_wrong() {
        let error = |pattern: &str| read(pattern).err().unwrap();
        assert_eq!(error("[a"), "a `[` in the pattern is not closed");
        assert_eq!(error("{a"), "a `{` in the pattern is not closed");
        assert_eq!(error("a}"), "a `}` in the pattern has no `{` before it");
        let many = "{a,b,c,d}".repeat(5);
        assert_eq!(error(&many), "the pattern stands for more than 100 others");
    }
}
