//! A log of slots in fixed cells, so that memory does not depend on how many permits a window has.

use std::collections::VecDeque;

use super::Micros;

/// Everything booked within one `width` of time. Towards the past a cell counts from its latest slot,
/// towards the future from its earliest: whichever side is looked from, it never counts for too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub earliest: Micros,
    pub latest: Micros,
    pub count: i64,
}

/// Cells in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    cells: VecDeque<Cell>,
    /// The sum of all counts.
    pub used: i64,
}

impl Cells {
    pub fn last(&self) -> Option<Cell> {
        self.cells.back().copied()
    }

    pub fn get(&self, index: usize) -> Option<Cell> {
        self.cells.get(index).copied()
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Drops what lies at or before `time`.
    pub fn drop_until(&mut self, time: Micros) {
        while let Some(cell) = self.cells.front().filter(|cell| cell.latest <= time) {
            self.used -= cell.count;
            self.cells.pop_front();
        }
    }

    pub fn add(&mut self, width: Micros, slot: Micros, count: i64) {
        self.used += count;
        match self.find(width, slot) {
            Ok(at) => {
                let cell = &mut self.cells[at];
                cell.earliest = cell.earliest.min(slot);
                cell.latest = cell.latest.max(slot);
                cell.count += count;
            }
            Err(at) => self.cells.insert(at, Cell { earliest: slot, latest: slot, count }),
        }
    }

    /// Takes `count` out of the cell of `slot`, never more than it holds. Tells whether there was one.
    pub fn remove(&mut self, width: Micros, slot: Micros, count: i64) -> bool {
        let Ok(at) = self.find(width, slot) else { return false };
        let taken = count.min(self.cells[at].count);
        self.used -= taken;
        self.cells[at].count -= taken;
        if self.cells[at].count == 0 {
            self.cells.remove(at);
        }
        true
    }

    /// From the newest backwards: a slot is nearly always looked for at the end.
    fn find(&self, width: Micros, slot: Micros) -> Result<usize, usize> {
        let id = slot.div_euclid(width);
        let mut at = self.cells.len();
        while at > 0 {
            let other = self.cells[at - 1].latest.div_euclid(width);
            if other == id {
                return Ok(at - 1);
            }
            if other < id {
                break;
            }
            at -= 1;
        }
        Err(at)
    }
}
