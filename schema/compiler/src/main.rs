//! The Cap'n Proto compiler plugin: reads a code generator request and writes Rust modules.
//!
//! `capnp compile -o<this>:DIR` runs it with DIR as the working directory. For each requested
//! file `x.capnp` it writes
//!
//! - `x_capnp.rs`: the stock generator's code for the structs and enums ([`stock`]),
//! - `x.rs`: values, method table, client and server of its interface ([`emit`]),
//!
//! and once `modules.rs`, which declares them all, and `layout.txt`, the numbering and layout
//! of everything as text, for a golden test ([`layout`]).
//!
//! Decided in ADR 65.

mod emit;
mod layout;
mod model;
mod names;
mod stock;

use std::error::Error;
use std::io::Read;

fn main() {
    if let Err(error) = run() {
        eprintln!("schema compiler: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let stock_request = stock::without_interfaces(&request)?;
    let schema = model::Schema::read(&request, &stock_request)?;
    capnpc::codegen::CodeGenerationCommand::new()
        .output_directory(".")
        .run(stock_request.as_slice())?;
    for file in &schema.files {
        std::fs::write(format!("{}.rs", file.module), emit::file(&schema, file))?;
    }
    std::fs::write("modules.rs", emit::modules(&schema))?;
    std::fs::write("layout.txt", layout::describe(&request)?)?;
    Ok(())
}
