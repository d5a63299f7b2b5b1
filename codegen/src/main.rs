//! `keelson-codegen compare OLD NEW`: what objects stored by definitions in the folder OLD would not survive with those
//! in NEW. Says so on stderr and ends with status 1; notes on what changes otherwise go to stdout. `keelson-codegen
//! record FOLDER`: writes the records of stored fields as a build does.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: keelson-codegen compare OLD NEW   folders of definitions, before and after a change
       keelson-codegen record FOLDER     writes what a build would write beside the definitions";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let compared = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["compare", old, new] => keelson_codegen::compare(Path::new(old), Path::new(new)).map_err(|e| e.to_string()),
        ["record", folder] => keelson_codegen::record(Path::new(folder)).map_err(|e| e.to_string()),
        _ => Err(USAGE.to_owned()),
    };
    match compared {
        Ok(notes) => {
            let mut stdout = std::io::stdout().lock();
            let told = notes.iter().try_for_each(|note| writeln!(stdout, "{note}"));
            ExitCode::from(u8::from(told.is_err()))
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}
