//! What goes with a question: pictures, and files as text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::cli::setup::Run;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::media::{self, Picture};
use crate::message::{Image, UserMessage};
use crate::text::{cut, one_line, one_name};
use crate::world::files;

/// Attached, until a question takes it along.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    list: Vec<Attachment>,
}

#[derive(Debug)]
struct Attachment {
    given: OsString,
    /// As it was given, fit to be shown.
    name: String,
    what: String,
    part: AttachmentContent,
}

#[derive(Debug)]
enum AttachmentContent {
    Text(String),
    Image(Image),
}

/// What can be attached, for messages that refuse something.
const KINDS: &str = "only images (PNG, JPEG, GIF, WebP) and UTF-8 text can be attached";

impl Attachments {
    /// Everything that was given with `--attach`, or all that is wrong with it.
    pub(super) fn typed(run: &Run) -> Result<Attachments> {
        let mut attachments = Attachments::default();
        let mut faults = Vec::new();
        for given in &run.typed.attach {
            match attachments.add(given, run) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Usage => faults.push(error),
                Err(error) => return Err(error),
            }
        }
        match faults.len() {
            0 => Ok(attachments),
            1 => Err(faults.remove(0)),
            _ => {
                let messages: Vec<&str> = faults.iter().map(Error::message).collect();
                Err(Error::new(ErrorKind::Usage, messages.join("; ")))
            }
        }
    }

    /// Adds a file or the address of a picture, and says what it is.
    pub(super) fn add(&mut self, given: &OsStr, run: &Run) -> Result<String> {
        let name = one_line(&one_name(&given.to_string_lossy()), limits::HINT_BYTES);
        let failure = |cause: &str| {
            Error::new(ErrorKind::Usage, format!("failed to attach `{name}`: {cause}"))
        };
        let (what, part) = match url(given).map_err(failure)? {
            Some(image) if run.config.vision => {
                ("the endpoint fetches it".into(), AttachmentContent::Image(image))
            }
            Some(_) => return Err(failure(NO_VISION)),
            None if given.is_empty() => return Err(failure("the name is empty")),
            None => {
                let path = match given.as_bytes().strip_prefix(b"~/") {
                    Some(rest) => run.home.join(OsStr::from_bytes(rest)),
                    None => run.folder.join(given),
                };
                if path.is_dir() {
                    return Err(failure("it is a folder: name the files in it"));
                }
                let most = limits::ATTACHED_BYTES;
                let bytes = files::read_given(&path, most, &run.cancellation)
                    .map_err(|error| files::unread(&error, failure))?;
                read(bytes, given, run.config.vision).map_err(|cause| failure(&cause))?
            }
        };
        // Once more is not twice: a file may have changed meanwhile.
        self.list.retain(|other| other.given != given);
        let length = |part: &AttachmentContent| match part {
            AttachmentContent::Text(text) => text.len(),
            AttachmentContent::Image(image) => image.url.len(),
        };
        let others = self.list.iter().map(|other| length(&other.part));
        if others.sum::<usize>() + length(&part) > limits::ATTACHED_BYTES {
            let most = limits::ATTACHED_BYTES >> 20;
            return Err(failure(&format!("with it more than {most} MiB would be attached")));
        }
        let told = format!("{name} ({what})");
        self.list.push(Attachment { given: given.into(), name, what, part });
        Ok(told)
    }

    /// What is attached, one line each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let list = self.list.iter();
        list.map(|Attachment { name, what, .. }| format!("{name} ({what})"))
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A question takes along all that is attached.
    pub(super) fn go_with(&mut self, mut said: UserMessage) -> UserMessage {
        for Attachment { name, part, .. } in std::mem::take(&mut self.list) {
            match part {
                AttachmentContent::Image(image) => said.images.push(image),
                AttachmentContent::Text(text) => {
                    let name = name.replace('&', "&amp;").replace('"', "&quot;");
                    let name = name.replace('<', "&lt;").replace('>', "&gt;");
                    let end = if text.ends_with('\n') { "" } else { "\n" };
                    said.text.push_str(&format!("\n\n<file name=\"{name}\">\n{text}{end}</file>"));
                }
            }
        }
        said
    }
}

const NO_VISION: &str = "it is an image, and vision is off (LLM_VISION=on lets it through)";

/// The picture at an address, which the endpoint fetches; `None`: it is a file.
/// Nothing of the address is changed: a login in it is the endpoint's to use.
fn url(given: &OsStr) -> std::result::Result<Option<Image>, &'static str> {
    let text = given.to_str().unwrap_or_default();
    let scheme = match text.split_once(':') {
        Some((scheme, rest)) if rest.starts_with("//") || scheme == "data" => scheme,
        _ => return Ok(None),
    };
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" if text.contains(is_odd) => {
            Err("an address holds no blanks (%20 stands for one)")
        }
        "http" | "https" if text.len() > limits::IMAGE_URL_BYTES => Err("the address is too long"),
        "http" | "https" if text.len() > scheme.len() + 3 => Ok(Some(Image { url: text.into() })),
        _ => Err("of addresses only those of images are taken that begin with http:// or https://"),
    }
}

/// What a file's bytes are, and what is sent of them.
fn read(
    bytes: Vec<u8>,
    given: &OsStr,
    shows_pictures: bool,
) -> std::result::Result<(String, AttachmentContent), String> {
    let length = bytes.len();
    if length == 0 {
        return Err("it is empty".into());
    }
    let beginning = &bytes[..length.min(limits::READ_BYTES)];
    let kind = media::binary_kind(beginning);
    if let (Some(kind), true) = (kind, media::begins_as_picture(beginning)) {
        return match Picture::of(&bytes) {
            _ if !shows_pictures => Err(NO_VISION.into()),
            None => Err(format!("it begins as a {kind}, but is damaged")),
            Some(_) if length > limits::IMAGE_BYTES => {
                let most = limits::IMAGE_BYTES >> 20;
                Err(format!(
                    "the image is larger than {most} MiB: make it smaller, or give an address of it"
                ))
            }
            Some(picture) => {
                Ok((picture.shown(length), AttachmentContent::Image(picture.image(&bytes))))
            }
        };
    }
    if beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff") {
        return Err(format!("it is UTF-16 text; {KINDS}"));
    }
    if let Some(kind) = kind {
        return Err(format!("it is a {kind}; {KINDS}"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        format!("its line {line} is not UTF-8; {KINDS}")
    })?;
    if text.contains('\0') {
        return Err(format!("it is a binary file; {KINDS}"));
    }
    let name = given.to_string_lossy().to_lowercase();
    let is_image = |ending: &&str| name.ends_with(*ending);
    if [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(is_image) {
        let beginning = cut(text.trim_start(), limits::BEAT_BYTES);
        return Err(format!(
            "it is no image in spite of its name, but text: {}",
            one_name(&one_line(&beginning, limits::QUOTED_BYTES))
        ));
    }
    Ok((format!("text, {length} bytes"), AttachmentContent::Text(text)))
}
