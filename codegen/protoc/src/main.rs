//! The few command-line options of `protoc` that build scripts of prost and tonic use, on top of the pure-Rust
//! compiler protox: `-I DIR`, `-o FILE`, `--include_imports`, `--include_source_info`, `--version`, and the files.

use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("protoc: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut includes, mut files, mut out) = (Vec::new(), Vec::new(), None);
    let (mut imports, mut source_info) = (false, false);
    while let Some(arg) = args.next() {
        let mut value = |name: &str| args.next().ok_or(format!("{name} needs a value"));
        match arg.as_str() {
            "--version" => {
                println!("libprotoc 31.1");
                return Ok(());
            }
            "-I" | "--proto_path" => includes.push(value(&arg)?),
            "-o" | "--descriptor_set_out" => out = Some(value(&arg)?),
            "--include_imports" => imports = true,
            "--include_source_info" => source_info = true,
            "--experimental_allow_proto3_optional" => {}
            other => match other.strip_prefix("-I").or_else(|| other.strip_prefix("--proto_path=")) {
                Some(dir) => includes.push(dir.to_owned()),
                None if other.starts_with('-') => return Err(format!("unknown option {other}")),
                None => files.push(other.to_owned()),
            },
        }
    }
    let out = out.ok_or("no -o FILE given")?;
    let mut compiler = protox::Compiler::new(includes).map_err(|e| e.to_string())?;
    compiler.include_imports(imports).include_source_info(source_info);
    compiler.open_files(files).map_err(|e| e.to_string())?;
    std::fs::write(&out, compiler.encode_file_descriptor_set()).map_err(|e| format!("{out}: {e}"))
}
