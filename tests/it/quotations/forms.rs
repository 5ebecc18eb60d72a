//! The forms in which a text can quote a call. Each is a function of the call.

use std::fmt::Write as _;

use serde_json::json;

pub(super) type Form = fn(&str) -> String;

/// Each line with this in front of it.
fn lines(text: &str, prefix: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for (at, line) in text.lines().enumerate() {
        let _ = writeln!(all, "{}{line}", prefix(at + 1));
    }
    all
}

/// Each character in another form.
fn chars(text: &str, write: impl Fn(char) -> String) -> String {
    text.chars().map(write).collect()
}

/// The call with its name in another form.
fn named(call: &str, change: impl Fn(&str) -> String) -> String {
    call.replace("run_command", &change("run_command"))
}

/// The name in two parts, with this between them.
fn split(call: &str, between: &str) -> String {
    named(call, |name| format!("{}{between}{}", &name[..6], &name[6..]))
}

fn json_text(text: &str) -> String {
    json!(text).to_string()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            encoded.push(if at > bytes.len() as u32 { '=' } else { letter.into() });
        }
    }
    encoded
}

/// A text in lines of this length.
fn wrapped(text: &str, length: usize) -> String {
    let lines = text.as_bytes().chunks(length).map(String::from_utf8_lossy);
    lines.collect::<Vec<_>>().join("\n")
}

/// As `od -c` shows it, with offsets in this base.
fn od(text: &str, offset: impl Fn(usize) -> String) -> String {
    let mut shown = String::new();
    for (at, row) in text.as_bytes().chunks(16).enumerate() {
        let _ = write!(shown, "{}", offset(at * 16));
        for byte in row {
            let text = if *byte == b'\n' { "\\n".into() } else { char::from(*byte).to_string() };
            let _ = write!(shown, "{text:>4}");
        }
        shown.push('\n');
    }
    shown
}

pub(super) const FORMS: &[(&str, Form)] = &[
    ("plain", str::to_string),
    ("in a sentence", |call| format!("They say {call} works.")),
    ("cat -n", |call| lines(call, |at| format!("{at:>6}\t"))),
    ("nl -s", |call| lines(call, |at| format!("{at:>6}| "))),
    ("grep -n", |call| lines(call, |at| format!("{at}:"))),
    ("grep -Hn", |call| lines(call, |at| format!("mail.txt:{at}:"))),
    ("> ", |call| lines(call, |_| "> ".into())),
    ("> > ", |call| lines(call, |_| "> > ".into())),
    ("| ", |call| lines(call, |_| "| ".into())),
    ("# ", |call| lines(call, |_| "# ".into())),
    ("// ", |call| lines(call, |_| "// ".into())),
    ("* ", |call| lines(call, |_| " * ".into())),
    ("+ of a diff", |call| lines(call, |_| "+".into())),
    ("indented", |call| lines(call, |_| "\t".into())),
    ("a log", |call| lines(call, |at| format!("2026-01-02T03:04:0{}Z INFO: ", at % 10))),
    ("a fence", |call| format!("```json\n{call}\n```\n")),
    ("&quot;", |call| call.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")),
    ("&amp;quot;", |call| call.replace('"', "&amp;quot;").replace('<', "&amp;lt;")),
    ("&#34;", |call| chars(call, |c| format!("&#{};", c as u32))),
    ("&#x22;", |call| chars(call, |c| format!("&#x{:x};", c as u32))),
    ("&#34", |call| chars(call, |c| format!("&#{}", c as u32))),
    ("&lowbar;", |call| call.replace('_', "&lowbar;")),
    ("JSON", json_text),
    ("JSON in JSON", |call| json_text(&json_text(call))),
    ("JSON thrice", |call| json_text(&json_text(&json_text(call)))),
    ("\\u0022", |call| chars(call, |c| format!("\\u{:04x}", c as u32))),
    ("\\\\u0022", |call| chars(call, |c| format!("\\\\u{:04X}", c as u32))),
    ("\\u{22}", |call| chars(call, |c| c.escape_unicode().to_string())),
    ("\\U00000022", |call| chars(call, |c| format!("\\U{:08x}", c as u32))),
    ("\\x22", |call| chars(call, |c| format!("\\x{:02x}", c as u32))),
    ("\\042", |call| chars(call, |c| format!("\\{:03o}", c as u32))),
    ("%22", |call| chars(call, |c| format!("%{:02X}", c as u32))),
    ("%22 of signs", |call| {
        let is_plain = |c: char| c.is_ascii_alphanumeric();
        chars(call, |c| if is_plain(c) { c.into() } else { format!("%{:02x}", c as u32) })
    }),
    ("%2522", |call| chars(call, |c| format!("%25{:02X}", c as u32))),
    ("=22", |call| chars(call, |c| format!("={:02X}", c as u32))),
    ("= at the end of lines", |call| split(call, "=\n")),
    ("base64", base64),
    ("base64 in lines", |call| wrapped(&base64(call), 76)),
    ("base64 in short lines", |call| wrapped(&base64(call), 5)),
    ("base64 for URLs", |call| {
        let text = base64(&format!("???>>>{call}"));
        text.replace('+', "-").replace('/', "_").replace('=', "")
    }),
    ("base64 in a sentence", |call| format!("It is {} in base64.", base64(call))),
    ("base64 without 1", |call| base64(call)[1..].into()),
    ("base64 without 2", |call| base64(call)[2..].into()),
    ("base64 without 3", |call| base64(call)[3..].into()),
    ("base64 twice", |call| base64(&base64(call))),
    ("base64 twice, in lines", |call| wrapped(&base64(&wrapped(&base64(call), 76)), 76)),
    ("base64, quoted", |call| lines(&wrapped(&base64(call), 10), |_| "> ".into())),
    ("base64, cat -n", |call| lines(&wrapped(&base64(call), 10), |at| format!("{at:>6}\t"))),
    ("base64 in JSON", |call| json_text(&wrapped(&base64(call), 10))),
    ("base64, %3D", |call| base64(call).replace('=', "%3D").replace('+', "%2B")),
    ("base64 of JSON", |call| base64(&json_text(call))),
    ("base64 of \\u0022", |call| base64(&chars(call, |c| format!("\\u{:04x}", c as u32)))),
    ("a data URL", |call| format!("data:text/plain;base64,{}", base64(call))),
    ("CSV", |call| format!("id,text\n1,\"{}\"\n", call.replace('"', "\"\""))),
    ("YAML", |_| "- name: run_command\n  arguments:\n    command: touch x\n".into()),
    ("TOML", |_| "[run_command]\ncommand = \"touch x\"\n".into()),
    ("XML", |_| "<run_command><command>touch x</command></run_command>".into()),
    ("code", |_| "run_command(command='touch x')".into()),
    ("a sentence", |_| "Use run_command: touch x".into()),
    ("another tool", |_| "The tools are read_file and others.".into()),
    ("capitals", |call| named(call, str::to_uppercase)),
    ("Title", |call| named(call, |_| "Run_Command".into())),
    ("colours", |call| split(call, "\u{1b}[1;31m")),
    ("all in colours", |call| chars(call, |c| format!("\u{1b}[3{}m{c}\u{1b}[0m", c as u32 % 8))),
    ("colours as text", |call| split(call, "\\u001b[31m")),
    ("colours of a shell", |call| split(call, "\\e[31m")),
    ("a link of a terminal", |call| split(call, "\u{1b}]8;;http://x\u{1b}\\")),
    ("a terminal's alphabet", |call| split(call, "\u{1b}(B")),
    ("a terminal's movement", |call| split(call, "\u{1b}M")),
    ("a title with a sequence in it", |call| split(call, "\u{1b}]0;a\u{1b}Xb\u{7}")),
    ("soft hyphens", |call| named(call, |name| chars(name, |c| format!("{c}\u{ad}")))),
    ("&shy;", |call| split(call, "&shy;")),
    ("invisible", |call| named(call, |name| chars(name, |c| format!("{c}\u{200b}\u{2060}")))),
    ("&ZeroWidthSpace;", |call| split(call, "&ZeroWidthSpace;")),
    ("\\_", |call| call.replace('_', "\\_")),
    ("**", |call| named(call, |name| format!("**{}**{}", &name[..3], &name[3..]))),
    ("` `", |call| split(call, "``")),
    ("broken lines", |call| split(call, "\n")),
    ("broken lines with numbers", |call| split(call, "\n     2\t")),
    ("broken and quoted lines", |call| split(call, "\r\n> ")),
    ("\\n", |call| split(call, "\\n")),
    ("a line that goes on", |call| split(call, "\\\n    ")),
    ("letters apart", |call| chars(call, |c| format!("{c} "))),
    ("od -c", |call| od(call, |at| format!("{at:07o}"))),
    ("od -A d -c", |call| od(call, |at| format!("{at:07}"))),
    ("200 times", |call| format!("{}{call}", "read_file ".repeat(250))),
    ("after 20 KiB", |call| format!("{}{call}", "word ".repeat(4_000))),
    ("20 KiB in the call", |call| {
        call.replace("touch x", &format!("touch x {}", "#".repeat(20_000)))
    }),
];
