//! Generates the protobuf types of the OpenAPI v2 document, without protoc.

use std::error::Error;

#[allow(
    clippy::print_stdout,
    reason = "a build script speaks to cargo on its standard output"
)]
fn main() -> Result<(), Box<dyn Error>> {
    const FILE: &str = "openapi/swagger.proto";
    println!("cargo::rerun-if-changed={FILE}");
    let files = protox::compile([FILE], ["openapi"])?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
