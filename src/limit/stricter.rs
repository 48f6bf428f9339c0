//! Several limits of one name in one: what replicas that are configured differently keep to.

use super::{Limit, LimitError, Shape, WHOLE, grain};

impl Limit {
    /// What neither of the two exceeds. They have one name, and one grain.
    pub(crate) fn stricter(&self, other: &Limit) -> Limit {
        let max = self.max().min(other.max());
        let guard = self.guard().max(other.guard()).as_micros() as u64;
        let shape = match (&self.shape, &other.shape) {
            (Shape::Rolling { paced }, Shape::Rolling { paced: also }) => {
                Shape::Rolling { paced: *paced || *also }
            }
            (Shape::Bucket { .. }, Shape::Bucket { .. }) => {
                let bursts = [self, other].map(|limit| limit.shared_burst().unwrap_or(1));
                // Both fit their own counts, not each the other's.
                let most =
                    self.grain.saturating_mul(grain::largest_burst((max / self.grain).max(1), self.window));
                Shape::Bucket { burst: bursts[0].min(bursts[1]).min(most) }
            }
            (shape, _) => shape.clone(),
        };
        let window = self.window.max(other.window);
        let strict = Limit { max, window, shape, guard: Some(guard), share: WHOLE, ..self.clone() };
        // In the words of whoever said the same.
        let plain = Limit { guard: None, ..strict.clone() };
        [self, other, &plain].into_iter().find(|limit| limit.counts_like(&strict)).unwrap_or(&strict).clone()
    }

    /// Whether only the words are others.
    fn counts_like(&self, other: &Limit) -> bool {
        let numbers = |limit: &Limit| (limit.max(), limit.window, limit.kind(), limit.guard());
        numbers(self) == numbers(other)
    }

    /// The same limit as this one, counted as `other` is: in its grains.
    ///
    /// # Errors
    /// It cannot be counted in them.
    pub(crate) fn counted_as(self, other: &Limit) -> Result<Limit, LimitError> {
        let limit = Limit { grain: other.grain, ..self };
        let (max, burst) = limit.grains();
        let burst = burst.unwrap_or(1);
        let fits = max.min(burst) > 0
            && max.max(burst) <= grain::MOST
            && (!matches!(limit.shape, Shape::Bucket { .. })
                || burst <= grain::largest_burst(max, limit.window));
        if fits {
            return Ok(limit);
        }
        let problem =
            format!("it cannot be counted as {other} is: choose a number nearer to that, or a rounder one");
        Err(LimitError::limit(limit.to_string(), problem))
    }
}
