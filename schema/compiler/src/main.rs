//! The Cap'n Proto compiler plugin: reads a code generator request and writes Rust modules.
//!
//! `capnp compile -o<this>:DIR` runs it with DIR as the working directory.

fn main() {
    let generated =
        capnpc::codegen::CodeGenerationCommand::new().output_directory(".").run(std::io::stdin());
    if let Err(error) = generated {
        eprintln!("schema compiler: {error}");
        std::process::exit(1);
    }
}
