//! Readers that decompress: DEFLATE (RFC 1951), and gzip (RFC 1952) around it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use rawzip::Crc32;

use super::damaged;

/// Decompresses DEFLATE data.
pub(super) struct Inflate<R> {
    input: R,
    state: Box<InflateState>,
    has_ended: bool,
}

impl<R: BufRead> Inflate<R> {
    pub(super) fn new(input: R) -> Inflate<R> {
        Inflate { input, state: InflateState::new_boxed(DataFormat::Raw), has_ended: false }
    }
}

impl<R: BufRead> Read for Inflate<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !room.is_empty() {
            let input = self.input.fill_buf()?;
            let is_last = input.is_empty();
            let step = inflate(&mut self.state, input, room, MZFlush::None);
            self.input.consume(step.bytes_consumed);
            match step.status {
                Ok(MZStatus::StreamEnd) => self.has_ended = true,
                Ok(_) | Err(MZError::Buf) if step.bytes_written > 0 || !is_last => {}
                _ => return Err(damaged()),
            }
            if step.bytes_written > 0 {
                return Ok(step.bytes_written);
            }
        }
        Ok(0)
    }
}

/// Flags of a gzip header: fields that follow it.
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Decompresses the members of a gzip file, some of which may be empty, and checks their checksums.
pub(super) struct Gzip<'f> {
    inflate: Inflate<BufReader<&'f File>>,
    checksum: Crc32,
    /// Length of the member, modulo 2³².
    length: u32,
    has_ended: bool,
}

impl<'f> Gzip<'f> {
    pub(super) fn new(file: &'f File) -> io::Result<Gzip<'f>> {
        let inflate = Inflate::new(BufReader::new(file));
        let mut gzip = Gzip { inflate, checksum: Crc32::new(), length: 0, has_ended: false };
        gzip.start_member()?;
        Ok(gzip)
    }

    fn start_member(&mut self) -> io::Result<()> {
        let input = &mut self.inflate.input;
        let [0x1f, 0x8b, 8, flags, ..] = read_bytes::<10>(input)? else { return Err(damaged()) };
        if flags & HAS_EXTRA != 0 {
            let length = u16::from_le_bytes(read_bytes(input)?);
            io::copy(&mut input.take(length.into()), &mut io::sink())?;
        }
        for _ in [HAS_NAME, HAS_COMMENT].into_iter().filter(|flag| flags & flag != 0) {
            input.skip_until(0)?;
        }
        if flags & HAS_CHECKSUM != 0 {
            read_bytes::<2>(input)?;
        }
        self.inflate.state.reset(DataFormat::Raw);
        self.inflate.has_ended = false;
        (self.checksum, self.length) = (Crc32::new(), 0);
        Ok(())
    }

    /// Checks the end of a member, and starts the next one, if there is one. What follows
    /// otherwise is padding.
    fn end_member(&mut self) -> io::Result<()> {
        let input = &mut self.inflate.input;
        let checksum = u32::from_le_bytes(read_bytes(input)?);
        let length = u32::from_le_bytes(read_bytes(input)?);
        if (checksum, length) != (self.checksum.checksum(), self.length) {
            return Err(damaged());
        }
        match input.fill_buf()?.first() {
            Some(0x1f) => self.start_member(),
            _ => {
                self.has_ended = true;
                Ok(())
            }
        }
    }
}

impl Read for Gzip<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !room.is_empty() {
            let length = self.inflate.read(room)?;
            if length > 0 {
                self.checksum.update(&room[..length]);
                // Counted modulo 2³².
                self.length = self.length.wrapping_add(u32::try_from(length).unwrap_or(0));
                return Ok(length);
            }
            self.end_member()?;
        }
        Ok(0)
    }
}

fn read_bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|_| damaged())?;
    Ok(bytes)
}
