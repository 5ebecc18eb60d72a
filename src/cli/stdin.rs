//! Standard input, read to its end as an argument of a command.

use std::time::Duration;

use crate::cli::values::usage;
use crate::ui::input::{StdinReader, WholeInput};
use base::error::Result;
use host::cancellation::Cancellation;

/// Reads standard input to its end; `None`: its first byte did not arrive in time.
pub(super) fn read_bytes(
    input: &mut StdinReader,
    most: usize,
    first_byte_timeout: Option<Duration>,
    cancellation: &Cancellation,
) -> Result<Option<Vec<u8>>> {
    match input.read_to_end(most, first_byte_timeout, cancellation)? {
        WholeInput::Bytes(bytes) => Ok(Some(bytes)),
        WholeInput::Silent => Ok(None),
        WholeInput::TooLarge => {
            let most = match most >> 20 {
                0 => format!("{most} bytes"),
                most => format!("{most} MiB"),
            };
            Err(usage(format!("standard input is larger than {most}")))
        }
    }
}

/// Reads standard input to its end, as text.
pub(super) fn read_text(most: usize, cancellation: &Cancellation) -> Result<String> {
    let bytes = read_bytes(&mut StdinReader::open()?, most, None, cancellation)?;
    String::from_utf8(bytes.unwrap_or_default())
        .map_err(|_| usage("standard input is not UTF-8 text"))
}
