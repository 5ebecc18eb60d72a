//! Reads `.env` documents from standard input and prints the parsed result of each as one
//! line of JSON. `tests/oracle/dotenv_oracle.py` uses it, so that the program needs no hidden
//! command. It prints values, so it must stay outside the program.
//!
//! A document is two blocks, each with its length (four bytes, little-endian) before its
//! bytes: the environment as a JSON object, then the `.env` text.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Write};

use base::dotenv::{self, Dotenv};
use serde_json::{Value, json};

#[path = "shared/blocks.rs"]
mod blocks;

use blocks::read_block;

fn main() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    while let Some(environment) = read_block(&mut input)? {
        let environment: HashMap<String, String> = serde_json::from_slice(&environment)?;
        let document = read_block(&mut input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let outcome = dotenv::parse_bytes(&document, &|name| environment.get(name).cloned());
        let line = match outcome {
            Ok(read) => describe(&read),
            Err(problem) => json!({"refused": problem.line, "message": problem.message}),
        };
        writeln!(output, "{line}")?;
    }
    output.flush()
}

fn describe(read: &Dotenv) -> Value {
    let variables: Vec<Value> = read
        .variables
        .iter()
        .map(|variable| json!([variable.name, variable.value, variable.line]))
        .collect();
    let problems: Vec<Value> =
        read.problems.iter().map(|problem| json!([problem.line, problem.message])).collect();
    json!({"variables": variables, "problems": problems})
}
