use std::{fmt, sync::Arc};

/// The store did not answer, or not as it should. Never means "limited".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Of the call that failed, if it was one.
    provider: Option<Arc<str>>,
    unreachable: bool,
    message: String,
}

impl StoreError {
    #[cfg(feature = "redis")]
    /// No answer: refused, broken or slower than the timeout.
    #[doc(hidden)]
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self { provider: None, unreachable: true, message: message.into() }
    }

    /// An answer that is an error or makes no sense.
    pub(crate) fn answer(message: impl Into<String>) -> Self {
        Self { provider: None, unreachable: false, message: message.into() }
    }

    pub(crate) fn of(self, provider: &Arc<str>) -> Self {
        Self { provider: Some(provider.clone()), ..self }
    }

    pub(crate) fn provider(&self) -> &str {
        self.provider.as_deref().unwrap_or_default()
    }

    /// Whether there was no answer at all; otherwise the store answered with an error.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
