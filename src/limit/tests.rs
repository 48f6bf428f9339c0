//! What a limit must not accept, lose or get wrong.

mod calendar;
mod grains;
mod numbers;
mod refusals;
mod stricter;
mod text;

use super::Limit;

fn limit(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Limit>() {
        Ok(limit) => panic!("{text:?} was accepted as {limit}"),
        Err(error) => error.to_string(),
    }
}
