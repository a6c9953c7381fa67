//! What a spec says that becomes a part of an address to which credentials go: the names of regions,
//! accounts, buckets and containers. Each has the signs that the service allows in it, and so none
//! that ends a host's name or begins another one.

use engine::spec::settings::StateSettings;

use crate::open::Refusal;

/// The region of a bucket, if the spec says one.
#[cfg(feature = "s3")]
pub(super) fn region(settings: &StateSettings) -> Result<Option<&str>, Refusal> {
    const HELP: &str = "a region is like eu-west-1: small letters, digits and `-`";
    optional(settings, "region", 1..=63, "-", HELP)
}

/// The account that a container belongs to, if the spec says one.
#[cfg(feature = "azure")]
pub(super) fn account(settings: &StateSettings) -> Result<Option<&str>, Refusal> {
    const HELP: &str = "the name of a storage account has 3 to 24 small letters and digits";
    optional(settings, "account", 3..=24, "", HELP)
}

/// The bucket of S3 or GCS.
#[cfg(any(feature = "s3", feature = "gcs"))]
pub(super) fn bucket(settings: &StateSettings) -> Result<&str, Refusal> {
    const HELP: &str = "the name of a bucket has at least 3 small letters, digits, `-`, `_` and `.`, and begins and \
         ends with a letter or a digit";
    required(settings, "bucket", 3..=222, "-_.", HELP)
}

/// The container of Azure.
#[cfg(feature = "azure")]
pub(super) fn container(settings: &StateSettings) -> Result<&str, Refusal> {
    const HELP: &str = "the name of a container has 3 to 63 small letters, digits and `-`, and begins \
                        and ends with a letter or a digit";
    required(settings, "container", 3..=63, "-", HELP)
}

fn required<'a>(
    settings: &'a StateSettings,
    name: &str,
    length: std::ops::RangeInclusive<usize>,
    signs: &str,
    help: &str,
) -> Result<&'a str, Refusal> {
    let given = optional(settings, name, length, signs, help)?;
    given.ok_or_else(|| Refusal::new(format!("`[state]` has no `{name}`")).help(help))
}

/// A name of small letters, digits and `signs`, none of them at either end and no two dots together.
fn optional<'a>(
    settings: &'a StateSettings,
    name: &str,
    length: std::ops::RangeInclusive<usize>,
    signs: &str,
    help: &str,
) -> Result<Option<&'a str>, Refusal> {
    let Some(text) = settings.text(name) else { return Ok(None) };
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_right = length.contains(&text.len())
        && text.chars().all(|c| is_plain(c) || signs.contains(c))
        && text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && !text.contains("..");
    if is_right {
        return Ok(Some(text));
    }
    Err(Refusal::new(format!("the `{name}` of `[state]` is not the name of one")).help(help))
}

#[cfg(test)]
mod tests {
    use engine::value::Value;

    use super::*;

    fn with(name: &str, text: &str) -> StateSettings {
        let mut settings = StateSettings::file();
        let nowhere = engine::spec::span(engine::diagnostics::FileId(0), 0..0);
        settings.values.insert(name.into(), (Value::String(text.into()), nowhere));
        settings
    }

    type Part = fn(&StateSettings) -> bool;

    const PARTS: &[(&str, Part)] = &[
        #[cfg(feature = "s3")]
        ("region", |settings| region(settings).is_ok()),
        #[cfg(feature = "azure")]
        ("account", |settings| account(settings).is_ok()),
        #[cfg(any(feature = "s3", feature = "gcs"))]
        ("bucket", |settings| bucket(settings).is_ok()),
        #[cfg(feature = "azure")]
        ("container", |settings| container(settings).is_ok()),
    ];

    #[test]
    fn nothing_in_a_name_leads_elsewhere() {
        for (name, is_right) in PARTS {
            for sign in "@/\\:?#%[] \t\n\0&=;,'\"<>ABCé․。".chars() {
                for text in
                    [format!("x{sign}evil.example"), format!("evil{sign}"), format!("{sign}evil")]
                {
                    assert!(!is_right(&with(name, &text)), "{name} {text:?}");
                }
            }
            for text in ["", ".", "..", "a..b", "-ab", "ab-", "evil.", &"a".repeat(300)] {
                assert!(!is_right(&with(name, text)), "{name} {text:?}");
            }
            assert!(is_right(&with(name, "abc123")), "{name}");
        }
    }

    /// The host that a client makes of these parts is the service's.
    #[cfg(feature = "s3")]
    #[test]
    fn the_host_is_the_services() {
        for (bucket_name, region_name) in [("a-b", "eu-west-1"), ("a.b_c", "x"), ("evil.com", "9")]
        {
            let settings = [with("bucket", bucket_name), with("region", region_name)];
            let (bucket, region) = (bucket(&settings[0]), region(&settings[1]));
            let (bucket, region) = (bucket.unwrap(), region.unwrap().unwrap());
            let url = format!("https://{bucket}.s3.{region}.amazonaws.com");
            let url = reqwest::Url::parse(&url).unwrap();
            assert!(url.host_str().unwrap().ends_with(".amazonaws.com"));
            assert_eq!((url.username(), url.password(), url.port()), ("", None, None));
        }
    }
}
