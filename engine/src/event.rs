//! Events: the one stream that an apply emits.
//!
//! Progress on a terminal, log lines, JSON lines and the closing summary are all computed from it. Events
//! carry no values, only addresses, ids and words, so they contain no secret. The renderer makes texts from
//! an API harmless.

use serde::Serialize;

use crate::address::Address;
use crate::schema::Operation;

/// Something that happened during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// The run's random name.
        run: String,
        /// The number of its steps.
        steps: usize,
    },
    /// A call of an earlier run is being looked up.
    RecoveryStarted {
        /// The address of the object.
        address: Address,
        /// The operation of the call.
        operation: Operation,
        /// The longest time, in milliseconds, before an absence is believed.
        wait_ms: u64,
    },
    /// The look-up ended.
    RecoveryFinished {
        /// The address of the object.
        address: Address,
        /// The result, in words.
        found: String,
    },
    /// A step begins.
    StepStarted {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The operation of the step.
        operation: Operation,
        /// The words of the type for the running operation; none for the default words.
        #[serde(skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
    },
    /// A step waits for a condition.
    StepWaiting {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The condition that it waits for.
        condition: String,
    },
    /// A step still runs; sent every ten seconds during a long call.
    StepRunning {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The operation of the step.
        operation: Operation,
        /// The words of the type for the running operation; none for the default words.
        #[serde(skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
        /// True if the call of the step is in doubt and is being looked up.
        is_lookup: bool,
        /// The time that the call, or the look-up, has run, in milliseconds.
        ms: u64,
    },
    /// A step will be tried again.
    StepRetried {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The reason.
        reason: String,
        /// The pause before the next attempt, in milliseconds.
        after_ms: u64,
        /// The number of the next attempt.
        attempt: u32,
        /// The most attempts; none if their number has no bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempts: Option<u32>,
    },
    /// A step is done.
    StepFinished {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The operation of the step.
        operation: Operation,
        /// The words of the type for the finished operation; none for the default words.
        #[serde(skip_serializing_if = "Option::is_none")]
        done: Option<String>,
        /// The object's id; none if there is no object now.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The duration of the step, in milliseconds.
        ms: u64,
        /// The attributes that the object has otherwise than they were sent.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        differing: Vec<String>,
    },
    /// A step failed: the API did nothing, or the condition that the step waited for did not come true.
    StepFailed {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The operation of the step.
        operation: Operation,
        /// The reason.
        message: String,
        /// The advice; none if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        help: Option<String>,
    },
    /// It is not known if the step happened.
    StepDoubted {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The operation of the step.
        operation: Operation,
        /// The reason that it is not known.
        reason: String,
    },
    /// A step was not begun.
    StepSkipped {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The reason.
        reason: String,
    },
    /// The user asked for a stop: no new step begins.
    Stopping {
        /// The number of calls that are still running.
        running: usize,
    },
    /// The run ended.
    RunFinished(Summary),
}

/// The result of a run, in counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Resources created.
    pub created: usize,
    /// Resources taken over.
    #[serde(default)]
    pub imported: usize,
    /// Resources that got another address.
    #[serde(default)]
    pub moved: usize,
    /// Resources updated.
    pub updated: usize,
    /// Resources replaced.
    pub replaced: usize,
    /// Resources deleted.
    pub deleted: usize,
    /// Resources taken out of the state only.
    pub forgotten: usize,
    /// Steps that failed.
    pub failed: usize,
    /// Steps that may or may not have happened.
    pub in_doubt: usize,
    /// Steps that were not begun.
    pub skipped: usize,
    /// True if the run was stopped from outside.
    pub cancelled: bool,
}
