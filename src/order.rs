//! Stable sorting with one compiled copy of the standard library's sort.
//!
//! `slice::sort` is compiled separately for each type and comparison, 3 to 8 KB
//! each, in all 3% of the static binary. These functions sort indices
//! and then move the items. Where many items are sorted often (skills at
//! discovery), use the standard library's functions: they are faster.

use std::cmp::Ordering;

/// Sorts in ascending order; equal items keep their order.
pub(crate) fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, &T::cmp);
}

/// Sorts by a key; items with equal keys keep their order.
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, &|one, other| key(one).cmp(&key(other)));
}

/// Sorts by a comparison; equal items keep their order.
pub(crate) fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let mut positions = positions(items.len(), &|one, other| compare(&items[one], &items[other]));
    for index in 0..items.len() {
        while positions[index] != index {
            let position = positions[index];
            items.swap(index, position);
            positions.swap(index, position);
        }
    }
}

/// Returns the sorted position of each of `count` items.
fn positions(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    let mut positions = vec![0; count];
    for (position, index) in order.into_iter().enumerate() {
        positions[index] = position;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_as_by_the_standard_library() {
        let mut state: u32 = 1;
        for count in 0..200 {
            let mut items: Vec<(u32, usize)> = (0..count)
                .map(|index| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 27, index)
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by_key(&mut items, |item| item.0);
            assert_eq!(items, expected);
            sort(&mut items[..]);
            assert!(items.is_sorted());
        }
    }
}
