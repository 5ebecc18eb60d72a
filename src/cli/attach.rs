//! Attachments of a question: images, and files as text.

use std::ffi::{OsStr, OsString};

use crate::cli::run::Run;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::media::{self, Image, ImageInfo};
use base::message::{AttachedFile, UserMessage};
use base::text::{one_line, one_line_name};
use host::files;

/// The attachments of the next question.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    list: Vec<Attachment>,
}

#[derive(Debug)]
struct Attachment {
    given: OsString,
    /// The given name, escaped for messages.
    name: String,
    /// The name and what the attachment is.
    description: String,
    content: AttachmentContent,
}

#[derive(Debug)]
enum AttachmentContent {
    Text(String),
    Image(Image),
}

/// The kinds that can be attached, for errors.
const KINDS: &str = "only images (PNG, JPEG, GIF, WebP) and UTF-8 text can be attached";

impl Attachments {
    /// The files given with `--attach`.
    pub(super) fn from_options(typed: &[OsString], run: &Run) -> Result<Attachments> {
        let mut attachments = Attachments::default();
        for given in typed {
            attachments.add(given, run)?;
        }
        Ok(attachments)
    }

    /// Adds a file or the address of an image, and returns its description.
    pub(super) fn add(&mut self, given: &OsStr, run: &Run) -> Result<String> {
        let name = one_line(&one_line_name(&given.to_string_lossy()), limits::HINT_BYTES);
        let failure = |cause: &str| {
            Error::new(ErrorKind::Usage, format!("failed to attach `{name}`: {cause}"))
        };
        let (kind, content) = match image_at_url(given).map_err(failure)? {
            Some(image) if run.config.vision => {
                ("the endpoint fetches it".into(), AttachmentContent::Image(image))
            }
            Some(_) => return Err(failure(NO_VISION)),
            None if given.is_empty() => return Err(failure("the name is empty")),
            None => {
                let path = run.settings.path(given, &run.folder);
                if path.is_dir() {
                    return Err(failure("it is a folder: name the files in it"));
                }
                let most = limits::ATTACHED_BYTES;
                let bytes = files::read_file_or_pipe(&path, most, &run.cancellation)
                    .map_err(|error| files::read_error(&error, failure))?;
                read_content(bytes, run.config.vision).map_err(|cause| failure(&cause))?
            }
        };
        // Attaching a file again replaces it: it may have changed.
        self.list.retain(|other| other.given != given);
        let others = self.list.iter().map(|other| other.content.length());
        if others.sum::<usize>() + content.length() > limits::ATTACHED_BYTES {
            let most = limits::ATTACHED_BYTES >> 20;
            return Err(failure(&format!("the attachments would be larger than {most} MiB")));
        }
        let description = format!("{name} ({kind})");
        self.list.push(Attachment {
            given: given.into(),
            name,
            description: description.clone(),
            content,
        });
        Ok(description)
    }

    /// One line per attachment.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|attachment| attachment.description.as_str())
    }

    /// Whether there is no attachment.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Moves all attachments into the question.
    pub(super) fn move_into(&mut self, mut question: UserMessage) -> UserMessage {
        for Attachment { name, content, .. } in std::mem::take(&mut self.list) {
            match content {
                AttachmentContent::Image(image) => question.images.push(image),
                AttachmentContent::Text(text) => question.files.push(AttachedFile { name, text }),
            }
        }
        question
    }
}

impl AttachmentContent {
    fn length(&self) -> usize {
        match self {
            AttachmentContent::Text(text) => text.len(),
            AttachmentContent::Image(image) => image.url.len(),
        }
    }
}

const NO_VISION: &str = "it is an image, and vision is off (set LLM_VISION=on to send images)";

/// The image at an address, which the endpoint fetches; `None`: `given` is a file. The address
/// is sent unchanged, with any credentials in it.
fn image_at_url(given: &OsStr) -> std::result::Result<Option<Image>, &'static str> {
    let text = given.to_str().unwrap_or_default();
    let scheme = match text.split_once(':') {
        Some((scheme, rest)) if rest.starts_with("//") || scheme == "data" => scheme,
        _ => return Ok(None),
    };
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" if text.contains(is_odd) => {
            Err("an address cannot contain spaces (write %20)")
        }
        "http" | "https" if text.len() > limits::IMAGE_URL_BYTES => Err("the address is too long"),
        "http" | "https" if text.len() > scheme.len() + 3 => Ok(Some(Image { url: text.into() })),
        _ => Err(
            "only images can be attached by their address, which starts with http:// or https://",
        ),
    }
}

/// The description of a file's content, and the content to send.
fn read_content(
    bytes: Vec<u8>,
    accepts_images: bool,
) -> std::result::Result<(String, AttachmentContent), String> {
    let length = bytes.len();
    if length == 0 {
        return Err("it is empty".into());
    }
    let beginning = &bytes[..length.min(limits::READ_BYTES)];
    let kind = media::binary_kind(beginning);
    if let (Some(kind), true) = (kind, media::has_image_signature(beginning)) {
        return match ImageInfo::from_bytes(&bytes) {
            _ if !accepts_images => Err(NO_VISION.into()),
            None => Err(format!("it starts like a {kind}, but is damaged")),
            Some(_) if length > limits::IMAGE_BYTES => {
                let most = limits::IMAGE_BYTES >> 20;
                Err(format!(
                    "the image is larger than {most} MiB: make it smaller, or attach an address of it"
                ))
            }
            Some(info) => {
                Ok((info.describe(length), AttachmentContent::Image(info.to_image(&bytes))))
            }
        };
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
    Ok((format!("text, {length} bytes"), AttachmentContent::Text(text)))
}
