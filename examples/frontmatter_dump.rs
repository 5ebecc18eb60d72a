//! Reads skill documents from standard input and prints the parsed frontmatter of each as one
//! line of JSON. `tests/oracle/yaml_oracle.py` uses it, so that the program needs no hidden
//! command.
//!
//! A document is its length (four bytes, little-endian) and its bytes.

use std::io::{self, BufReader, BufWriter, Write};

use serde_json::{Value, json};
use skills::frontmatter;
use skills::yaml::{self, fence};
use skills_runner::Rule;

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
            .map(|found| json!([found.line, found.rule.name(), found.message]))
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

/// The result of the strict YAML parser alone: the value, or the violated rule. Null if there
/// is no YAML between lines of dashes.
fn strict(document: &[u8]) -> Value {
    let block = std::str::from_utf8(document).ok().and_then(|text| {
        let start = fence::find_opening(text)?;
        let (end, _) = fence::find_closing_line(text, start, "---", true)?;
        Some(yaml::normalize(&text[start..end]))
    });
    match block.map(|text| yaml::parse(&text)) {
        None => Value::Null,
        // The tolerant part of the strict parser, which PyYAML lacks.
        Some(Ok(reading)) if reading.diagnostics.iter().any(|it| it.rule == Rule::Tab) => {
            json!({"refused": "tab"})
        }
        Some(Ok(reading)) => json!({"value": reading.value}),
        Some(Err(fault)) => json!({"refused": fault.rule.name(), "message": fault.message}),
    }
}
