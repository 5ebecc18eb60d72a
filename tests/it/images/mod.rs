//! Images and other attachments, from `--attach`, `/attach` and a skill's files to the server, and
//! endpoints that refuse them.

mod attachments;
mod conversations;
mod refusals;
mod skills;

use crate::harness::{Reply, Request};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: art\ndescription: Pictures.\n---\nLook at them.\n";

/// An image of this size with `filler` bytes of all values after its header.
fn png(width: u32, height: u32, filler: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend((0..filler).map(|number| (number * 7 + number / 256) as u8));
    bytes
}

const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x06\x03\xff\xd9";
const GIF: &[u8] = b"GIF89a\x03\0\x02\0\x80\0\0";

/// Type and bytes of an inline image.
#[track_caller]
fn decoded(part: &Value) -> (String, Vec<u8>) {
    assert_eq!(part["type"], "image_url", "{part}");
    let url = part["image_url"]["url"].as_str().unwrap();
    let (mime, data) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
    (mime.into(), BASE64_STANDARD.decode(data).unwrap())
}

#[track_caller]
fn parts(message: &Value) -> &[Value] {
    message["content"].as_array().unwrap_or_else(|| panic!("no parts: {message}"))
}

fn read(path: &str) -> (&'static str, String) {
    let arguments = json!({"skill_name": "art", "file_path": path});
    ("read_file_in_skill", arguments.to_string())
}

fn reads(paths: &[&str]) -> Reply {
    let calls: Vec<(&str, String)> = paths.iter().map(|path| read(path)).collect();
    Reply::calls(calls.iter().map(|(name, json)| (*name, json.as_str())))
}

/// Whether the request contains a part of an image.
fn shows(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains("image_url")
}
