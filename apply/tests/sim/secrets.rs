//! The secret of units, at the provider port, and the check that it stands nowhere where it must not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::address::Name;
use engine::config::resolve::Given;
use engine::value::{Datum, Paths, Value};

use crate::api_variant::Harness;
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec};

/// The text with which every secret begins, and which nothing else contains.
const SESAME: &str = "open-sesame-";

/// The variable that holds the secret.
const VARIABLE: &str = "sesame";

/// Gives a secret to some of the schedules. Now and then a run gets another secret than the run before.
pub(crate) fn draw(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0x5ec).next());
    if !rng.per_mille(200) {
        return;
    }
    let mut number = 0;
    for run in runs {
        number += rng.below(2);
        run.spec.secret = Some(number);
    }
}

impl Spec {
    /// Returns the secret that each unit has; None if the spec has no secret, or at the wire.
    pub(crate) fn secret_in(&self, harness: Harness) -> Option<String> {
        let number = self.secret.filter(|_| harness == Harness::Port)?;
        Some(format!("{SESAME}{number}"))
    }

    pub(crate) fn secret_line(&self, harness: Harness) -> String {
        let line = |_| format!("secret = \"${{var.{VARIABLE}}}\"\n");
        self.secret_in(harness).map(line).unwrap_or_default()
    }

    pub(crate) fn secret_block(&self, harness: Harness, out: &mut String) {
        if self.secret_in(harness).is_some() {
            writeln!(out, "[variable.{VARIABLE}]\ntype = \"string\"\nsensitive = true").unwrap();
        }
    }

    /// Returns the variables as a person gives them.
    pub(crate) fn given(&self, harness: Harness) -> BTreeMap<Name, Given> {
        let given = self.secret_in(harness).map(|secret| (VARIABLE.into(), Given::Text(secret)));
        given.into_iter().collect()
    }

    /// Returns the same variables as a run has them.
    pub(crate) fn variables(&self, harness: Harness) -> BTreeMap<Name, Datum> {
        let given = self.secret_in(harness).map(|secret| {
            let value = Value::string(secret.as_str());
            (VARIABLE.into(), Datum { value, sensitive: Paths::whole() })
        });
        given.into_iter().collect()
    }
}

/// Returns true if a text contains a secret.
pub(crate) fn shows(text: &[u8]) -> bool {
    text.windows(SESAME.len()).any(|part| part == SESAME.as_bytes())
}
