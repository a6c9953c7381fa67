use std::collections::BTreeMap;

use super::phases::DELETE_LATE_MS;
use super::*;
use crate::digest::SealKey;
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::{Nonce, ObjectId, Progress};
use crate::stored::Stored;
use crate::value::Paths;

fn snapshot() -> Snapshot {
    Snapshot::new("lineage".to_owned(), SealKey::from_random([0; 32]))
}

fn phase(kind: ProgramKind, phase: usize, phases: usize) -> PhaseRef {
    PhaseRef::new(kind, 0, phase, phases)
}

fn started(call: u64, phase: PhaseRef, object: Option<&str>) -> Record {
    let nonce = object.is_none().then(|| Nonce::from_random([3; 16]));
    Record::Started(Box::new(Started {
        call: CallId(call),
        step: format!("s{call}"),
        address: "value.a".parse().unwrap(),
        provider: "builtin".into(),
        operation: Operation::Create,
        phase,
        object: object.map(|id| ObjectId(id.into())),
        nonce,
        name: None,
        secret_name: None,
        deposes: false,
        managed: Set::new(),
        sensitive: Paths::none(),
        unshown: Set::new(),
        input_fingerprints: BTreeMap::new(),
        dependencies: Set::new(),
        account: None,
        at_ms: 0,
    }))
}

fn done(call: u64, id: Option<&str>) -> Record {
    let object = id.map(|id| Seen { id: ObjectId(id.into()), attributes: Stored::default() });
    Record::Finished { call: CallId(call), outcome: Outcome::Done { object } }
}

fn fold(records: &[Record]) -> Result<Snapshot, IllegalRecord> {
    let mut snapshot = snapshot();
    for record in records {
        snapshot.fold(record)?;
    }
    Ok(snapshot)
}

#[test]
fn a_create_in_two_phases() {
    let create = |n| phase(ProgramKind::Create, n, 2);
    let mut records = vec![started(0, create(0), None), done(0, Some("o1"))];
    let half = fold(&records).unwrap();
    let object = half.entries.values().next().unwrap().current.as_ref().unwrap();
    assert!(matches!(object.progress, Progress::Created { done: 1, .. }));
    records.extend([started(1, create(1), Some("o1")), done(1, Some("o1"))]);
    let whole = fold(&records).unwrap();
    let object = whole.entries.values().next().unwrap().current.as_ref().unwrap();
    assert!(object.progress.is_ready());
    assert!(whole.pending.is_empty());
}

#[test]
fn a_delete_in_two_phases_leaves_nothing() {
    let delete = |n| phase(ProgramKind::Delete, n, 2);
    let records = [
        started(0, phase(ProgramKind::Create, 0, 1), None),
        done(0, Some("o1")),
        started(1, delete(0), Some("o1")),
        done(1, Some("o1")),
        started(2, delete(1), Some("o1")),
        done(2, None),
    ];
    // The state holds the attributes from before the delete as soon as the drain may have been sent.
    for (upto, done) in [(3, 0), (4, 1)] {
        let half = fold(&records[..upto]).unwrap();
        let object = half.entries.values().next().unwrap().current.as_ref().unwrap();
        let before = Some(Box::new(Stored::default()));
        assert_eq!(object.progress, Progress::Deleting { done, before });
    }
    assert!(fold(&records).unwrap().entries.is_empty());
}

#[test]
fn what_was_half_made_is_half_made_while_it_is_deleted() {
    let records = [
        started(0, phase(ProgramKind::Create, 0, 2), None),
        done(0, Some("o1")),
        started(1, phase(ProgramKind::Delete, 0, 2), Some("o1")),
        done(1, Some("o1")),
    ];
    let half = fold(&records).unwrap();
    let object = half.entries.values().next().unwrap().current.as_ref().unwrap();
    assert!(matches!(object.progress, Progress::Created { done: 1, .. }));
}

#[test]
fn an_absent_create_is_watched() {
    let records = [
        started(0, phase(ProgramKind::Create, 0, 2), None),
        Record::Resolved { call: CallId(0), resolution: Resolution::Absent { at_ms: 5 } },
    ];
    let snapshot = fold(&records).unwrap();
    assert_eq!(snapshot.watched.len(), 1);
    assert!(snapshot.entries.is_empty() && snapshot.pending.is_empty());
}

#[test]
fn what_cannot_have_happened_is_refused() {
    let create = phase(ProgramKind::Create, 0, 1);
    for (records, reason) in [
        (vec![done(0, Some("o1"))], "not under way"),
        (vec![started(1, create, None)], "where c0 is due"),
        (vec![started(0, create, None), started(1, create, None)], "two calls at once"),
        (vec![started(0, phase(ProgramKind::Delete, 0, 1), Some("x"))], "is not"),
        (
            vec![started(0, create, None), done(0, Some("o1")), started(1, create, None)],
            "created and exists",
        ),
        (vec![started(0, create, None), done(0, None)], "has no object"),
    ] {
        let error = fold(&records).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_outlived_a_delete_in_doubt_may_still_go() {
    let delete = started(1, phase(ProgramKind::Delete, 0, 1), Some("o1"));
    let seen = Seen { id: ObjectId("o1".into()), attributes: Stored::default() };
    let found = Resolution::Found { object: seen };
    let no_effect = Outcome::NoEffect { reason: String::new() };
    let doubted = Record::Doubted { call: CallId(1), reason: String::new(), accepted: false };
    let resolved = Record::Resolved { call: CallId(1), resolution: found };
    let finished = Record::Finished { call: CallId(1), outcome: no_effect };
    let update = |call, at_ms| {
        let mut record = started(call, phase(ProgramKind::Update, 0, 1), Some("o1"));
        let Record::Started(started) = &mut record else { unreachable!() };
        started.at_ms = at_ms;
        [record, done(call, Some("o1"))]
    };
    let sent = |ends: &[Record]| {
        let create = started(0, phase(ProgramKind::Create, 0, 1), None);
        let mut records = vec![create, done(0, Some("o1")), delete.clone()];
        records.extend_from_slice(ends);
        let snapshot = fold(&records).unwrap();
        let text = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        let object = snapshot.entries.values().next().unwrap().current.as_ref().unwrap();
        assert_eq!(text.contains("delete_sent_ms"), object.delete_sent_ms.is_some());
        object.delete_sent_ms
    };
    assert_eq!(sent(std::slice::from_ref(&resolved)), Some(0));
    assert_eq!(sent(&[doubted, finished.clone()]), Some(0));
    assert_eq!(sent(&[finished]), None, "a refusal is an answer");
    // A change that comes long after the delete was sent proves that the object outlived it.
    assert_eq!(sent(&[&[resolved.clone()][..], &update(2, DELETE_LATE_MS)].concat()), Some(0));
    assert_eq!(sent(&[&[resolved][..], &update(2, DELETE_LATE_MS + 1)].concat()), None);
}

#[test]
fn a_lost_create_never_made_what_another_address_stands_for() {
    let create = phase(ProgramKind::Create, 0, 1);
    let Record::Started(mut other) = started(1, create, None) else { unreachable!() };
    other.address = "value.b".parse().unwrap();
    let before = [
        started(0, create, None),
        done(0, Some("o1")),
        Record::Started(other),
        Record::Doubted { call: CallId(1), reason: "cut".to_owned(), accepted: false },
    ];
    let seen = || Seen { id: ObjectId("o1".into()), attributes: Stored::default() };
    let found = Resolution::Found { object: seen() };
    let resolved = Record::Resolved { call: CallId(1), resolution: found };
    for last in [done(1, Some("o1")), resolved] {
        let records: Vec<Record> = before.iter().cloned().chain([last]).collect();
        let error = fold(&records).unwrap_err().to_string();
        assert!(error.contains("value.b made o1, and value.a stands for that object"), "{error}");
    }
}

/// A plan that was made before another run finished a create waits for that create once more.
#[test]
fn a_wait_that_another_run_has_ended_changes_nothing() {
    let waits = PhaseRef { wait: Wait::After, ..phase(ProgramKind::Create, 0, 2) };
    let seen = Seen { id: ObjectId("o1".into()), attributes: Stored::default() };
    let called = Record::Finished { call: CallId(0), outcome: Outcome::Called { object: seen } };
    let progress = |snapshot: &Snapshot| {
        let entry = snapshot.entries.values().next().unwrap();
        entry.current.as_ref().unwrap().progress.clone()
    };
    let mut records = vec![started(0, waits, None), called];
    let half = fold(&records).unwrap();
    assert!(matches!(progress(&half), Progress::Created { done: 0, called: true, .. }));
    records.extend([started(1, waits.only_waiting(), Some("o1")), done(1, Some("o1"))]);
    let half = fold(&records).unwrap();
    assert!(matches!(progress(&half), Progress::Created { done: 1, called: false, .. }));
    let last = phase(ProgramKind::Create, 1, 2);
    records.extend([started(2, last, Some("o1")), done(2, Some("o1"))]);
    assert!(progress(&fold(&records).unwrap()).is_ready());
    records.extend([started(3, waits.only_waiting(), Some("o1")), done(3, Some("o1"))]);
    assert!(progress(&fold(&records).unwrap()).is_ready());
}

/// An update that begins anew has all of its phases before it, because its first phase may undo what a later
/// phase of the earlier update did.
#[test]
fn an_update_that_begins_anew_has_all_of_its_phases_before_it() {
    let update = |program, phase, wait| PhaseRef {
        wait,
        ..PhaseRef::new(ProgramKind::Update, program, phase, 2)
    };
    let seen = || Seen { id: ObjectId("o1".into()), attributes: Stored::default() };
    let called = |call| {
        let outcome = Outcome::Called { object: seen() };
        Record::Finished { call: CallId(call), outcome }
    };
    let left = |records: &[Record]| {
        let snapshot = fold(records).unwrap();
        let entry = snapshot.entries.values().next().unwrap();
        entry.current.as_ref().unwrap().progress.clone()
    };
    let records = [
        started(0, phase(ProgramKind::Create, 0, 1), None),
        done(0, Some("o1")),
        started(1, update(0, 0, Wait::None), Some("o1")),
        done(1, Some("o1")),
        started(2, update(0, 1, Wait::After), Some("o1")),
        called(2),
    ];
    let waits = Progress::Updating { program: 0, done: 1, called: true };
    assert_eq!(left(&records), waits);
    // A step that only goes on waiting does not begin the update anew.
    let on = started(3, update(0, 1, Wait::Only), Some("o1"));
    assert_eq!(left(&[&records[..], &[on]].concat()), waits);
    for program in [0, 1] {
        let anew = started(3, update(program, 0, Wait::None), Some("o1"));
        let begun = Progress::Updating { program, done: 0, called: false };
        assert_eq!(left(&[&records[..], &[anew]].concat()), begun);
    }
    // If a later phase begins and fails, an earlier phase has to be done again.
    let left_out = started(3, update(0, 1, Wait::None), Some("o1"));
    let records = [&records[..4], &[started(2, update(0, 0, Wait::None), Some("o1"))]].concat();
    let found = Resolution::Found { object: seen() };
    let resolved = Record::Resolved { call: CallId(2), resolution: found };
    let begun = Progress::Updating { program: 0, done: 1, called: false };
    assert_eq!(left(&[&records[..], &[resolved, left_out]].concat()), begun);
}
