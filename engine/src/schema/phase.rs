//! References to phases of programs, in the form that plans and journals store.

use serde::{Deserialize, Serialize};

/// The list of programs that a phase belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// The programs that create objects.
    Create,
    /// The programs that update objects.
    Update,
    /// The programs that delete objects.
    Delete,
}

/// One phase of one program of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PhaseRef {
    /// The list of programs.
    pub kind: ProgramKind,
    /// The index of the program in the list.
    pub program: usize,
    /// The index of the phase in the program.
    pub phase: usize,
    /// The number of phases of the program.
    pub phases: usize,
    /// The place of the wait in the phase. `None` in older journals.
    #[serde(default, skip_serializing_if = "Wait::is_none")]
    pub wait: Wait,
}

/// The place of a wait in its phase.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// The phase has no wait: it is only a call.
    #[default]
    None,
    /// The wait follows the call.
    After,
    /// Only the wait is left: the call took effect in an earlier step.
    Only,
}

impl Wait {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl PhaseRef {
    /// Returns a phase without a wait.
    pub fn new(kind: ProgramKind, program: usize, phase: usize, phases: usize) -> Self {
        Self { kind, program, phase, phases, wait: Wait::None }
    }

    /// Returns the same phase for the case that its call took effect and only its wait is left.
    #[must_use]
    pub fn only_waiting(self) -> Self {
        Self { wait: Wait::Only, ..self }
    }

    /// Returns true if the phase makes a call that changes something.
    pub fn calls(self) -> bool {
        self.wait != Wait::Only
    }

    /// Returns true if the call of the phase makes the object: the first phase of a create.
    pub fn makes(self) -> bool {
        self.kind == ProgramKind::Create && self.phase == 0 && self.calls()
    }

    /// Returns true if this is the last phase of the program.
    pub fn is_last(self) -> bool {
        self.phase + 1 == self.phases
    }
}
