//! Reads a file of answers with what each of them means, and says where tollgate reads them otherwise.
//!
//! ```sh
//! cargo run --example headers                       # tests/cases/headers.json
//! cargo run --example headers -- more.json          # cases of your own, in the same form
//! cargo run --example headers -- more.json --all    # also those that agree
//! ```
//!
//! A case has an `id`, a `profile` (a preset of [`tollgate::Dialect`], else `unknown`), `status`, `headers`, perhaps a
//! `body`, `now`, and what is expected of it: `wait_ms`, `limit`, `remaining`, `reset_ms`. Those with `policy: true`
//! may be read otherwise with good reason. Ends with 1 if another differs.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Parser;
use serde_json::Value;

#[derive(Parser)]
struct Options {
    /// A JSON array of cases.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/headers.json"))]
    file: PathBuf,
    /// Also prints the cases that agree.
    #[arg(long)]
    all: bool,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&options.file)?)?;
    let (mut agree, mut choices, mut differ) = (0, 0, 0);
    for case in &cases {
        let got = tollgate::signal::run_case(&case.to_string());
        let got =
            got.map_or_else(|error| Value::from(format!("error: {error}")), |json| json.parse().unwrap());
        let fields = ["wait_ms", "limit", "remaining", "reset_ms"];
        let same = fields.iter().all(|field| got[field].as_f64() == case["expect"][field].as_f64())
            && got.is_object();
        let policy = case["policy"] == true;
        let word = match (same, policy) {
            (true, _) => "agrees",
            (false, true) => "differs, as it may",
            (false, false) => "DIFFERS",
        };
        match (same, policy) {
            (true, _) => agree += 1,
            (false, true) => choices += 1,
            (false, false) => differ += 1,
        }
        if options.all || !same {
            println!("{} {word}", case["id"].as_str().unwrap_or("?"));
            for field in fields {
                println!("    {field:<9} expected {:<16} got {}", case["expect"][field], got[field]);
            }
            if got.is_string() {
                println!("    {got}");
            }
        }
    }
    println!("{} cases: {agree} agree, {choices} differ as they may, {differ} differ", cases.len());
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
