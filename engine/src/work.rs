//! Work in independent parts.
//!
//! The engine has no threads. If much work falls into parts, it asks its caller to do them, in parallel or
//! one after the other; the result is the same.

use std::sync::OnceLock;

/// Workers that do the parts of some work.
pub trait Workers: Sync {
    /// Calls `part` with each number below `parts`, in any order, and returns after all of them.
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync));
}

/// Does one part after the other.
#[derive(Clone, Copy, Debug)]
pub struct InTurn;

impl Workers for InTurn {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).for_each(part);
    }
}

/// Computes a result for each part, and returns the results in the order of the parts.
pub(crate) fn map<T: Send + Sync>(
    workers: &dyn Workers,
    parts: usize,
    part: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let made: Vec<OnceLock<T>> = (0..parts).map(|_| OnceLock::new()).collect();
    workers.each(parts, &|number| {
        made[number].get_or_init(|| part(number));
    });
    made.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// Does the last part first.
#[cfg(test)]
pub(crate) struct Backwards;

#[cfg(test)]
impl Workers for Backwards {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).rev().for_each(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_work_does_not_show() {
        let square = |number: usize| number * number;
        assert_eq!(map(&InTurn, 4, square), [0, 1, 4, 9]);
        assert_eq!(map(&Backwards, 4, square), [0, 1, 4, 9]);
        assert!(map(&InTurn, 0, square).is_empty());
    }
}
