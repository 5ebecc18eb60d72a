//! Runs the targets on their seeds and on mutations of them, without libFuzzer: `make
//! replay`. The arguments are the number of mutations and the targets, default all. The
//! mutations depend only on the seeds, so that a failure can be repeated.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use skills_runner_fuzz::cuts::Numbers;
use skills_runner_fuzz::{Check, TARGETS};

/// The maximal length of a mutation.
const MAX_BYTES: usize = 8 << 10;
/// The time limit of a target; on a slow machine the remaining mutations are left out, and
/// the output says so.
const TIME_LIMIT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments.next().map_or(Ok(2_000), |text| text.parse());
    let Ok(runs) = runs else {
        eprintln!("usage: replay [RUNS [TARGET...]]");
        return ExitCode::from(2);
    };
    let names: Vec<String> = arguments.collect();
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|(it, _)| it != name)) {
        eprintln!("unknown target `{unknown}`");
        return ExitCode::from(2);
    }
    let is_selected = |name: &str| names.is_empty() || names.iter().any(|it| it == name);
    let mut has_passed = true;
    for (name, check) in TARGETS.iter().filter(|(name, _)| is_selected(name)) {
        has_passed &= replay(name, *check, runs);
    }
    ExitCode::from(u8::from(!has_passed))
}

/// Runs one target. Stops at the first failure and returns false.
fn replay(name: &str, check: Check, runs: usize) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = read_all(&folder.join("seeds").join(name));
    if seeds.is_empty() {
        eprintln!("{name}: no seeds");
        return false;
    }
    let words = dictionary(&folder.join("dictionaries").join(format!("{name}.dict")));
    let begin = Instant::now();
    for seed in &seeds {
        if !passes(name, check, seed) {
            return false;
        }
    }
    let mut numbers = Numbers::new(1);
    let mut done = 0;
    while done < runs && begin.elapsed() < TIME_LIMIT {
        if !passes(name, check, &mutated(&seeds, &words, &mut numbers)) {
            return false;
        }
        done += 1;
    }
    let left = if done < runs { ", no time for more" } else { "" };
    let seconds = begin.elapsed().as_secs_f32();
    println!("{name}: {} seeds and {done} mutations passed, {seconds:.1} s{left}", seeds.len());
    true
}

fn passes(name: &str, check: Check, input: &[u8]) -> bool {
    if panic::catch_unwind(|| check(input)).is_ok() {
        return true;
    }
    let path = Path::new("artifacts").join(name).join("replay");
    let folder = path.parent().unwrap_or(Path::new("."));
    match fs::create_dir_all(folder).and_then(|()| fs::write(&path, input)) {
        Ok(()) => eprintln!("{name}: the check failed; the input is in fuzz/{}", path.display()),
        Err(error) => eprintln!("{name}: the check failed for {input:?} (not written: {error})"),
    }
    false
}

fn read_all(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    // The order of entries depends on the file system.
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// The words of a libFuzzer dictionary: `"text"`, with `\xAB`, `\\`, `\"`.
fn dictionary(path: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let quoted = |line: &str| Some(line.strip_prefix('"')?.strip_suffix('"')?.to_string());
    let words = text.lines().filter_map(|line| quoted(line.trim()));
    words.map(|word| unescaped(word.as_bytes())).collect()
}

fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&byte, rest)) = text.split_first() {
        text = rest;
        let code = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (byte, rest) {
            (b'\\', [b'x', digits @ ..]) if digits.len() >= 2 => {
                bytes.extend(code(&digits[..2]));
                text = &digits[2..];
            }
            (b'\\', [next, behind @ ..]) => {
                bytes.push(*next);
                text = behind;
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// A seed with one to eight changes.
fn mutated(seeds: &[Vec<u8>], words: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(8) {
        let at = numbers.below(bytes.len() + 1);
        let end = at + numbers.below((bytes.len() - at).min(64) + 1);
        match numbers.below(7) {
            0 if at < bytes.len() => bytes[at] = random_byte(numbers),
            1 => bytes.insert(at, random_byte(numbers)),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            4 => {
                let other = &seeds[numbers.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len() + 1)..]);
            }
            5 => bytes.truncate(at),
            _ if !words.is_empty() => {
                let word = words[numbers.below(words.len())].iter().copied();
                bytes.splice(at..at, word);
            }
            _ => {}
        }
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

/// A random byte; half of them are special to parsers.
fn random_byte(numbers: &mut Numbers) -> u8 {
    const SPECIAL: &[u8] = b"\n\r\t \"'`\\$#:-[]{}<>,.=/0a\0\x80\xff";
    match numbers.below(2) {
        0 => SPECIAL[numbers.below(SPECIAL.len())],
        _ => u8::try_from(numbers.below(256)).unwrap_or(0),
    }
}
