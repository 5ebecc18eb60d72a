//! `execve` of the program, prepared before the fork.
//!
//! std would call `execvp`, and glibc's `execvp` runs a file that the kernel refuses with a
//! shell. A program for another processor must be an error instead.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use libc::c_char;

use super::ProcessJob;

/// Arguments of `execve`, in the kernel's format.
pub(super) struct ExecCall {
    program: CString,
    arguments: CStringList,
    environment: CStringList,
}

/// Strings and the pointers to them, terminated by a null pointer.
struct CStringList {
    // Owns the strings that the pointers lead to; never changed.
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to strings that the list owns and never changes.
unsafe impl Send for CStringList {}
// SAFETY: as above; a shared list gives no mutable access.
unsafe impl Sync for CStringList {}

impl CStringList {
    fn new(texts: impl Iterator<Item = io::Result<CString>>) -> io::Result<CStringList> {
        let texts = texts.collect::<io::Result<Vec<CString>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(CStringList { _texts: texts, pointers })
    }
}

impl ExecCall {
    /// Prepares the call for `job`; an error if one of its strings contains NUL.
    pub(super) fn new(job: &ProcessJob<'_>) -> io::Result<ExecCall> {
        let program = job.program.as_os_str();
        let words = [program].into_iter().chain(job.args.iter().map(AsRef::as_ref));
        let variables = job.environment.iter().map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            c_string(&entry)
        });
        Ok(ExecCall {
            program: c_string(program)?,
            arguments: CStringList::new(words.map(c_string))?,
            environment: CStringList::new(variables)?,
        })
    }

    /// Executes the program. Returns only on failure, with the error.
    pub(super) fn run(&self) -> io::Error {
        let (arguments, environment) = (&self.arguments.pointers, &self.environment.pointers);
        // SAFETY: the program is a string terminated by NUL, the lists are terminated by null
        // pointers, and `self` owns all of them. The call is async-signal-safe.
        unsafe { libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL character"))
}
