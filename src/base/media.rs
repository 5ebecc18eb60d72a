//! Detects whether bytes are text, an image that models accept, or something else.
//! Only the bytes count, not a file's name.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

/// Image for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Image {
    /// An `https:` URL that the endpoint fetches, or the image itself as
    /// `data:image/png;base64,…` (RFC 2397).
    pub url: String,
}

impl Image {
    /// Describes the image for the user: type and size, or its URL without
    /// credentials.
    pub fn describe(&self) -> String {
        if let Some((mime, data)) = self.inline_data() {
            let padding = data.len() - data.trim_end_matches('=').len();
            return format!("{mime}, {} bytes", data.len() / 4 * 3 - padding);
        }
        let place = self.url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
        let end = rest.find('/').unwrap_or(rest.len());
        let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
        format!("{scheme}://{}", &rest[host..])
    }

    /// MIME type and base64 text of an image in a `data:` URL.
    pub fn inline_data(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }
}

/// Type and size of an image that models accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// MIME type, such as `image/png`.
    pub mime: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl ImageInfo {
    /// Reads the header of an image; `None` if the bytes are not a PNG, JPEG, GIF or
    /// WebP image with a size.
    pub fn from_bytes(bytes: &[u8]) -> Option<ImageInfo> {
        let (mime, size) = match bytes {
            [b'\x89', b'P', b'N', b'G', ..] => ("image/png", png_size(bytes)),
            [b'\xff', b'\xd8', b'\xff', ..] => ("image/jpeg", jpeg_size(bytes)),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ("image/gif", gif_size(bytes)),
            [b'R', b'I', b'F', b'F', ..] => ("image/webp", webp_size(bytes)),
            _ => return None,
        };
        let (width, height) = size.filter(|(width, height)| *width > 0 && *height > 0)?;
        Some(ImageInfo { mime, width, height })
    }

    /// Type, number of bytes and size, for the user and the model.
    pub fn describe(&self, bytes: usize) -> String {
        let ImageInfo { mime, width, height } = self;
        format!("{mime}, {bytes} bytes, {width}x{height}")
    }

    /// The image for a model: `bytes` as a `data:` URL.
    pub fn to_image(self, bytes: &[u8]) -> Image {
        let mut url = format!("data:{};base64,", self.mime);
        url.reserve_exact(bytes.len().div_ceil(3) * 4);
        BASE64_STANDARD.encode_string(bytes, &mut url);
        Image { url }
    }
}

/// Whether these first bytes of a file have the signature of a PNG, JPEG, GIF or WebP image.
pub fn has_image_signature(beginning: &[u8]) -> bool {
    let is_webp = beginning.starts_with(b"RIFF") && array_at(beginning, 8) == Some(*b"WEBP");
    is_webp || [PNG, JPEG, GIF].iter().any(|signature| beginning.starts_with(signature))
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";
const GIF: &[u8] = b"GIF8";

fn array_at<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
    bytes.get(place..)?.first_chunk().copied()
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let is_whole = bytes.starts_with(PNG) && array_at(bytes, 12) == Some(*b"IHDR");
    let size = |place| array_at(bytes, place).map(u32::from_be_bytes);
    is_whole.then_some((size(16)?, size(20)?))
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = |place| array_at(bytes, place).map(u16::from_le_bytes).map(u32::from);
    Some((size(6)?, size(8)?))
}

/// Reads the size from the frame header, which follows segments of any length.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut place = 2;
    loop {
        let [0xff, marker] = array_at(bytes, place)? else {
            return None;
        };
        let size = |place| array_at(bytes, place).map(u16::from_be_bytes);
        match marker {
            // Padding.
            0xff => place += 1,
            0x01 | 0xd0..=0xd7 => place += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((size(place + 7)?.into(), size(place + 5)?.into()));
            }
            // The end, or the image data, without a frame header.
            0xd8..=0xda => return None,
            _ => place += 2 + usize::from(size(place + 2)?.max(2)),
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if array_at(bytes, 8) != Some(*b"WEBP") {
        return None;
    }
    let size =
        |place, bits: u32| Some(u32::from_le_bytes(array_at(bytes, place)?) & ((1 << bits) - 1));
    match &array_at::<4>(bytes, 12)? {
        b"VP8 " if array_at(bytes, 23) == Some(*b"\x9d\x01\x2a") => {
            let [a, b, c, d] = array_at(bytes, 26)?;
            let pixels = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            Some((pixels(a, b), pixels(c, d)))
        }
        b"VP8L" if bytes.get(20) == Some(&0x2f) => {
            let packed = size(21, 28)?;
            Some(((packed & 0x3fff) + 1, (packed >> 14) + 1))
        }
        b"VP8X" => Some((size(24, 24)? + 1, size(27, 24)? + 1)),
        _ => None,
    }
}

/// Describes a file whose first bytes are not text; `None` for text.
pub fn binary_kind(beginning: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 14] = [
        (PNG, "PNG image"),
        (JPEG, "JPEG image"),
        (GIF, "GIF image"),
        (b"RIFF", "RIFF file (WebP, WAV or AVI)"),
        (b"%PDF-", "PDF document"),
        (b"PK\x03\x04", "ZIP archive or office document"),
        (b"\x1f\x8b", "gzip archive"),
        (b"BZh", "bzip2 archive"),
        (b"\xfd7zXZ\0", "xz archive"),
        (b"7z\xbc\xaf\x27\x1c", "7z archive"),
        (b"\x7fELF", "ELF program"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\0asm", "WebAssembly module"),
        (b"OggS", "Ogg file"),
    ];
    let known = SIGNATURES.iter().find(|(signature, _)| beginning.starts_with(signature));
    // Text may start with the same letters: only a NUL or invalid UTF-8 shows that
    // the file is binary.
    let is_text = !beginning.contains(&0)
        && match std::str::from_utf8(beginning) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
        };
    match known {
        // A PDF document may start with text only.
        Some((_, kind)) if !is_text || *kind == "PDF document" => Some(kind),
        // Latin-1 and similar encodings are text: few of their bytes are not ASCII.
        None if !is_text && (beginning.contains(&0) || is_mostly_binary(beginning)) => {
            Some("binary file")
        }
        _ => None,
    }
}

/// Whether more than a third of the bytes is not ASCII text.
fn is_mostly_binary(bytes: &[u8]) -> bool {
    let is_odd = |byte: &&u8| !(byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    bytes.iter().filter(is_odd).count() * 3 > bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_described_without_its_bytes_or_credentials() {
        for (url, shown) in [
            ("data:image/png;base64,AAAA", "image/png, 3 bytes"),
            ("data:image/gif;base64,AAA=", "image/gif, 2 bytes"),
            ("data:image/gif;base64,", "image/gif, 0 bytes"),
            ("https://u:p@h.test:1/a@b.png?key=k#f", "https://h.test:1/a@b.png"),
            ("http://h.test?key=k", "http://h.test"),
            ("odd", "://odd"),
        ] {
            let image = Image { url: url.into() };
            assert_eq!(image.describe(), shown);
        }
    }

    #[test]
    fn binary_files_are_detected_by_their_content() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"plain text", None),
            ("grüße".as_bytes(), None),
            (b"caf\xe9 is Latin-1 text", None),
            (b"\x89PNG\r\n\x1a\n....", Some("PNG image")),
            (b"RIFFs in music", None),
            (b"a\0b", Some("binary file")),
            (b"\xfe\xff\xfa\xfb\x80\x81", Some("binary file")),
            (b"", None),
        ];
        for (bytes, kind) in table {
            assert_eq!(binary_kind(bytes), *kind, "{bytes:?}");
        }
    }

    #[test]
    fn images_are_detected_with_their_size() {
        let image = |mime, width, height| Some(ImageInfo { mime, width, height });
        let table: &[(&[u8], Option<ImageInfo>)] = &[
            (
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x01\x02\0\0\0\x03\x08",
                image("image/png", 258, 3),
            ),
            (
                b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\0\x05\x02\x01\x03",
                image("image/jpeg", 513, 5),
            ),
            (b"GIF89a\x02\x01\x03\0\xf0", image("image/gif", 258, 3)),
            (
                b"RIFF\x20\0\0\0WEBPVP8 \x14\0\0\0\x10\x02\0\x9d\x01\x2a\x02\x41\x03\0",
                image("image/webp", 258, 3),
            ),
            (b"RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f\x01\xc1\0\0", image("image/webp", 258, 4)),
            (
                b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x01\x01\0\x03\0\0ALPH",
                image("image/webp", 258, 4),
            ),
            // Without a size above zero.
            (b"\x89PNG\r\n\x1a\nnonsense", None),
            (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\0\0\0\0\x03", None),
            (b"\xff\xd8\xff\xe0\0\x04ab\xff\xda\0\0\0\0", None),
            (b"\xff\xd8\xff\xe0\xff\xff", None),
            (b"\xff\xd8\xff", None),
            (b"GIF89a\x01", None),
            (b"RIFF\x20\0\0\0WAVEfmt ", None),
            (b"RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0", None),
            (b"text", None),
        ];
        for (bytes, expected) in table {
            assert_eq!(ImageInfo::from_bytes(bytes), *expected, "{bytes:?}");
            for length in 0..bytes.len() {
                let _ = ImageInfo::from_bytes(&bytes[..length]);
            }
        }
    }

    #[test]
    fn an_image_is_a_data_url_of_its_bytes() {
        let info = ImageInfo::from_bytes(b"GIF89a\x01\0\x01\0").unwrap();
        let image = info.to_image(b"GIF89a\x01\0\x01\0");
        assert_eq!(image.url, "data:image/gif;base64,R0lGODlhAQABAA==");
        assert_eq!(info.describe(10), "image/gif, 10 bytes, 1x1");
    }
}
