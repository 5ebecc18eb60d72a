//! The program's `execve`, prepared before the fork.
//!
//! Not left to std, whose `execvp` hands a file that the kernel refuses to a
//! shell (glibc does so): a program for another processor has to be an error.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use libc::c_char;

use super::ProcessJob;

/// Everything that the call needs, in the kernel's form.
pub(super) struct ExecCall {
    program: CString,
    arguments: CStringList,
    environment: CStringList,
}

/// Strings and the pointers to them, ended by a null pointer.
struct CStringList {
    // What the pointers lead to; never touched again.
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to texts that the list owns and nobody changes.
unsafe impl Send for CStringList {}
// SAFETY: as above; nothing can be changed through a shared list.
unsafe impl Sync for CStringList {}

impl CStringList {
    fn new(texts: impl Iterator<Item = io::Result<CString>>) -> io::Result<CStringList> {
        let texts = texts.collect::<io::Result<Vec<CString>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(CStringList { _texts: texts, pointers })
    }
}

impl ExecCall {
    /// What `job` runs, as long as no text of it holds a NUL.
    pub(super) fn new(job: &ProcessJob<'_>) -> io::Result<ExecCall> {
        let program = job.program.as_os_str();
        let words = [program].into_iter().chain(job.args.iter().map(AsRef::as_ref));
        let variables = job.environment.iter().map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            text(&entry)
        });
        Ok(ExecCall {
            program: text(program)?,
            arguments: CStringList::new(words.map(text))?,
            environment: CStringList::new(variables)?,
        })
    }

    /// Becomes the program. Returns only when it cannot, with the reason.
    pub(super) fn run(&self) -> io::Error {
        let (arguments, environment) = (&self.arguments.pointers, &self.environment.pointers);
        // SAFETY: all three are NUL-terminated and owned by `self`; safe after a fork.
        unsafe { libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL character"))
}
