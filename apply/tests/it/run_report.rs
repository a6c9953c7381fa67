//! The events and the report of a run whose store fails, at each of its writes.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::event::Event;

use crate::cloud::Fault;
use crate::world::{DISK, World};

const FAULTS: [Fault; 5] =
    [Fault::Refused, Fault::LostBefore, Fault::LostAfter, Fault::StillWaiting, Fault::Bare];

fn spec() -> String {
    format!("{DISK}[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\nworkers = 1\n")
}

/// Applies with a fault of the first call and a store that fails after a number of writes, and calls `check`.
/// Does so for 0, 1, 2 and more writes, until the run does not die any more.
async fn at_every_write(fault: Fault, check: impl AsyncFn(&World, &str)) {
    for writes in 0..60 {
        let world = World::new();
        world.cloud.strike(0, fault);
        world.store.fail_after(Some(writes));
        let died = world.apply(&spec()).await.is_err();
        world.store.fail_after(None);
        if !died {
            assert!(writes > 4, "{fault:?}: it dies at {writes} writes only");
            return;
        }
        check(&world, &format!("{fault:?} and {writes} writes")).await;
    }
    panic!("{fault:?}: it always dies");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_every_step_is_told_once() {
    for fault in FAULTS {
        at_every_write(fault, async |world, when| {
            let told = world.told.lock().unwrap();
            let ends: Vec<&String> = told.iter().filter_map(end_of).collect();
            let report = world.report.lock().unwrap();
            let remaining: Vec<String> =
                report.remaining.iter().map(|step| step.id.to_string()).collect();
            let Some(Event::RunStarted { steps, .. }) = told.first() else { return };
            for step in (0..*steps).map(|step| format!("s{step}")) {
                let ended = ends.iter().filter(|own| ***own == step).count();
                let remains = remaining.iter().filter(|own| **own == step).count();
                assert_eq!(ended + remains, 1, "{when}: {step}: {told:#?} {report:#?}");
            }
            let skipped = told.iter().filter(|event| matches!(event, Event::StepSkipped { .. }));
            assert_eq!(report.summary.skipped, skipped.count(), "{when}");
        })
        .await;
    }
}

fn end_of(event: &Event) -> Option<&String> {
    match event {
        Event::StepFinished { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepDoubted { step, .. }
        | Event::StepSkipped { step, .. } => Some(step),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_holds_open_is_said_to_be_in_doubt() {
    for fault in FAULTS {
        at_every_write(fault, async |world, when| {
            let state = world.state().await;
            let open = state.pending.values().map(|pending| pending.started.address.clone());
            let open: BTreeSet<Address> = open.collect();
            let said = world.report.lock().unwrap().in_doubt.iter().cloned().collect();
            assert!(open.is_subset(&said), "{when}: {open:?}, not {said:?}");
        })
        .await;
    }
}

/// A call is lost and sent again. The time of its step includes both calls and the wait between them.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_begun_again_took_all_its_time() {
    let world = World::new();
    world.cloud.strike(0, Fault::LostBefore);
    world.apply(DISK).await.unwrap();
    let told = world.told.lock().unwrap();
    let times: Vec<u64> = told
        .iter()
        .filter_map(|event| match event {
            Event::StepFinished { step, ms, .. } if step == "s0" => Some(*ms),
            _ => None,
        })
        .collect();
    assert!(times.len() == 1 && times[0] >= 1_000, "{told:#?}");
}
