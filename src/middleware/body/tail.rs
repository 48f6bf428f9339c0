//! The last bytes of a body.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::Keep;

/// A smaller chunk is copied. It may be all that is left of a read buffer of 8 KiB or more, which cannot be used
/// again as long as it is held: 600 events of 100 bytes, sent one by one, held 4.9 MB.
const SMALL: usize = 4096;

/// What is kept of a body. It holds so many bytes at most; besides, what belongs to the same buffers as its chunks.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    most: usize,
    chunks: VecDeque<Bytes>,
    /// Behind them, small chunks in one piece.
    page: BytesMut,
    /// In all of these.
    held: usize,
    /// More has come than is held.
    cut: bool,
}

impl Tail {
    pub fn new(keep: Keep) -> Self {
        let most = match keep {
            Keep::Nothing => 0,
            Keep::Last(most) => most,
        };
        Self { most, ..Self::default() }
    }

    pub fn push(&mut self, chunk: &Bytes) {
        let kept = chunk.slice(chunk.len().saturating_sub(self.most)..);
        self.cut |= kept.len() < chunk.len();
        self.held += kept.len();
        if kept.len() >= SMALL {
            self.turn_page();
            self.chunks.push_back(kept);
        } else {
            if self.page.capacity() - self.page.len() < kept.len() {
                self.turn_page();
                self.page.reserve(SMALL);
            }
            self.page.extend_from_slice(&kept);
        }
        self.trim();
    }

    fn turn_page(&mut self) {
        if !self.page.is_empty() {
            self.chunks.push_back(self.page.split().freeze());
        }
    }

    fn trim(&mut self) {
        while self.held > self.most {
            self.cut = true;
            let excess = self.held - self.most;
            let Some(first) = self.chunks.front_mut() else {
                self.page.advance(excess);
                self.held = self.most;
                return;
            };
            let spared = excess.min(first.len());
            first.advance(spared);
            self.held -= spared;
            if first.is_empty() {
                self.chunks.pop_front();
            }
        }
    }

    /// Whether the body was longer than what is kept of it.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// In one piece: copied if there are several.
    pub fn join(&mut self) -> &[u8] {
        self.turn_page();
        if self.chunks.len() > 1 {
            let mut joined = Vec::with_capacity(self.held);
            self.chunks.drain(..).for_each(|chunk| joined.extend_from_slice(&chunk));
            self.chunks.push_back(joined.into());
        }
        self.chunks.front().map_or(&[], |whole| whole)
    }
}
