//! The parts of a spec that become part of an address to which credentials are sent: the names of regions,
//! accounts, buckets and containers. Each may have only the characters that the service allows in it, so none
//! of them can end a host's name or begin another one.

use engine::config::settings::StateSettings;

use crate::environment::Refusal;

/// The allowed characters of a name. A name has no punctuation at either end, and no two dots in a row.
struct Form {
    length: std::ops::RangeInclusive<usize>,
    /// True if upper-case letters are allowed.
    has_capitals: bool,
    /// The allowed characters besides letters and digits.
    signs: &'static str,
    help: &'static str,
}

/// Returns the region of a bucket; none if the spec gives none. Regions of Amazon have only lower-case
/// letters; those of other S3 services may be like `RegionOne`. If the region becomes part of a host's name,
/// it is one label of it.
#[cfg(feature = "s3")]
pub(super) fn region(settings: &StateSettings) -> Result<Option<&str>, Refusal> {
    const FORM: Form = Form {
        length: 1..=63,
        has_capitals: true,
        signs: "-_",
        help: "a region is like eu-west-1 or RegionOne: letters, digits, `-` and `_`",
    };
    optional(settings, "region", &FORM)
}

/// Returns the account that a container belongs to; none if the spec gives none.
#[cfg(feature = "azure")]
pub(super) fn account(settings: &StateSettings) -> Result<Option<&str>, Refusal> {
    const FORM: Form = Form {
        length: 3..=24,
        has_capitals: false,
        signs: "",
        help: "the name of a storage account has 3 to 24 small letters and digits",
    };
    optional(settings, "account", &FORM)
}

/// Returns the bucket of S3 or GCS.
#[cfg(any(feature = "s3", feature = "gcs"))]
pub(super) fn bucket(settings: &StateSettings) -> Result<&str, Refusal> {
    const FORM: Form = Form {
        length: 3..=222,
        has_capitals: false,
        signs: "-_.",
        help: "the name of a bucket has at least 3 small letters, digits, `-`, `_` and `.`, and begins and \
               ends with a letter or a digit",
    };
    required(settings, "bucket", &FORM)
}

/// Returns the container of Azure.
#[cfg(feature = "azure")]
pub(super) fn container(settings: &StateSettings) -> Result<&str, Refusal> {
    const FORM: Form = Form {
        length: 3..=63,
        has_capitals: false,
        signs: "-",
        help: "the name of a container has 3 to 63 small letters, digits and `-`, and begins and ends \
               with a letter or a digit",
    };
    required(settings, "container", &FORM)
}

fn required<'a>(settings: &'a StateSettings, name: &str, form: &Form) -> Result<&'a str, Refusal> {
    let given = optional(settings, name, form)?;
    given.ok_or_else(|| Refusal::new(format!("`[state]` has no `{name}`")).help(form.help))
}

fn optional<'a>(
    settings: &'a StateSettings,
    name: &str,
    form: &Form,
) -> Result<Option<&'a str>, Refusal> {
    let Some(text) = settings.text(name) else { return Ok(None) };
    let is_plain = |c: char| {
        c.is_ascii_lowercase()
            || c.is_ascii_digit()
            || (form.has_capitals && c.is_ascii_uppercase())
    };
    let is_right = form.length.contains(&text.len())
        && text.chars().all(|c| is_plain(c) || form.signs.contains(c))
        && text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && !text.contains("..");
    if is_right {
        return Ok(Some(text));
    }
    Err(Refusal::new(format!("the `{name}` of `[state]` is not the name of one")).help(form.help))
}

#[cfg(test)]
mod tests {
    use engine::value::Value;

    use super::*;

    fn with(name: &str, text: &str) -> StateSettings {
        let mut settings = StateSettings::file();
        let nowhere = engine::config::span(engine::diagnostics::FileId(0), 0..0);
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
            for sign in "@/\\:?#%[] \t\n\0&=;,'\"<>é․。".chars() {
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
            assert_eq!(is_right(&with(name, "RegionOne")), *name == "region", "{name}");
            assert_eq!(is_right(&with(name, "a.b")), *name == "bucket", "{name}");
        }
    }

    /// A client makes only host names of the service from these parts.
    #[cfg(feature = "s3")]
    #[test]
    fn the_host_is_the_services() {
        for (bucket_name, region_name) in [
            ("a-b", "eu-west-1"),
            ("a.b_c", "x"),
            ("evil.com", "9"),
            ("a-b", "RegionOne"),
            ("abc", "DE_1"),
        ] {
            let settings = [with("bucket", bucket_name), with("region", region_name)];
            let (bucket, region) = (bucket(&settings[0]), region(&settings[1]));
            let (bucket, region) = (bucket.unwrap(), region.unwrap().unwrap());
            let url = format!("https://{bucket}.s3.{region}.amazonaws.com");
            let url = reqwest::Url::parse(&url).unwrap();
            let host = format!("{bucket}.s3.{}.amazonaws.com", region.to_lowercase());
            assert_eq!(url.host_str().unwrap(), host);
            assert_eq!((url.username(), url.password(), url.port()), ("", None, None));
        }
    }
}
