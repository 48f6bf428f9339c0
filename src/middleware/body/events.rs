//! Server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

use std::borrow::Cow;

/// The data of each event that has some, in order, its lines joined by newlines.
///
/// Of a stream whose beginning is `cut` off, the first line counts for nothing. An event that no empty line ends
/// counts if it is an object or a list: half of one is not JSON, while half of a number is another number.
pub fn data(stream: &[u8], cut: bool) -> Vec<Cow<'_, [u8]>> {
    let mut rest = match stream.strip_prefix("\u{feff}".as_bytes()) {
        _ if cut => next_line(stream).1,
        Some(marked) => marked,
        None => stream,
    };
    let (mut all, mut event) = (Vec::new(), None::<Cow<[u8]>>);
    while !rest.is_empty() {
        let line;
        (line, rest) = next_line(rest);
        if line.is_empty() {
            all.extend(event.take());
        } else if let Some(more) = data_in(line) {
            event = Some(match event {
                None => Cow::Borrowed(more),
                Some(lines) => {
                    let mut lines = lines.into_owned();
                    lines.push(b'\n');
                    lines.extend_from_slice(more);
                    lines.into()
                }
            });
        }
    }
    all.extend(event.filter(|event| event.starts_with(b"{") || event.starts_with(b"[")));
    all
}

/// A line, and what follows it. Lines end with a newline, a carriage return, or both.
fn next_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b"\r\n").or(rest.get(1..)).unwrap_or_default();
    (line, rest)
}

/// What a line adds to the data of its event: it may be of another field, or a comment.
fn data_in(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}
