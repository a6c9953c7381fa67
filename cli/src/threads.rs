//! Threads for the engine, which starts none itself: work on several processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use engine::work::{InTurn, Workers};

/// The maximum number of threads that work on one task.
const MAX: usize = 4;

/// Runs parts of work on several threads at once.
pub(crate) struct Threads;

impl Workers for Threads {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(MAX).min(parts);
        if threads < 2 {
            return InTurn.each(parts, part);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            numbers.take_while(|number| *number < parts).for_each(part);
        };
        thread::scope(|scope| {
            // If the system gives no more threads, the existing ones do all the work.
            for _ in 1..threads {
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_done_once() {
        for parts in [0, 1, 2, 1000] {
            let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            Threads.each(parts, &|part| {
                done[part].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{parts}");
        }
    }
}
