//! Masks the secrets in the output of checks. A page, a worker or an API may repeat a secret that the check
//! never sent there.

use apply::checks::Live;
use provider_http::Masker;

/// The longest text that is searched, in bytes. The rest of a longer text is left out. If the cut goes
/// through a secret, the remaining part of it is still recognised.
const LOOKED_AT: usize = 16 << 10;

/// Masks the secrets in the texts of checks.
pub(super) struct Hiding<'l> {
    live: &'l Live,
    masker: Masker,
}

impl<'l> Hiding<'l> {
    /// Takes the secrets that the spec gives, and those of which the state has fingerprints.
    pub(super) fn new(live: &'l Live, secrets: &[engine::value::Value]) -> Self {
        Self { live, masker: Masker::default().with_secrets(secrets) }
    }

    /// Returns a text with its secrets masked.
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
