//! Archives, entry by entry, so that they can also be wrong.

use std::io::Write;

use rawzip::Crc32;

/// An entry. Its kind is the letter of tar: `0` a file, `1` a hard link, `2` a link, `3` and `4`
/// devices, `5` a folder, `6` a FIFO, `x` and `g` pax fields, `L` and `K` long names of GNU tar.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) kind: u8,
    pub(super) name: Vec<u8>,
    pub(super) target: Vec<u8>,
    pub(super) content: Vec<u8>,
    pub(super) mode: u32,
}

/// A file.
pub(super) fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Item {
    Item { content: content.as_ref().into(), ..entry(b'0', name, "") }
}

/// A file that can be executed.
pub(super) fn executable(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Item {
    Item { mode: 0o755, ..file(name, content) }
}

/// A link.
pub(super) fn link(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Item {
    entry(b'2', name, target)
}

/// Another entry without content.
pub(super) fn entry(kind: u8, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Item {
    let (name, target) = (name.as_ref().into(), target.as_ref().into());
    Item { kind, name, target, content: Vec::new(), mode: 0o644 }
}

/// The commit of an archive, as `git archive` writes it.
pub(super) fn commit(commit: &str) -> Item {
    pax(b'g', "comment", commit)
}

/// A pax field of the next entry (`x`) or of the archive (`g`).
pub(super) fn pax(kind: u8, key: &str, value: impl AsRef<[u8]>) -> Item {
    let length = key.len() + value.as_ref().len() + 3;
    let mut total = length + 1;
    while length + total.to_string().len() != total {
        total += 1;
    }
    let content = [format!("{total} {key}=").as_bytes(), value.as_ref(), b"\n"].concat();
    Item { content, ..entry(kind, "pax_header", "") }
}

/// A long name (`L`) or target (`K`) of GNU tar for the next entry.
pub(super) fn gnu(kind: u8, name: impl AsRef<[u8]>) -> Item {
    Item { content: [name.as_ref(), b"\0"].concat(), ..entry(kind, "././@LongLink", "") }
}

/// A tar archive.
pub(super) fn tar(items: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for item in items {
        bytes.extend_from_slice(&tar_header(item, item.content.len()));
        bytes.extend_from_slice(&item.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// The header of an entry with a content of this size.
pub(super) fn tar_header(item: &Item, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut set = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, &item.name[..item.name.len().min(100)]);
    set(100, format!("{:07o}\0{:07o}\0{:07o}\0", item.mode, 0, 0).as_bytes());
    set(124, format!("{size:011o}\0{:011o}\0        ", 0).as_bytes());
    set(156, &[item.kind]);
    set(157, &item.target[..item.target.len().min(100)]);
    set(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Compresses by gzip.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    packed.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    packed.extend(crc(bytes).to_le_bytes());
    packed.extend(u32::try_from(bytes.len()).expect("a small archive").to_le_bytes());
    packed
}

/// A `.tar.gz` archive.
pub(super) fn tar_gz(items: &[Item]) -> Vec<u8> {
    gzip(&tar(items))
}

/// The fields of an entry of a zip archive.
#[derive(Clone)]
pub(super) struct ZipFields {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) checksum: u32,
    pub(super) packed: Vec<u8>,
    pub(super) packed_size: u32,
    pub(super) size: u32,
    /// Where the directory says that the entry is, if not where it is.
    pub(super) offset: Option<u32>,
    /// The name in the header before the content, if it is another one.
    pub(super) local_name: Option<Vec<u8>>,
    /// The kind and the mode, as in `stat`.
    pub(super) mode: u32,
}

/// A `.zip` archive.
pub(super) fn zip(items: &[Item]) -> Vec<u8> {
    zip_with(items, b"", |_, _| {})
}

/// A `.zip` archive with a comment, whose fields are changed by a function of their number.
pub(super) fn zip_with(
    items: &[Item],
    comment: &[u8],
    change: impl Fn(usize, &mut ZipFields),
) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let content = if item.kind == b'2' { &item.target } else { &item.content };
        let packed = miniz_oxide::deflate::compress_to_vec(content, 6);
        let size = u32::try_from(content.len()).expect("a small file");
        let mut fields = ZipFields {
            flags: 0x800,
            method: 8,
            checksum: crc(content),
            packed_size: packed.len() as u32,
            packed,
            size,
            offset: None,
            local_name: None,
            mode: item.mode | zip_kind(item.kind),
        };
        change(index, &mut fields);
        let here = bytes.len() as u32;
        let common = |name: &[u8]| {
            let mut part = Vec::new();
            for number in [20, fields.flags, fields.method, 0, 0x21] {
                part.extend(number.to_le_bytes());
            }
            for number in [fields.checksum, fields.packed_size, fields.size] {
                part.extend(number.to_le_bytes());
            }
            part.extend((name.len() as u16).to_le_bytes());
            part.extend([0, 0]);
            part
        };
        let local_name = fields.local_name.as_ref().unwrap_or(&item.name);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(common(local_name));
        bytes.extend(local_name);
        bytes.extend(&fields.packed);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(common(&item.name));
        directory.extend([0; 6]);
        directory.extend((fields.mode << 16).to_le_bytes());
        directory.extend(fields.offset.unwrap_or(here).to_le_bytes());
        directory.extend(&item.name);
    }
    let (start, count) = (bytes.len() as u32, items.len() as u16);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([(directory.len() as u32).to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend((comment.len() as u16).to_le_bytes());
    bytes.write_all(comment).expect("memory");
    bytes
}

fn zip_kind(kind: u8) -> u32 {
    match kind {
        b'2' => 0o120_000,
        b'3' => 0o020_000,
        b'4' => 0o060_000,
        b'5' => 0o040_000,
        b'6' => 0o010_000,
        _ => 0o100_000,
    }
}

/// The CRC-32 of these bytes.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc32::new();
    crc.update(bytes);
    crc.checksum()
}
