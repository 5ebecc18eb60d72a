//! A working folder whose author may not be the user: its `.env`, and what scripts get of the
//! user's environment.

mod authors;
mod endpoints;
mod environment;
mod hostile;
mod trust;
