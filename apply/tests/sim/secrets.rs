//! A secret of units, at the port, and that it is nowhere where it may not be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::address::Name;
use engine::config::resolve::Given;
use engine::value::{Datum, Paths, Value};

use crate::api_variant::Harness;
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec};

/// What every secret begins with, and nothing else has in it.
const SESAME: &str = "open-sesame-";

/// The variable that it is given in.
const VARIABLE: &str = "sesame";

/// Lets some of the schedules have a secret, which is another one now and then.
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
    /// The secret of each unit, where there is one.
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

    /// What is given to the spec, as a person gives it.
    pub(crate) fn given(&self, harness: Harness) -> BTreeMap<Name, Given> {
        let given = self.secret_in(harness).map(|secret| (VARIABLE.into(), Given::Text(secret)));
        given.into_iter().collect()
    }

    /// The same, as a run has it.
    pub(crate) fn variables(&self, harness: Harness) -> BTreeMap<Name, Datum> {
        let given = self.secret_in(harness).map(|secret| {
            let value = Value::string(secret.as_str());
            (VARIABLE.into(), Datum { value, sensitive: Paths::whole() })
        });
        given.into_iter().collect()
    }
}

/// Whether a secret stands in a text.
pub(crate) fn shows(text: &[u8]) -> bool {
    text.windows(SESAME.len()).any(|part| part == SESAME.as_bytes())
}
