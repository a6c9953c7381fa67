//! One crash at every boundary of small plans: each write, call, answer and disk operation.
//!
//! No other fault strikes, so a failure comes from that one crash. The boundaries are counted, and the test
//! fails for a plan with fewer than 12, so that lost boundaries show.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api_variant::Harness;
use crate::faults::Rates;
use crate::imports::Offer;
use crate::schedule::{Disk, Image, RunPlan, Schedule, Spec, StoreKind, Unit};
use crate::{number, play};

/// The number of boundaries that no small plan exceeds.
const BOUNDARIES_MAX: u64 = 1_000;

fn disk(size: u64, zone: &'static str) -> Disk {
    Disk { name: "data".to_owned(), size, zone }
}

fn image(kind: &'static str) -> Image {
    Image { name: "base".to_owned(), kind }
}

fn unit(workers: u64, disk: Option<u8>, image: Option<u8>) -> Unit {
    Unit { name: format!("unit-{workers}"), disk, image, workers }
}

fn spec(disks: &[Disk], images: &[Image], units: &[Unit]) -> Spec {
    fn keyed<T: Clone>(all: &[T]) -> BTreeMap<u8, T> {
        (0..).zip(all.iter().cloned()).collect()
    }
    Spec { disks: keyed(disks), images: keyed(images), units: keyed(units), ..Spec::default() }
}

/// Returns the small plans: for each its name, the spec that is applied before, and the spec of the run that
/// crashes.
fn plans() -> Vec<(&'static str, Spec, Spec)> {
    let none = Spec::default();
    let chain = |size, zone, kind, workers| {
        spec(&[disk(size, zone)], &[image(kind)], &[unit(workers, Some(0), Some(0))])
    };
    let base = || chain(10, "eu", "thin", 1);
    let fan: Vec<Unit> = (1..4).map(|workers| unit(workers, Some(0), None)).collect();
    let fan = spec(&[disk(10, "eu")], &[], &fan);
    vec![
        ("create one", none.clone(), spec(&[disk(10, "eu")], &[], &[])),
        ("create a chain", none.clone(), base()),
        ("create a fan", none.clone(), fan.clone()),
        ("update", base(), chain(10, "eu", "thin", 3)),
        ("grow", base(), chain(20, "eu", "thin", 1)),
        ("replace what is used", base(), chain(10, "us", "thin", 1)),
        ("replace, creating first", base(), chain(10, "eu", "full", 1)),
        ("replace both", base(), chain(10, "us", "full", 1)),
        ("take over", none.clone(), taking_over(base())),
        ("delete a chain", base(), none.clone()),
        ("delete a fan", fan, none),
    ]
}

/// Returns the spec with imports of its disk and its unit. A stranger made both already, and not as the spec
/// wants them.
fn taking_over(spec: Spec) -> Spec {
    let taken = [("disk", "disk-offer0"), ("unit", "unit-offer1")];
    let imports = taken.map(|(ty, id)| ((ty, 0), id.to_owned())).into();
    Spec { imports, ..spec }
}

fn offers(spec: &Spec) -> Vec<Offer> {
    let offer = |((ty, _), id): (&(&'static str, u8), &String)| Offer {
        ty,
        id: id.clone(),
        name: "found".to_owned(),
        text: "eu",
        number: 2,
    };
    spec.imports.iter().map(offer).collect()
}

fn run(spec: &Spec, crash_at: Option<u64>) -> RunPlan {
    RunPlan {
        spec: spec.clone(),
        destroy: false,
        replaces: false,
        narrow: None,
        parallelism: 2,
        seed: crash_at.unwrap_or(0) ^ 0x51,
        rates: Rates::default(),
        crash_at,
        stop_after_ms: None,
        saved_for_ms: None,
        other: None,
        other_crash_at: None,
        meddling: None,
        grows_every: None,
        deletes: 1,
        offers: Vec::new(),
        withdraws: None,
        meddles_after: None,
        by_command: false,
        idle_ms: 0,
    }
}

/// Crashes a plan at every boundary. Returns the number of boundaries.
fn crash_everywhere(
    name: &str,
    before: &Spec,
    after: &Spec,
    harness: Harness,
    store: StoreKind,
) -> usize {
    for boundary in 0..BOUNDARIES_MAX {
        let mut runs = vec![run(before, None), run(after, Some(boundary))];
        runs[0].offers = offers(after);
        let outcome = play(&Schedule { harness, store, runs }, None, true);
        let (violations, lines) = (&outcome.violations, outcome.lines.join("\n"));
        assert!(
            violations.is_empty(),
            "{name}, crash at boundary {boundary}, {harness:?} {store:?}: {violations:#?}\n{lines}"
        );
        if !outcome.counts.contains_key("crashes") {
            return usize::try_from(boundary).unwrap();
        }
    }
    panic!("{name} does not end");
}

#[test]
fn a_crash_at_every_boundary_of_small_plans() {
    // The combination that is real from the wire to the disk always runs. The others run only if
    // `PLUMB_SIM_SCHEDULES` is set, as in the gate.
    let mut places = vec![(Harness::Http, StoreKind::File)];
    if number("PLUMB_SIM_SCHEDULES").is_some() {
        places.push((Harness::Port, StoreKind::Memory));
        places.push((Harness::Port, StoreKind::File));
        places.push((Harness::Http, StoreKind::Memory));
    }
    let work: Vec<_> = plans()
        .into_iter()
        .flat_map(|plan| places.iter().map(move |place| (plan.clone(), *place)))
        .collect();
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..number("PLUMB_SIM_THREADS").unwrap_or(2) {
            scope.spawn(|| {
                while let Some(((name, before, after), (harness, store))) =
                    work.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let count = crash_everywhere(name, before, after, *harness, *store);
                    counts.lock().unwrap().insert(format!("{name}, {harness:?} {store:?}"), count);
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    assert_eq!(counts.len(), work.len());
    for (name, count) in &counts {
        assert!(*count >= 12, "{name} has {count} boundaries only");
    }
    let all: usize = counts.values().sum();
    assert!(number("PLUMB_SIM_COUNTS").is_none(), "{all} boundaries, as asked for: {counts:#?}");
}
