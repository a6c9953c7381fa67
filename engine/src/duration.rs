//! Durations as people write them: `500ms`, `30s`, `5m`, `1h`, `7d`.

use std::time::Duration;

/// Reads a number with a unit; returns none for any other text.
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let milliseconds = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit() {
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("30s"), Some(Duration::from_secs(30)));
        assert_eq!(parse("5m"), Some(Duration::from_mins(5)));
        assert_eq!(parse("1h"), Some(Duration::from_hours(1)));
        assert_eq!(parse("7d"), Some(Duration::from_hours(168)));
        for text in ["", "5", "m", "-5s", "5 s", "5w", "99999999999999999999s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("18446744073709551615h"), None, "it is too long");
    }
}
