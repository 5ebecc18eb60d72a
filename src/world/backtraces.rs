//! Leaves the code that walks the stack out of the static binary, a twentieth of it.
//!
//! A panic ends the program (Cargo.toml), and the tables that a walk needs are not in the static
//! binary (packaging/with-toolchain): nothing can be walked. The standard library calls the functions of
//! the C runtime all the same (Itanium C++ ABI, "Exception Handling"). Defined here, the runtime's
//! own are not linked, and the compiler sees that a backtrace has no frames.

use std::ffi::{c_int, c_void};
use std::process;

/// The result of a walk that has reached the end of the stack.
const END_OF_STACK: c_int = 5;

/// Calls a function for each frame of the stack: for none.
// SAFETY: the name and the signature of the runtime's function, which is not linked.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_visit: *const c_void, _data: *mut c_void) -> c_int {
    END_OF_STACK
}

/// Functions that run only while a panic unwinds the stack: never.
macro_rules! never_called {
    ($($name:ident)*) => {$(
        // SAFETY: as above. They are not called, so their signature does not matter.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            process::abort()
        }
    )*};
}

never_called! {
    _Unwind_DeleteException _Unwind_FindEnclosingFunction _Unwind_GetCFA _Unwind_GetDataRelBase
    _Unwind_GetIP _Unwind_GetIPInfo _Unwind_GetLanguageSpecificData _Unwind_GetRegionStart
    _Unwind_GetTextRelBase _Unwind_RaiseException _Unwind_Resume _Unwind_SetGR _Unwind_SetIP
}
