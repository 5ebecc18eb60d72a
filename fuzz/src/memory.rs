//! Measures the peak memory of a function.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all calls are passed to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs a function and fails if it held more than `most_bytes` bytes at any time.
pub fn with_limit<T>(most_bytes: usize, run: impl FnOnce() -> T) -> T {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let value = run();
    let held = MOST.load(Relaxed).saturating_sub(before);
    assert!(held <= most_bytes, "{held} bytes of memory, more than {most_bytes}");
    value
}
