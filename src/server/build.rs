//! Generates the protobuf types of the OpenAPI documents, without protoc.

use std::error::Error;

#[allow(
    clippy::print_stdout,
    reason = "a build script speaks to cargo on its standard output"
)]
fn main() -> Result<(), Box<dyn Error>> {
    const FOLDER: &str = "openapi/protobuf";
    const FILES: [&str; 2] = ["v2.proto", "v3.proto"];
    for file in FILES {
        println!("cargo::rerun-if-changed={FOLDER}/{file}");
    }
    let files = protox::compile(FILES, [FOLDER])?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
