//! Masks the secrets in the output of checks: a page, a worker or an API may repeat a secret that a check has never
//! sent there.

use apply::checks::Live;
use provider_http::Masker;

/// The longest text that is looked through; what is behind it is left out. A secret that the cut goes through is
/// known again by its parts.
const LOOKED_AT: usize = 16 << 10;

/// Hides what is secret in the texts of checks.
pub(super) struct Hiding<'l> {
    live: &'l Live,
    masker: Masker,
}

impl<'l> Hiding<'l> {
    /// With what the spec gives, and what the state knows by fingerprints.
    pub(super) fn new(live: &'l Live, secrets: &[engine::value::Value]) -> Self {
        Self { live, masker: Masker::default().with_secrets(secrets) }
    }

    /// A text without secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        let seen = text.floor_char_boundary(LOOKED_AT);
        let (text, rest) = text.split_at(seen);
        let masker = self.masker.clone().with_secrets(&self.live.known_words(text));
        let mut shown = masker.mask(text);
        if !rest.is_empty() {
            shown.push('…');
        }
        shown
    }
}
