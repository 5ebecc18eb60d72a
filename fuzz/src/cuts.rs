//! Ways to split bytes into pieces. They depend only on the bytes, so that an input is a
//! plain document and a failure can be repeated.

/// Pseudo-random numbers (SplitMix64).
pub struct Numbers(u64);

impl Numbers {
    /// Numbers from a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// Numbers from bytes (FNV-1a).
    pub fn of(bytes: &[u8]) -> Numbers {
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Numbers(bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next one below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = usize::try_from((z ^ (z >> 31)) >> 1).unwrap_or(0);
        number.checked_rem(end).unwrap_or(0)
    }
}

/// Splits the bytes into pieces of up to `most` bytes.
pub fn pieces<'b>(mut bytes: &'b [u8], most: usize, numbers: &mut Numbers) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at((1 + numbers.below(most)).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Several ways to split the bytes; the first is one piece.
pub fn ways(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut numbers = Numbers::of(bytes);
    let (front, back) = bytes.split_at(numbers.below(bytes.len() + 1));
    let mut ways = vec![vec![bytes], vec![front, back]];
    ways.push(pieces(bytes, 3, &mut numbers));
    ways.push(pieces(bytes, 40, &mut numbers));
    if bytes.len() <= 4096 {
        ways.push(bytes.chunks(1).collect());
    }
    ways
}

/// The same for text, split between characters.
pub fn text_ways(text: &str) -> Vec<Vec<&str>> {
    let at_characters = |pieces: Vec<&[u8]>| {
        let mut ends: Vec<usize> = Vec::new();
        let mut at = 0;
        for piece in pieces {
            at += piece.len();
            ends.push(text.floor_char_boundary(at));
        }
        let mut start = 0;
        let cut = ends.into_iter().map(|end| {
            let piece = &text[start..end];
            start = end;
            piece
        });
        cut.collect()
    };
    ways(text.as_bytes()).into_iter().map(at_characters).collect()
}
