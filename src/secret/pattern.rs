//! The ways in which programs write a secret: as it is, with escapes, in base64.
//!
//! A [`Pattern`] is what is written, unit by unit; each unit may be plain, or an escape
//! of a string (`\u0073`, `\x73`, `\163`, `\"`) or an address (`%73`), so that any mix of
//! them is known. In base64 a secret looks different at each of three places in a group
//! of three bytes: of each only the characters are sought that it alone decides.

use crate::limits;

const SIXES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One character of what is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// This one.
    Char(char),
    /// The character of base64 whose value begins with these bits, so many of them.
    Six(u8, u32),
    /// What fills up the last group of base64.
    Filling,
}

/// A secret as it is written in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    units: Vec<Unit>,
    /// Units that belong to it where they follow.
    more: Vec<Unit>,
}

/// What stands in a text from one place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternMatch {
    /// Something else.
    Nothing,
    /// The beginning of the secret, up to the text's end.
    Beginning {
        /// Bytes of the secret that can be told from it.
        bytes: usize,
    },
    /// All of it.
    Whole {
        /// Behind it.
        end: usize,
        /// The next piece of the text may belong to it.
        is_open: bool,
    },
}

/// Where one unit may end.
#[derive(Default)]
struct UnitEnds {
    /// Few: only of backslashes there are several.
    at: Vec<usize>,
    /// The text ends within it.
    is_cut: bool,
}

impl UnitEnds {
    fn add(&mut self, end: usize) {
        if !self.at.contains(&end) {
            self.at.push(end);
        }
    }

    /// Adds where it ends, if it does.
    fn step(&mut self, step: UnitMatch) {
        match step {
            UnitMatch::To(end) => self.add(end),
            UnitMatch::Cut => self.is_cut = true,
            UnitMatch::No => {}
        }
    }
}

/// What one way to write a unit comes to.
#[derive(Clone, Copy)]
enum UnitMatch {
    To(usize),
    Cut,
    No,
}

impl UnitMatch {
    fn then(self, next: impl FnOnce(usize) -> UnitMatch) -> UnitMatch {
        match self {
            UnitMatch::To(end) => next(end),
            other => other,
        }
    }
}

/// All the ways to write it.
pub(super) fn patterns(value: &str) -> Vec<Pattern> {
    let plain = Pattern { units: value.chars().map(Unit::Char).collect(), more: Vec::new() };
    let places = (0..3).map(|place| Pattern::base64(value.as_bytes(), place));
    std::iter::once(plain).chain(places).collect()
}

impl Pattern {
    /// The characters of base64 that these bytes decide, `place` bytes into a group.
    fn base64(bytes: &[u8], place: usize) -> Pattern {
        let bits = 8 * bytes.len();
        let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
        let begin = (6 - 8 * place % 6) % 6;
        let six = |at: usize| {
            let known = (bits - at).min(6);
            let value = (at..at + known).fold(0, |six, at| six << 1 | bit(at));
            Unit::Six(value << (6 - known), u32::try_from(known).unwrap_or(6))
        };
        let mut units: Vec<Unit> = (begin..bits).step_by(6).map(six).collect();
        let mut more =
            units.split_off(units.len() - usize::from(!(bits - begin).is_multiple_of(6)));
        more.extend([Unit::Filling, Unit::Filling]);
        Pattern { units, more }
    }

    /// Whether it can begin with this byte.
    pub(super) fn can_begin(&self, byte: u8) -> bool {
        b"\\%".contains(&byte) || self.units.first().is_some_and(|unit| unit.begins(byte))
    }

    /// Whether it can begin with these two bytes.
    pub(super) fn may_begin(&self, byte: u8, next: u8) -> bool {
        let [unit, rest @ ..] = self.units.as_slice() else {
            return false;
        };
        let begins = unit.begins(byte);
        match byte {
            b'\\' | b'%' if begins => true,
            b'%' => next.is_ascii_hexdigit(),
            b'\\' => b"\\uUx01234567".contains(&next) || unit.has_letter(next),
            _ if !begins || !byte.is_ascii() => begins,
            _ => b"\\%\r\n".contains(&next) || rest.first().is_none_or(|unit| unit.begins(next)),
        }
    }

    /// What stands there.
    pub(super) fn find(&self, text: &[u8], start: usize) -> PatternMatch {
        match text.get(start + 1) {
            Some(next) if !self.may_begin(text[start], *next) => PatternMatch::Nothing,
            _ => self.follow(text, start, 0),
        }
    }

    /// Where the text's first bytes are the rest of it, and enough to tell something:
    /// the end of the longest. A cut may have left the end of an escape in front.
    pub(super) fn rest_at_start(&self, text: &[u8]) -> Option<usize> {
        let is_of_escape =
            |byte: &u8| byte.is_ascii_hexdigit() || b"\\%uUx{}\r\n \t".contains(byte);
        let front = text.iter().take(limits::SECRET_ESCAPE_BYTES);
        let front = front.take_while(|byte| is_of_escape(byte)).count();
        let rests = 1..self.units.len();
        let told = rests
            .take_while(|unit| self.bytes(*unit..self.units.len()) >= limits::SECRET_PART_BYTES);
        let ends = told.flat_map(|unit| {
            (0..=front).filter_map(move |start| match self.follow(text, start, unit) {
                PatternMatch::Whole { end, .. } => Some(end),
                _ => None,
            })
        });
        ends.max()
    }

    /// Bytes of the secret that these units tell.
    fn bytes(&self, units: std::ops::Range<usize>) -> usize {
        let bits = |unit: &Unit| match unit {
            Unit::Char(c) => 8 * c.len_utf8(),
            Unit::Six(..) => 6,
            Unit::Filling => 0,
        };
        self.units[units].iter().map(bits).sum::<usize>() / 8
    }

    /// Follows it through the text from this unit on.
    fn follow(&self, text: &[u8], start: usize, first: usize) -> PatternMatch {
        let mut places = vec![start];
        let mut bytes_known = None;
        for (index, unit) in self.units.iter().enumerate().skip(first) {
            let mut ends = UnitEnds::default();
            for place in &places {
                unit.ends(text, *place, index > first, &mut ends);
            }
            if ends.is_cut {
                bytes_known = Some(self.bytes(first..index));
            }
            if ends.at.is_empty() {
                return match bytes_known {
                    Some(bytes) => PatternMatch::Beginning { bytes },
                    None => PatternMatch::Nothing,
                };
            }
            places = ends.at;
        }
        let mut end = places.into_iter().max().unwrap_or(start);
        let mut is_open = false;
        for unit in &self.more {
            let mut ends = UnitEnds::default();
            unit.ends(text, end, true, &mut ends);
            is_open |= ends.is_cut;
            match ends.at.into_iter().max() {
                Some(next) => end = next,
                // What fills up follows only the last character.
                None if *unit != Unit::Filling => {}
                None => break,
            }
        }
        PatternMatch::Whole { end, is_open }
    }
}

impl Unit {
    /// Whether its plain form begins with this byte.
    fn begins(self, byte: u8) -> bool {
        match self {
            Unit::Char(c) => c.encode_utf8(&mut [0; 4]).as_bytes()[0] == byte,
            Unit::Six(value, known) => {
                six(byte).is_some_and(|six| (six ^ value) >> (6 - known) == 0)
            }
            Unit::Filling => byte == b'=',
        }
    }

    /// Whether this may stand for it behind a backslash, and no digits follow.
    fn has_letter(self, letter: u8) -> bool {
        match self {
            Unit::Char(c) => c.is_control() || u32::from(c) == u32::from(letter),
            Unit::Six(..) | Unit::Filling => b"+/=-_".contains(&letter),
        }
    }

    /// Adds where it ends if it begins at `start`, in whatever way it is written.
    fn ends(self, text: &[u8], start: usize, is_within: bool, ends: &mut UnitEnds) {
        match self {
            Unit::Char(c) => char_ends(text, start, c, ends),
            Unit::Six(value, known) => {
                let lines = if is_within { behind_line_end(text, start) } else { UnitMatch::No };
                ends.is_cut |= matches!(lines, UnitMatch::Cut);
                for start in [UnitMatch::To(start), lines] {
                    let UnitMatch::To(start) = start else { continue };
                    match text.get(start) {
                        None => ends.is_cut = true,
                        Some(byte) if self.begins(*byte) => ends.add(start + 1),
                        Some(b'\\' | b'%') => {
                            let all = (0..64).filter(|six| (six ^ value) >> (6 - known) == 0);
                            for c in all.flat_map(letters) {
                                char_ends(text, start, c, ends);
                            }
                        }
                        Some(_) => {}
                    }
                }
            }
            Unit::Filling => char_ends(text, start, '=', ends),
        }
    }
}

/// The value of a character of base64, in either alphabet.
fn six(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// The characters that have this value.
fn letters(value: u8) -> impl Iterator<Item = char> {
    let other = match value {
        62 => Some('-'),
        63 => Some('_'),
        _ => None,
    };
    [char::from(SIXES[usize::from(value)])].into_iter().chain(other)
}

/// Behind a line's end within base64, and what the next line is indented by.
fn behind_line_end(text: &[u8], start: usize) -> UnitMatch {
    let mut at = start;
    while let Some(byte) = text.get(at) {
        let run = backslashes(text, at);
        match byte {
            b'\r' | b'\n' => at += 1,
            b' ' | b'\t' if at > start => at += 1,
            b'\\' => match text.get(at + run) {
                Some(b'n' | b'r') => at += run + 1,
                None => return UnitMatch::Cut,
                Some(_) => break,
            },
            _ => break,
        }
        if at - start > limits::SECRET_ESCAPE_BYTES {
            return UnitMatch::No;
        }
    }
    match at {
        _ if at == start => UnitMatch::No,
        _ if at == text.len() => UnitMatch::Cut,
        _ => UnitMatch::To(at),
    }
}

/// Backslashes from there on: strings within strings have more of them.
fn backslashes(text: &[u8], start: usize) -> usize {
    let most = text[start..].iter().take(limits::SECRET_BACKSLASHES);
    most.take_while(|byte| **byte == b'\\').count()
}

fn char_ends(text: &[u8], start: usize, c: char, ends: &mut UnitEnds) {
    let mut plain = [0; 4];
    let plain = c.encode_utf8(&mut plain).as_bytes();
    let coded = |escape: &dyn Fn(usize, u8) -> UnitMatch| {
        let bytes = plain.iter();
        bytes.fold(UnitMatch::To(start), |step, byte| step.then(|at| escape(at, *byte)))
    };
    match text.get(start) {
        None => ends.is_cut = true,
        Some(b'%') => {
            let percent = |at, byte: u8| {
                literal(text, at, b"%").then(|at| digits(text, at, 2, 16, byte.into()))
            };
            ends.step(coded(&percent));
        }
        Some(b'\\') => {
            let run = backslashes(text, start);
            let is_cut = start + run == text.len();
            ends.is_cut |= is_cut;
            if c == '\\' {
                let doubled = [1, 2, 4, 8].into_iter().take_while(|count| *count <= run);
                doubled.for_each(|count| ends.add(start + count));
            }
            if !is_cut {
                ends.step(one_escape(text, start, c));
                let escape = |digit: &'static [u8], count, radix| {
                    move |at, byte: u8| {
                        escaped(text, at, digit)
                            .then(|at| digits(text, at, count, radix, byte.into()))
                    }
                };
                ends.step(coded(&escape(b"x", 2, 16)));
                ends.step(coded(&escape(b"", 3, 8)));
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                ends.step(units.fold(UnitMatch::To(start), |step, unit| {
                    step.then(|at| escaped(text, at, b"u"))
                        .then(|at| digits(text, at, 4, 16, (*unit).into()))
                }));
            }
        }
        Some(_) => {}
    }
    // `%` and `\` themselves may be meant.
    ends.step(literal(text, start, plain));
}

/// A character as one escape that needs no digits, or as many as it likes.
fn one_escape(text: &[u8], start: usize, c: char) -> UnitMatch {
    let letter = match c {
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        c => c,
    };
    let code = u32::from(c);
    let behind = start + backslashes(text, start);
    match text.get(behind) {
        Some(b'U') => digits(text, behind + 1, 8, 16, code),
        Some(b'u') if text.get(behind + 1) == Some(&b'{') => {
            let hex = text[behind + 2..].iter().take_while(|byte| byte.is_ascii_hexdigit());
            let count = hex.take(8).count();
            digits(text, behind + 2, count, 16, code).then(|at| literal(text, at, b"}"))
        }
        // Letters and digits stand for something else behind a backslash.
        Some(byte)
            if u32::from(*byte) == u32::from(letter)
                && (c != letter || c.is_ascii_punctuation()) =>
        {
            UnitMatch::To(behind + 1)
        }
        _ => UnitMatch::No,
    }
}

/// Behind the backslashes and this letter.
fn escaped(text: &[u8], start: usize, letter: &[u8]) -> UnitMatch {
    match backslashes(text, start) {
        _ if start == text.len() => UnitMatch::Cut,
        0 => UnitMatch::No,
        run => literal(text, start + run, letter),
    }
}

fn literal(text: &[u8], start: usize, bytes: &[u8]) -> UnitMatch {
    let there = &text[start..];
    if there.starts_with(bytes) {
        UnitMatch::To(start + bytes.len())
    } else if there.len() < bytes.len() && bytes.starts_with(there) {
        UnitMatch::Cut
    } else {
        UnitMatch::No
    }
}

/// So many digits that have this value.
fn digits(text: &[u8], start: usize, count: usize, radix: u32, value: u32) -> UnitMatch {
    let there = &text[start..text.len().min(start + count)];
    let mut number = 0_u32;
    for (place, byte) in there.iter().enumerate() {
        let Some(digit) = char::from(*byte).to_digit(radix) else {
            return UnitMatch::No;
        };
        number = number.wrapping_mul(radix).wrapping_add(digit);
        // Whatever follows, it is another.
        let left = u32::try_from(count - place - 1).unwrap_or_default();
        if radix.checked_pow(left).is_some_and(|rest| value / rest != number) {
            return UnitMatch::No;
        }
    }
    match there.len() {
        _ if count == 0 => UnitMatch::No,
        length if length < count => UnitMatch::Cut,
        _ => UnitMatch::To(start + count),
    }
}
