//! Events: the one stream that an apply emits.
//!
//! Progress on a terminal, log lines, JSON lines and the closing summary are folds over it. Events
//! carry no values, only addresses, ids and words, so there is nothing secret in them; texts that
//! come from an API are made harmless by the renderer.

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
        /// For how long at most, in milliseconds, before an absence is believed.
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
        /// Its operation.
        operation: Operation,
        /// The words of the type for what it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
    },
    /// A step waits for something to come true.
    StepWaiting {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// The condition that it waits for.
        condition: String,
    },
    /// A step still runs, told every ten seconds of a long call.
    StepRunning {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// Its operation.
        operation: Operation,
        /// The words of the type for what it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
        /// True if its call is in doubt and being looked up.
        is_lookup: bool,
        /// For how long the call, or the look-up, has run, in milliseconds.
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
        /// After how many milliseconds.
        after_ms: u64,
        /// The number of the attempt that follows.
        attempt: u32,
        /// The most attempts, where their number bounds them.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempts: Option<u32>,
    },
    /// A step is done.
    StepFinished {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// Its operation.
        operation: Operation,
        /// The words of the type for what it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        done: Option<String>,
        /// The object's id, if there is one now.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Its time, in milliseconds.
        ms: u64,
    },
    /// A step failed: nothing happened at the API, or what it waited for there did not come true.
    StepFailed {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// Its operation.
        operation: Operation,
        /// The reason.
        message: String,
        /// The advice, if there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        help: Option<String>,
    },
    /// It is not known whether the step happened.
    StepDoubted {
        /// The step.
        step: String,
        /// The address of the object.
        address: Address,
        /// Its operation.
        operation: Operation,
        /// The reason why it is not known.
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
    /// A stop was asked for: no new step begins.
    Stopping {
        /// The number of calls that are still running.
        running: usize,
    },
    /// The run ended.
    RunFinished(Summary),
}

/// The end of a run, in counts.
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
    /// Steps of which nobody knows whether they happened.
    pub in_doubt: usize,
    /// Steps that were not begun.
    pub skipped: usize,
    /// True if the run was stopped from outside.
    pub cancelled: bool,
}
