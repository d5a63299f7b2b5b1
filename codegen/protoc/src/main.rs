//! The few command-line options of `protoc` that build scripts of prost and tonic use, on top of the pure-Rust
//! compiler protox: `-I DIR`, `-o FILE`, `--include_imports`, `--include_source_info`, `--version`, and the files.
//! Errors are lines for people.

use std::process::ExitCode;

/// Build scripts only want to know that proto3's `optional` is understood.
const VERSION: &str = "libprotoc 31.1";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("protoc: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: impl Iterator<Item = String>) -> Result<(), String> {
    let options = match Options::parse(args)? {
        Some(options) => options,
        None => {
            println!("{VERSION}");
            return Ok(());
        }
    };
    let out = options.out.ok_or("no -o FILE given")?;
    // protox::Error shows file, line and column in its Debug form only
    let mut compiler = protox::Compiler::new(options.includes).map_err(|error| format!("{error:?}"))?;
    compiler
        .include_imports(options.imports)
        .include_source_info(options.source_info);
    compiler
        .open_files(options.files)
        .map_err(|error| format!("{error:?}"))?;
    std::fs::write(&out, compiler.encode_file_descriptor_set()).map_err(|error| format!("{out}: {error}"))
}

#[derive(Default)]
struct Options {
    includes: Vec<String>,
    files: Vec<String>,
    out: Option<String>,
    imports: bool,
    source_info: bool,
}

impl Options {
    /// `None`: the version is asked for.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options::default();
        while let Some(arg) = args.next() {
            // `--name=value` and `-Ivalue` are one argument, `--name value` and `-I value` are two
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) if arg.starts_with("--") => (name, Some(value.to_owned())),
                _ if arg.len() > 2 && (arg.starts_with("-I") || arg.starts_with("-o")) => {
                    (&arg[..2], Some(arg[2..].to_owned()))
                }
                _ => (arg.as_str(), None),
            };
            let mut value = || {
                value
                    .clone()
                    .or_else(|| args.next())
                    .ok_or(format!("{name} needs a value"))
            };
            match name {
                "--version" => return Ok(None),
                "-I" | "--proto_path" => options.includes.push(value()?),
                "-o" | "--descriptor_set_out" => options.out = Some(value()?),
                "--include_imports" => options.imports = true,
                "--include_source_info" => options.source_info = true,
                // always understood
                "--experimental_allow_proto3_optional" => {}
                _ if name.starts_with('-') => return Err(format!("{name} is not supported")),
                _ => options.files.push(arg),
            }
        }
        Ok(Some(options))
    }
}
