//! References to phases of programs, as plans and journals name them.

use serde::{Deserialize, Serialize};

/// The list of programs that a phase belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// The programs that create.
    Create,
    /// The programs that update.
    Update,
    /// The programs that delete.
    Delete,
}

/// One phase of one program of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PhaseRef {
    /// The list.
    pub kind: ProgramKind,
    /// The program, by its index in the list.
    pub program: usize,
    /// The phase, by its index in the program.
    pub phase: usize,
    /// The number of phases of the program.
    pub phases: usize,
    /// The part of the phase that is its wait. `None` in older journals.
    #[serde(default, skip_serializing_if = "Wait::is_none")]
    pub wait: Wait,
}

/// The place of a wait in its phase.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// It has none: it is its call.
    #[default]
    None,
    /// It follows the call.
    After,
    /// It is all that is left: the call did its work in an earlier step.
    Only,
}

impl Wait {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl PhaseRef {
    /// A phase that waits for nothing.
    pub fn new(kind: ProgramKind, program: usize, phase: usize, phases: usize) -> Self {
        Self { kind, program, phase, phases, wait: Wait::None }
    }

    /// The same phase once its call did its work, and its wait is left.
    #[must_use]
    pub fn only_waiting(self) -> Self {
        Self { wait: Wait::Only, ..self }
    }

    /// Returns true if it makes a call that changes something.
    pub fn calls(self) -> bool {
        self.wait != Wait::Only
    }

    /// Returns true if its call makes the object: the first phase of a create.
    pub fn makes(self) -> bool {
        self.kind == ProgramKind::Create && self.phase == 0 && self.calls()
    }

    /// Returns true if this is the program's last phase.
    pub fn is_last(self) -> bool {
        self.phase + 1 == self.phases
    }
}
