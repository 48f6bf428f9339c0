//! The same limits without text. Each function checks, so that a `Limit` in hand is always a valid one.

use std::time::Duration;

use super::check::{LEASE, LEASES};
use super::{Counted, Limit, LimitError, Reset, Shape, WHOLE};

impl Limit {
    /// At most `max` units in any `window`: the text `100/min`. Paced once it is saturated; see
    /// [`Limit::unpaced`].
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15, or `window` is not 1 ms to 366 days in whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limit;
    ///
    /// let limit = Limit::rolling(17, Duration::from_secs(30))?;
    /// assert_eq!(limit, "17/30s".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn rolling(max: u64, window: Duration) -> Result<Limit, LimitError> {
        Limit::new(max, window, Shape::Rolling { paced: true })
    }

    /// [`Limit::rolling`] with a window of a second.
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// assert_eq!(tollgate::Limit::per_second(10)?.to_string(), "10/s");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn per_second(max: u64) -> Result<Limit, LimitError> {
        Limit::rolling(max, Duration::from_secs(1))
    }

    /// [`Limit::rolling`] with a window of a minute.
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// assert_eq!(tollgate::Limit::per_minute(100)?.to_string(), "100/min");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn per_minute(max: u64) -> Result<Limit, LimitError> {
        Limit::rolling(max, Duration::from_secs(60))
    }

    /// [`Limit::rolling`] with a window of an hour.
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// assert_eq!(tollgate::Limit::per_hour(5000)?.to_string(), "5000/h");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn per_hour(max: u64) -> Result<Limit, LimitError> {
        Limit::rolling(max, Duration::from_secs(3_600))
    }

    /// [`Limit::rolling`] with a window of 24 hours, wherever they begin. For a provider that starts afresh
    /// at midnight use [`Limit::calendar`].
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// assert_eq!(tollgate::Limit::per_day(10_000)?.to_string(), "10000/day");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn per_day(max: u64) -> Result<Limit, LimitError> {
        Limit::rolling(max, Duration::from_secs(86_400))
    }

    /// A token bucket that refills by `rate` units per `per` and holds `burst`: the text `10/s burst 20`.
    ///
    /// # Errors
    ///
    /// `rate` or `burst` is not 1 to 10^15, `per` is not 1 ms to 366 days in whole microseconds, or the burst does
    /// not fit: with `rate` per `per` reduced to q units per p microseconds, burst * p must not exceed 2^53. If
    /// `rate` or `burst` is above 90 000 000, this holds for their grains (see [`Limit`]), of which both must have
    /// at least 100.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limit;
    ///
    /// let limit = Limit::bucket(10, Duration::from_secs(1), 20)?;
    /// assert_eq!(limit, "10/s burst 20".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn bucket(rate: u64, per: Duration, burst: u64) -> Result<Limit, LimitError> {
        Limit::new(rate, per, Shape::Bucket { burst })
    }

    /// At most `max` units in each `window` counted from the epoch in UTC: the text `100/min aligned`.
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15, or `window` is not 1 ms to 366 days in whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limit;
    ///
    /// let limit = Limit::aligned(100, Duration::from_secs(60))?;
    /// assert_eq!(limit, "100/min aligned".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn aligned(max: u64, window: Duration) -> Result<Limit, LimitError> {
        Limit::new(max, window, Shape::Aligned)
    }

    /// At most `max` units between two resets: the text `10000/day resets 00:00 America/Los_Angeles`.
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// use tollgate::{Limit, Reset};
    ///
    /// let limit = Limit::calendar(10_000, Reset::daily(0, 0, "America/Los_Angeles")?)?;
    /// assert_eq!(limit, "10000/day resets 00:00 America/Los_Angeles".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn calendar(max: u64, reset: Reset) -> Result<Limit, LimitError> {
        Limit::new(max, Duration::from_micros(reset.nominal()), Shape::Calendar(reset))
    }

    /// At most `max` calls at once, each from when it is sent until the end of the answer's body: the text `20 in
    /// flight`. A process that dies keeps its places for 30 s; see [`Limit::with_lease`].
    ///
    /// # Errors
    ///
    /// `max` is not 1 to 10^15.
    ///
    /// ```
    /// assert_eq!(tollgate::Limit::in_flight(20)?, "20 in flight".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn in_flight(max: u64) -> Result<Limit, LimitError> {
        let limit = Limit::new(max, Duration::from_micros(LEASE), Shape::InFlight)?;
        Ok(Limit { counted: Counted::calls(), ..limit })
    }

    /// For how long a process that has died keeps its places in flight: the text `20 in flight lease 10s`. It is
    /// renewed three times as often, also for calls that last longer. A second call replaces the first.
    ///
    /// # Errors
    ///
    /// The limit is not one of calls in flight, or `lease` is not 1 s to 1 h in whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let limit = tollgate::Limit::in_flight(20)?.with_lease(Duration::from_secs(10))?;
    /// assert_eq!(limit, "20 in flight lease 10s".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use = "this returns the changed limit"]
    pub fn with_lease(self, lease: Duration) -> Result<Limit, LimitError> {
        match (&self.shape, micros(lease)) {
            (Shape::InFlight, Some(window)) => Limit { window, ..self }.checked(),
            (Shape::InFlight, None) => Err(self.refused(&format!("lease {lease:?}"), LEASES)),
            _ => Err(self.refused(&format!("lease {lease:?}"), "only calls in flight have a lease")),
        }
    }

    /// Counts `unit` instead of requests: the text `200000 tokens/min`. A second call replaces the first, and
    /// `requests` is the default again. Any case; what a unit may be is told at [`Limit`].
    ///
    /// # Errors
    ///
    /// `unit` is not a word of ASCII letters, digits and underscores that begins with a letter, is longer than
    /// 32, or means something else in the text of a limit; or the limit counts calls in flight.
    ///
    /// ```
    /// let limit = tollgate::Limit::per_minute(200_000)?.with_unit("tokens")?;
    /// assert_eq!(limit, "200000 tokens/min".parse()?);
    /// assert_eq!(limit.unit(), "tokens");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use = "this returns the changed limit"]
    pub fn with_unit(self, unit: &str) -> Result<Limit, LimitError> {
        if self.shape == Shape::InFlight {
            return Err(self.refused(unit, "calls in flight count calls and no other unit"));
        }
        match Counted::read(unit) {
            Ok(counted) => Ok(Limit { counted, ..self }),
            Err(problem) => {
                let shown = Limit { counted: Counted::unchecked(unit), ..self };
                Err(LimitError::limit(shown.to_string(), problem))
            }
        }
    }

    /// Spends a saturated window in one burst instead of spreading it out: the text `100/min unpaced`. Any
    /// window still holds at most `max`. The default is paced.
    ///
    /// # Errors
    ///
    /// The limit is not a rolling one.
    ///
    /// ```
    /// let limit = tollgate::Limit::per_minute(100)?.unpaced()?;
    /// assert_eq!(limit, "100/min unpaced".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use = "this returns the changed limit"]
    pub fn unpaced(self) -> Result<Limit, LimitError> {
        match self.shape {
            Shape::Rolling { .. } => Ok(Limit { shape: Shape::Rolling { paced: false }, ..self }),
            _ => {
                Err(self
                    .refused("unpaced", r#"only a rolling window can be unpaced, e.g. "100/min unpaced""#))
            }
        }
    }

    /// Stretches each window by `guard`, for late sends and jitter on the wire: the text `100/min guard
    /// 10ms`. Zero is allowed. A second call replaces the first. The default is told at [`Limit::guard`].
    ///
    /// # Errors
    ///
    /// `guard` is not shorter than the window, longer than an hour, or not in whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let limit = tollgate::Limit::per_minute(100)?.with_guard(Duration::from_millis(10))?;
    /// assert_eq!(limit, "100/min guard 10ms".parse()?);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use = "this returns the changed limit"]
    pub fn with_guard(self, guard: Duration) -> Result<Limit, LimitError> {
        match micros(guard) {
            Some(micros) => Limit { guard: Some(micros), ..self }.checked(),
            None => Err(self.refused(&format!("guard {guard:?}"), "the guard must be in whole microseconds")),
        }
    }

    /// Uses only a part of a key that others hold too: `0.8` is the text `100/min share 80%`. Of a bucket the
    /// burst shrinks as well. A second call replaces the first. The default is all of it.
    ///
    /// Kept in parts of 10 000, rounded down: six holders of a sixth each must not add up to more than the
    /// whole. What is left of the count is rounded down too, and of a burst to no less than 1.
    ///
    /// # Errors
    ///
    /// `share` is not a number, below 0.0001 or above 1, or it leaves less than one unit per window.
    ///
    /// ```
    /// let limit = tollgate::Limit::per_minute(100)?.use_share(0.8)?;
    /// assert_eq!(limit, "100/min share 80%".parse()?);
    /// assert_eq!(limit.max(), 80);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use = "this returns the changed limit"]
    pub fn use_share(self, share: f64) -> Result<Limit, LimitError> {
        // The little more makes up for decimals that a double cannot hold: 0.57 * 10 000 is 5699.999... A
        // cast of what is not a number is 0.
        let parts = (share * WHOLE as f64 + 1e-6) as u64;
        if share > 1.0 || !(1..=WHOLE).contains(&parts) {
            return Err(
                self.refused(&format!("share {share}"), "the share must be from 0.0001 to 1, e.g. 0.8")
            );
        }
        Limit { share: parts, ..self }.checked()
    }

    fn new(max: u64, window: Duration, shape: Shape) -> Result<Limit, LimitError> {
        let limit = |window| Limit {
            max,
            window,
            shape,
            guard: None,
            share: WHOLE,
            counted: Counted::default(),
            grain: 1,
        };
        match micros(window) {
            Some(window) => limit(window).checked(),
            None => Err(LimitError::limit(
                format!("{max}/{window:?}"),
                "the window must be from 1 ms to 366 days in whole microseconds".to_owned(),
            )),
        }
    }

    fn refused(&self, modifier: &str, problem: &str) -> LimitError {
        LimitError::limit(format!("{self} {modifier}"), problem.to_owned())
    }
}

/// Whole microseconds, else nothing.
fn micros(duration: Duration) -> Option<u64> {
    let whole = duration.subsec_nanos().is_multiple_of(1_000);
    whole.then(|| u64::try_from(duration.as_micros()).ok())?
}
