//! More or less is kept of a body than was asked for, or it is copied.

use allocation_counter::measure;
use bytes::Bytes;
use futures_util::stream;
use proptest::{collection::vec, prelude::*};
use reqwest::{Body, Response};

use super::{super::tail::Tail, End, Ends, Keep, watch};

const BODY: usize = 4 << 20;
/// What watching may take: under a hundredth of the body.
const LITTLE: u64 = (BODY / 100) as u64;

fn streamed(chunks: Vec<Bytes>) -> Response {
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
    http::Response::new(Body::wrap_stream(chunks)).into()
}

async fn read(mut response: Response) -> usize {
    let mut read = 0;
    while let Some(chunk) = response.chunk().await.expect("read") {
        read += chunk.len();
    }
    read
}

#[test]
fn a_large_body_is_copied() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let body = Bytes::from(vec![b'x'; BODY]);
    for (shown, keep) in [("64 KiB", Keep::Last(64 << 10)), ("nothing", Keep::Nothing)] {
        for size in [4096, 16 << 10, 1 << 20, BODY] {
            let chunks = (0..BODY).step_by(size).map(|at| body.slice(at..at + size)).collect();
            let response = streamed(chunks);
            let mut taken = 0;
            let used = measure(|| {
                let watched = watch(response, keep, |seen| assert_eq!(seen.end, End::Read));
                taken = runtime.block_on(read(watched));
            });
            assert_eq!(taken, BODY);
            assert!(used.bytes_total < LITTLE, "{shown} in chunks of {size}: {used:?}");
        }
    }
}

#[test]
fn small_chunks_hold_the_buffers_that_they_came_in() {
    const MOST: usize = 64 << 10;
    for size in [1, 100, 1000, 4095] {
        let mut tail = Tail::new(Keep::Last(MOST));
        let used = measure(|| {
            for _ in 0..4 * MOST / size {
                // As a connection reads them: at the front of a buffer that is large enough for more.
                tail.push(&Bytes::from(vec![b'x'; 8192]).slice(..size));
            }
        });
        // Half of a page may be left empty.
        assert!(used.bytes_current < 3 * MOST as i64, "{size}: {used:?}");
        assert_eq!(tail.join().len(), MOST);
    }
}

#[tokio::test]
async fn something_is_kept_that_nobody_wants() {
    let (response, ends) = Ends::watch(streamed(vec!["body".into()]), Keep::Nothing);
    assert_eq!(read(response).await, 4);
    let [ended] = &ends.all()[..] else { panic!("once") };
    assert!(ended.cut && ended.kept.is_empty());

    // All of an empty body is kept.
    let (response, ends) = Ends::watch(streamed(vec![]), Keep::Nothing);
    assert_eq!(read(response).await, 0);
    ends.check(End::Read, "");
}

proptest! {
    #[test]
    fn the_last_bytes_are_not_those_that_came_last(
        sizes in vec(prop_oneof![0_usize..20, 4000_usize..4200, 0_usize..20_000], 0..20),
        most in prop_oneof![0_usize..30, 4090_usize..4100, 0_usize..60_000],
    ) {
        let all: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
        let whole = Bytes::from(all.clone());
        let mut tail = Tail::new(Keep::Last(most));
        let mut end = 0;
        for size in sizes {
            tail.push(&whole.slice(end..end + size));
            end += size;
        }
        prop_assert_eq!(tail.is_cut(), all.len() > most);
        let last = &all[all.len().saturating_sub(most)..];
        prop_assert!(tail.join() == last);
        // What is joined stays.
        prop_assert!(tail.join() == last);
    }
}
