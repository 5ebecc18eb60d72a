//! Finds a secret in the forms in which programs write it: plain, with escapes, and
//! in base64.
//!
//! A [`Pattern`] is a sequence of units. Each unit may be written plainly, as an escape
//! in a string (`\u0073`, `\x73`, `\163`, `\"`) or in a URL (`%73`), in any mix. In base64
//! a secret has three forms, one for each offset in a group of three bytes; a pattern
//! contains only the characters that the secret alone determines.

use crate::limits;

const BASE64_ALPHABET: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One character of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    /// The characters that match: one, or in base64 those with the known bits.
    chars: Vec<char>,
    /// Bits of the secret that the character reveals.
    bits: usize,
    /// Whether a line end may precede the character.
    is_wrapped: bool,
}

/// One form of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    units: Vec<Unit>,
    /// Units that belong to the secret if they follow.
    optional: Vec<Unit>,
}

/// Result of matching a pattern at one position of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternMatch {
    /// No match.
    Nothing,
    /// The text ends within the secret.
    Beginning {
        /// Bytes of the secret that the text reveals.
        bytes: usize,
    },
    /// The complete secret.
    Whole {
        /// Position after the secret.
        end: usize,
        /// Whether the next piece of the text may extend the match.
        is_open: bool,
    },
}

/// Possible end positions of one unit.
#[derive(Default)]
struct UnitEnds {
    /// More than one only for backslashes.
    at: Vec<usize>,
    /// Whether the text ends within the unit.
    is_cut: bool,
}

impl UnitEnds {
    fn add(&mut self, end: usize) {
        if !self.at.contains(&end) {
            self.at.push(end);
        }
    }

    /// Adds the result of matching one form of the unit.
    fn add_match(&mut self, result: UnitMatch) {
        match result {
            UnitMatch::To(end) => self.add(end),
            UnitMatch::Cut => self.is_cut = true,
            UnitMatch::No => {}
        }
    }
}

/// Result of matching one form of a unit.
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

/// Returns the patterns of all forms of a secret.
pub(super) fn patterns(value: &str) -> Vec<Pattern> {
    let unit = |c: char| Unit { chars: vec![c], bits: 8 * c.len_utf8(), is_wrapped: false };
    let plain = Pattern { units: value.chars().map(unit).collect(), optional: Vec::new() };
    let base64 = (0..3).map(|offset| Pattern::base64(value.as_bytes(), offset));
    std::iter::once(plain).chain(base64).collect()
}

impl Pattern {
    /// Base64 characters that these bytes determine, at this offset in a group.
    fn base64(bytes: &[u8], offset: usize) -> Pattern {
        let bits = 8 * bytes.len();
        let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
        let first = (6 - 8 * offset % 6) % 6;
        let six = |at: usize| {
            let known = (bits - at).min(6);
            let value = (at..at + known).fold(0, |six, at| six << 1 | bit(at));
            Unit { chars: base64_chars(value, 6 - known), bits: 6, is_wrapped: true }
        };
        let mut units: Vec<Unit> = (first..bits).step_by(6).map(six).collect();
        let mut optional =
            units.split_off(units.len() - usize::from(!(bits - first).is_multiple_of(6)));
        let padding = Unit { chars: vec!['='], bits: 0, is_wrapped: false };
        optional.extend([padding.clone(), padding]);
        Pattern { units, optional }
    }

    /// Whether a match can start with this byte.
    pub(super) fn can_start_with(&self, byte: u8) -> bool {
        b"\\%".contains(&byte) || self.units.first().is_some_and(|unit| unit.can_start_with(byte))
    }

    /// Whether a match can start with these two bytes.
    pub(super) fn can_start_with_pair(&self, byte: u8, next: u8) -> bool {
        let [unit, rest @ ..] = self.units.as_slice() else {
            return false;
        };
        let is_plain = unit.can_start_with(byte);
        match byte {
            b'\\' | b'%' if is_plain => true,
            b'%' => next.is_ascii_hexdigit(),
            b'\\' => b"\\uUx01234567".contains(&next) || unit.has_escape_letter(next),
            _ if !is_plain || !byte.is_ascii() => is_plain,
            _ => {
                b"\\%\r\n".contains(&next)
                    || rest.first().is_none_or(|unit| unit.can_start_with(next))
            }
        }
    }

    /// Matches the pattern at a position.
    pub(super) fn match_at(&self, text: &[u8], start: usize) -> PatternMatch {
        match text.get(start + 1) {
            Some(next) if !self.can_start_with_pair(text[start], *next) => PatternMatch::Nothing,
            _ => self.follow(text, start, 0),
        }
    }

    /// Finds the longest end of the secret at the start of the text, if it is long enough
    /// to reveal something, and returns its end. The rest of a cut escape may precede it.
    pub(super) fn suffix_at_start(&self, text: &[u8]) -> Option<usize> {
        let is_escape = |byte: &u8| byte.is_ascii_hexdigit() || b"\\%uUx{}\r\n \t".contains(byte);
        let front = text.iter().take(limits::SECRET_ESCAPE_BYTES);
        let front = front.take_while(|byte| is_escape(byte)).count();
        let suffixes = 1..self.units.len();
        let revealing = suffixes
            .take_while(|unit| self.bytes(*unit..self.units.len()) >= limits::SECRET_PART_BYTES);
        let ends = revealing.flat_map(|unit| {
            (0..=front).filter_map(move |start| match self.follow(text, start, unit) {
                PatternMatch::Whole { end, .. } => Some(end),
                _ => None,
            })
        });
        ends.max()
    }

    /// Bytes of the secret that these units reveal.
    fn bytes(&self, units: std::ops::Range<usize>) -> usize {
        self.units[units].iter().map(|unit| unit.bits).sum::<usize>() / 8
    }

    /// Matches the units from `first` on at a position.
    fn follow(&self, text: &[u8], start: usize, first: usize) -> PatternMatch {
        let mut places = vec![start];
        let mut bytes_known = None;
        for (index, unit) in self.units.iter().enumerate().skip(first) {
            let mut ends = UnitEnds::default();
            for place in &places {
                unit.collect_ends(text, *place, index > first, &mut ends);
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
        for unit in &self.optional {
            let mut ends = UnitEnds::default();
            unit.collect_ends(text, end, true, &mut ends);
            is_open |= ends.is_cut;
            match ends.at.into_iter().max() {
                Some(next) => end = next,
                None => break,
            }
        }
        PatternMatch::Whole { end, is_open }
    }
}

impl Unit {
    /// Whether the plain form starts with this byte.
    fn can_start_with(&self, byte: u8) -> bool {
        self.chars.iter().any(|c| c.encode_utf8(&mut [0; 4]).as_bytes()[0] == byte)
    }

    /// Whether a backslash and this letter can form an escape of the unit.
    fn has_escape_letter(&self, letter: u8) -> bool {
        self.chars.iter().any(|c| c.is_control() || u32::from(*c) == u32::from(letter))
    }

    /// Adds the end positions of all forms of the unit that start at `start`.
    fn collect_ends(&self, text: &[u8], start: usize, is_within: bool, ends: &mut UnitEnds) {
        let mut starts = vec![start];
        if self.is_wrapped && is_within {
            match skip_line_end(text, start) {
                UnitMatch::To(after) => starts.push(after),
                UnitMatch::Cut => ends.is_cut = true,
                UnitMatch::No => {}
            }
        }
        for start in starts {
            for c in &self.chars {
                char_ends(text, start, *c, ends);
            }
        }
    }
}

/// The base64 characters, in both alphabets, for six bits of which the last `unknown` may be any.
fn base64_chars(leading: u8, unknown: usize) -> Vec<char> {
    let others = [(62, '-'), (63, '_')];
    let all = (0..).zip(BASE64_ALPHABET.iter().map(|byte| char::from(*byte))).chain(others);
    all.filter(|(value, _)| value >> unknown == leading).map(|(_, c)| c).collect()
}

/// Skips a line end within base64 and the indentation of the next line.
fn skip_line_end(text: &[u8], start: usize) -> UnitMatch {
    let mut at = start;
    while let Some(byte) = text.get(at) {
        let run = count_backslashes(text, at);
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

/// Counts the backslashes at a position: strings within strings have several.
fn count_backslashes(text: &[u8], start: usize) -> usize {
    let most = text[start..].iter().take(limits::SECRET_BACKSLASHES);
    most.take_while(|byte| **byte == b'\\').count()
}

/// Adds the end positions of all forms of a character that start at `start`.
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
            ends.add_match(coded(&percent));
        }
        Some(b'\\') => {
            let run = count_backslashes(text, start);
            let is_cut = start + run == text.len();
            ends.is_cut |= is_cut;
            if c == '\\' {
                let doubled = [1, 2, 4, 8].into_iter().take_while(|count| *count <= run);
                doubled.for_each(|count| ends.add(start + count));
            }
            if !is_cut {
                ends.add_match(single_escape(text, start, c));
                let escape = |digit: &'static [u8], count, radix| {
                    move |at, byte: u8| {
                        backslashes_and_letter(text, at, digit)
                            .then(|at| digits(text, at, count, radix, byte.into()))
                    }
                };
                ends.add_match(coded(&escape(b"x", 2, 16)));
                ends.add_match(coded(&escape(b"", 3, 8)));
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                ends.add_match(units.fold(UnitMatch::To(start), |step, unit| {
                    step.then(|at| backslashes_and_letter(text, at, b"u"))
                        .then(|at| digits(text, at, 4, 16, (*unit).into()))
                }));
            }
        }
        Some(_) => {}
    }
    // `%` and `\` may stand for themselves.
    ends.add_match(literal(text, start, plain));
}

/// Matches a character as one escape: a letter, `\U` with eight digits, or `\u{…}`.
fn single_escape(text: &[u8], start: usize, c: char) -> UnitMatch {
    let letter = match c {
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        c => c,
    };
    let code = u32::from(c);
    let after = start + count_backslashes(text, start);
    match text.get(after) {
        Some(b'U') => digits(text, after + 1, 8, 16, code),
        Some(b'u') if text.get(after + 1) == Some(&b'{') => {
            let hex = text[after + 2..].iter().take_while(|byte| byte.is_ascii_hexdigit());
            let count = hex.take(8).count();
            digits(text, after + 2, count, 16, code).then(|at| literal(text, at, b"}"))
        }
        // After a backslash, letters and digits have another meaning.
        Some(byte)
            if u32::from(*byte) == u32::from(letter)
                && (c != letter || c.is_ascii_punctuation()) =>
        {
            UnitMatch::To(after + 1)
        }
        _ => UnitMatch::No,
    }
}

/// Matches backslashes and this letter.
fn backslashes_and_letter(text: &[u8], start: usize, letter: &[u8]) -> UnitMatch {
    match count_backslashes(text, start) {
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

/// Matches `count` digits with this value.
fn digits(text: &[u8], start: usize, count: usize, radix: u32, value: u32) -> UnitMatch {
    let there = &text[start..text.len().min(start + count)];
    let mut number = 0_u32;
    for (place, byte) in there.iter().enumerate() {
        let Some(digit) = char::from(*byte).to_digit(radix) else {
            return UnitMatch::No;
        };
        number = number.wrapping_mul(radix).wrapping_add(digit);
        // No further digits can give this value.
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
