//! The part of a file that passed last.

use std::collections::VecDeque;

/// The last pieces of a file, all of one length but the last of the file.
pub(super) struct Window {
    piece: usize,
    room: usize,
    pieces: VecDeque<Vec<u8>>,
    /// Of each piece, whether something named it.
    named: VecDeque<bool>,
    /// Where the first piece that is kept begins, in the file.
    start: u64,
    end: u64,
    spare: Option<Vec<u8>>,
}

impl Window {
    /// For pieces of `piece` bytes, `bytes` in all but four pieces at least.
    pub(super) fn new(piece: usize, bytes: usize) -> Self {
        let room = (bytes / piece).max(4);
        Window { piece, room, pieces: VecDeque::new(), named: VecDeque::new(), start: 0, end: 0, spare: None }
    }

    /// Where the file is.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// A buffer for the next piece.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.take().unwrap_or_default();
        buffer.resize(self.piece, 0);
        buffer
    }

    /// The piece that the next [`Window::push`] would forget, if nothing named it.
    pub(super) fn unnamed_oldest(&self) -> Option<&[u8]> {
        (self.pieces.len() == self.room && !self.named[0]).then(|| self.pieces[0].as_slice())
    }

    /// Something named these bytes.
    pub(super) fn name(&mut self, offset: u64, length: usize) {
        let index = |at: u64| {
            usize::try_from(at.saturating_sub(self.start) / self.piece as u64).unwrap_or(usize::MAX)
        };
        let (first, last) = (index(offset), index(offset + length as u64 - 1));
        self.named.iter_mut().take(last.saturating_add(1)).skip(first).for_each(|named| *named = true);
    }

    /// The next piece.
    pub(super) fn push(&mut self, piece: Vec<u8>) {
        if self.pieces.len() == self.room {
            self.spare = self.pieces.pop_front();
            self.named.pop_front();
            self.start += self.piece as u64;
        }
        self.end += piece.len() as u64;
        self.pieces.push_back(piece);
        self.named.push_back(false);
    }

    /// The piece that begins at `offset`, if it is kept.
    pub(super) fn piece(&self, offset: u64) -> Option<&[u8]> {
        let index = usize::try_from(offset.checked_sub(self.start)? / self.piece as u64).ok()?;
        self.pieces.get(index).map(Vec::as_slice)
    }

    /// Bytes from any place, as many of `length` as have passed; `None` when the first is no longer kept.
    pub(super) fn bytes(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let begin = offset.checked_sub(self.start)?;
        let (mut index, mut at) = (
            usize::try_from(begin / self.piece as u64).ok()?,
            usize::try_from(begin % self.piece as u64).ok()?,
        );
        let mut found = Vec::with_capacity(length);
        while found.len() < length {
            let Some(rest) = self.pieces.get(index).and_then(|piece| piece.get(at..)) else { break };
            found.extend_from_slice(&rest[..rest.len().min(length - found.len())]);
            (index, at) = (index + 1, 0);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_last_pieces() {
        let mut window = Window::new(2, 8);
        assert_eq!(window.unnamed_oldest(), None);
        for number in 0..6u8 {
            let mut piece = window.buffer();
            piece.copy_from_slice(&[2 * number, 2 * number + 1]);
            window.push(piece);
        }
        assert_eq!((window.end(), window.unnamed_oldest()), (12, Some(&[4, 5][..])));
        window.name(5, 2);
        assert_eq!((window.unnamed_oldest(), window.named.iter().filter(|named| **named).count()), (None, 2));
        assert_eq!((window.piece(2), window.piece(10)), (None, Some(&[10, 11][..])));
        assert_eq!(window.bytes(5, 4), Some(vec![5, 6, 7, 8]));
        assert_eq!(window.bytes(11, 4), Some(vec![11]), "as many as passed");
        assert_eq!(window.bytes(3, 1), None);
    }
}
