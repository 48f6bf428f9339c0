//! How many loops of a replica ask with which priority.

use tollgate::Priority;

pub const CLASSES: usize = 3;
pub const NAMES: [&str; CLASSES] = ["high", "normal", "low"];
/// The place of those who think between their calls.
pub const HIGH: usize = 0;

/// Loops of each priority, in the order of [`NAMES`].
pub type Tasks = [u32; CLASSES];

/// For one replica, or for all that no other mix is for.
#[derive(Clone, Debug)]
pub struct Mix {
    pub replica: Option<u32>,
    pub tasks: Tasks,
}

pub fn priority(class: usize) -> Priority {
    [Priority::High, Priority::Normal, Priority::Low][class]
}

/// Such as `high=1,low=50`, and `3:high=1` for the replica 3 alone.
pub fn parse(text: &str) -> Result<Mix, String> {
    let expected =
        || format!("expected e.g. high=1,low=50 or, for replica 3 alone, 3:high=1, not \"{text}\"");
    let (replica, parts) = match text.split_once(':') {
        Some((replica, parts)) => (Some(replica.parse().map_err(|_| expected())?), parts),
        None => (None, text),
    };
    let mut tasks = Tasks::default();
    for part in parts.split(',') {
        let (name, count) = part.split_once('=').ok_or_else(expected)?;
        let class = NAMES.iter().position(|known| *known == name.trim()).ok_or_else(expected)?;
        tasks[class] = count.trim().parse().ok().filter(|count| *count < 10_000).ok_or_else(expected)?;
    }
    if tasks.iter().sum::<u32>() == 0 { Err(expected()) } else { Ok(Mix { replica, tasks }) }
}
