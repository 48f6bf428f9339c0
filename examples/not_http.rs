//! Permits for something that is not HTTP: a job that a third party does for us, and allows so often.
//!
//! ```text
//! cargo run --example not_http
//! ```

use std::{error::Error, time::Duration};

use tokio::time::sleep;
use tollgate::{Provider, Tollgate};

/// Stands for a gRPC call, a mail, a row in somebody's spreadsheet.
async fn translate(page: u32) -> String {
    sleep(Duration::from_millis(20)).await;
    format!("page {page} translated")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Ten pages a second, in any second; a long document costs more than one.
    let tollgate =
        Tollgate::builder().provider(Provider::new("translator").limit("10/s".parse()?)).build()?;
    let translator = tollgate.provider("translator")?;

    for page in 1..=8 {
        let _permit = translator.acquire().await?;
        println!("{}", translate(page).await);
    }

    println!("\nSix pages at once, if they are ours within three seconds:");
    let permit = translator.acquire().cost("requests", 6).wait_at_most(Duration::from_secs(3)).await?;
    println!("waited {:?}, cost {}, {:?} left", permit.waited(), permit.cost("requests"), permit.remaining());

    println!("\nNow or not at all:");
    match translator.acquire().cost("requests", 6).or_reject().await {
        Ok(permit) => println!("{} permits", permit.cost("requests")),
        Err(refused) if refused.is_rejected() => println!("{refused}"),
        Err(other) => return Err(other.into()),
    }
    if let Err(never) = translator.acquire().cost("requests", 11).or_reject().await {
        println!("{never} (impossible: {})", never.is_impossible());
    }

    println!("\nA job that turned out not to be needed costs nothing:");
    translator.acquire().await?.give_back();
    for limit in translator.peek().await?.limits {
        println!("{}: {} left, the next in {:?}", limit.limit, limit.left, limit.next_free);
    }

    tollgate.shutdown().await;
    if let Err(closed) = translator.acquire().await {
        println!("\n{closed}");
    }
    Ok(())
}
