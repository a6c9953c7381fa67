//! Fingerprints of the inputs of the secrets that a call sends. Plans of later runs compare them, as they do
//! not have the secrets.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::digest::Fingerprint;
use engine::journal::{PhaseRef, ProgramKind};
use engine::plan::{Change, SecretInputs};
use engine::schema::TypeSchema;
use engine::stored::seal;
use engine::value::{Attributes, Segment};

use super::StepContext;
use super::prepare;
use crate::fill::FillScope;
use crate::refresh::sensitive;

impl StepContext<'_> {
    /// Returns the fingerprints of the inputs of the secret attributes that a call sends.
    pub(super) fn made_of(
        &self,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
        desired: &Attributes,
    ) -> BTreeMap<Name, Fingerprint> {
        if change.secrets.is_empty() || phase.kind == ProgramKind::Delete || !phase.calls() {
            return BTreeMap::new();
        }
        // A later run sees the inputs with fingerprints for secrets.
        let nothing = BTreeMap::new();
        let scope = FillScope { clear: &nothing, ..self.scope() };
        let key = &self.snapshot.seal_key;
        let places = sensitive(schema, &change.sensitive);
        let changed = prepare::changed(change);
        let sent = change.secrets.iter().filter(|(name, _)| schema.sends(phase, name, &changed));
        let fingerprints = sent.filter_map(|(name, expr)| {
            let inputs = SecretInputs::new(expr, &scope)?;
            let inside = places.inside(&Segment::Key(name.clone()));
            let sealed = seal(desired.get(name)?, &inside, key);
            Some((name.clone(), inputs.fingerprint(&sealed, key)))
        });
        fingerprints.collect()
    }
}
