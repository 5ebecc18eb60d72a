//! Reads skills' documents from standard input and prints what the reader of
//! frontmatter makes of each as one line of JSON. It exists for
//! `tests/oracle/yaml_oracle.py`, so that the product needs no hidden command.
//!
//! A document is a length (four bytes, little-endian) and as many bytes.

use std::io::{self, BufReader, BufWriter, Write};

use serde_json::{Value, json};
use skills_runner::internals::skills::frontmatter;
use skills_runner::internals::skills::yaml::{self, fence};

#[path = "shared/blocks.rs"]
mod blocks;

use blocks::read_block;

fn main() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    while let Some(document) = read_block(&mut input)? {
        let front = frontmatter::parse_head(&document, true).unwrap_or_default();
        let diagnostics: Vec<Value> = front
            .diagnostics
            .iter()
            .map(|found| json!([found.line, found.rule, found.message]))
            .collect();
        let line = json!({
            "strict": strict(&document),
            "fields": front.fields,
            "name": front.name(),
            "description": front.description(),
            "body_start": front.body_start,
            "diagnostics": diagnostics,
        });
        writeln!(output, "{line}")?;
    }
    output.flush()
}

/// What the strict reader alone makes of the YAML between the lines of dashes:
/// its value, or the rule that it breaks. Null where there is no such YAML.
fn strict(document: &[u8]) -> Value {
    let block = std::str::from_utf8(document).ok().and_then(|text| {
        let start = fence::find_opening(text)?;
        let (end, _) = fence::find_fence(text, start, "---", true)?;
        Some(yaml::normalize(&text[start..end]))
    });
    match block.map(|text| yaml::parse(&text)) {
        None => Value::Null,
        Some(Ok(reading)) => json!({"value": reading.value}),
        Some(Err(fault)) => json!({"refused": fault.rule, "message": fault.message}),
    }
}
