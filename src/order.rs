//! Sorting by one copy of the standard library's sort for all types.
//!
//! `slice::sort` is compiled anew for every type and every comparison, 3 to 8 KB
//! each time: a thirtieth of the static binary. Here numbers are sorted in the
//! place of the items, which then move. Where many are sorted often (skills at
//! discovery) the standard library's own is quicker.

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
    let mut places = places(items.len(), &|one, other| compare(&items[one], &items[other]));
    for index in 0..items.len() {
        while places[index] != index {
            let place = places[index];
            items.swap(index, place);
            places.swap(index, place);
        }
    }
}

/// For each of so many items the place where it belongs.
fn places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    let mut places = vec![0; count];
    for (place, index) in order.into_iter().enumerate() {
        places[index] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_the_standard_library_does() {
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
