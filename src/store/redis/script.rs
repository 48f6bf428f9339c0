//! The scripts: constant text, so that one SHA stands for them in every process.

use std::sync::OnceLock;

/// Files of `lua/` as one text, in the order of their use.
macro_rules! script {
    ($($file:literal),+ $(,)?) => {
        concat!($(include_str!(concat!("../../../lua/", $file, ".lua")), "\n"),+)
    };
}

/// The same behind all that is known about limits.
macro_rules! with_limits {
    ($($file:literal),+ $(,)?) => {
        script!(
            "lib/args",
            "lib/keys",
            "lib/stored",
            "lib/cells",
            "lib/rolling",
            "lib/rolling_slots",
            "lib/token_bucket",
            "lib/token_bucket_slots",
            "lib/calendar",
            "lib/calendar_slots",
            "lib/flight",
            "lib/flight_places",
            "lib/control",
            "lib/pauses",
            "lib/accord",
            "lib/limits",
            $($file),+
        )
    };
}

pub(super) static BOOK: Script = Script::new(with_limits!(
    "lib/bell",
    "lib/crowd",
    "lib/told",
    "lib/places",
    "lib/desk",
    "lib/far",
    "lib/round",
    "lib/answer",
    "book"
));
pub(super) static PAUSE: Script =
    Script::new(script!("lib/args", "lib/keys", "lib/bell", "lib/control", "lib/pauses", "pause"));
pub(super) static LIMIT: Script =
    Script::new(script!("lib/args", "lib/keys", "lib/bell", "lib/control", "lib/accord", "limit"));
pub(super) static PEEK: Script = Script::new(with_limits!("peek"));

/// A text, and the SHA by which Redis knows it.
pub(super) struct Script {
    text: &'static str,
    sha: OnceLock<String>,
}

impl Script {
    const fn new(text: &'static str) -> Self {
        Self { text, sha: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn sha(&self) -> &str {
        self.sha.get_or_init(|| ::redis::Script::new(self.text).get_hash().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// During a rolling deploy old and new scripts decide side by side, on the same keys. Whoever changes one
    /// says here that they may; else the layout in the keys needs a new version.
    #[test]
    fn a_changed_script_is_a_decision() {
        let pinned = [(&BOOK, "book"), (&PAUSE, "pause"), (&LIMIT, "limit"), (&PEEK, "peek")];
        let shas: Vec<_> = pinned.iter().map(|(script, name)| format!("{name} {}", script.sha())).collect();
        let pins = [
            "book 836cfe89b4352f0cb5392a2774aab44d3f8ecb99",
            "pause ece6285f58dff5d3f88a17eabadd345dc338c115",
            "limit a304ed3a09c7789c0080f26f7594541f579585e4",
            "peek 301274dd41d102bdb0d8c068e1b2eda9d757c0e1",
        ];
        assert_eq!(shas, pins);
    }
}
