//! `--help`: named sections of flags, each flag at the start of a line, its type in Go's words.

use std::fmt::Write;

use clap::{Arg, Command};

/// Columns of a line of help.
pub(crate) const WIDTH: usize = 120;

/// The sections in the order in which they are printed.
const SECTIONS: [&str; 14] = [
    super::data_folder::SECTION,
    super::generic::SECTION,
    super::etcd::SECTION,
    super::secure_serving::SECTION,
    super::audit::SECTION,
    super::features::SECTION,
    super::authentication::SECTION,
    super::authorization::SECTION,
    super::api_enablement::SECTION,
    super::egress::SECTION,
    super::admission::SECTION,
    super::logs::SECTION,
    super::misc::SECTION,
    super::global::SECTION,
];

/// The whole help text of `command`.
pub fn render(command: &Command) -> String {
    let name = command.get_name();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!("{about}\n\nUsage:\n  {name} [flags]\n  {name} store --help\n  {name} crd --help\n");
    for section in SECTIONS {
        let arguments: Vec<&Arg> = command
            .get_arguments()
            .filter(|a| a.get_help_heading() == Some(section))
            .collect();
        if !arguments.is_empty() {
            write_section(&mut out, section, &arguments);
        }
    }
    out
}

fn write_section(out: &mut String, section: &str, arguments: &[&Arg]) {
    let mut rows: Vec<(String, String, String)> = arguments
        .iter()
        .map(|argument| {
            (
                argument.get_long().unwrap_or_default().to_owned(),
                left(argument),
                right(argument),
            )
        })
        .collect();
    rows.sort();
    let column = rows.iter().map(|(_, left, _)| left.len()).max().unwrap_or(0) + 3;
    let _ = write!(out, "\n{section}:\n\n");
    for (_, left, right) in rows {
        let _ = write!(out, "{left:column$}");
        write_wrapped(out, &right, column);
    }
}

/// `  -v, --v Level`, `      --etcd-servers strings`.
fn left(argument: &Arg) -> String {
    let long = argument.get_long().unwrap_or_default();
    let mut text = match argument.get_short() {
        Some(short) => format!("  -{short}, --{long}"),
        None => format!("      --{long}"),
    };
    let kind = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map(|name| name.as_str());
    if let Some(kind) = kind.filter(|kind| *kind != "bool") {
        let _ = write!(text, " {kind}");
    }
    text
}

fn right(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let kind = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map(|name| name.as_str());
    if let Some(default) = argument
        .get_default_values()
        .first()
        .map(|value| value.to_string_lossy())
    {
        let _ = match kind {
            Some("string") => write!(text, " (default {default:?})"),
            _ => write!(text, " (default {default})"),
        };
    }
    text
}

/// Writes words up to the width, further lines indented to the column that is reached.
pub(crate) fn write_wrapped(out: &mut String, text: &str, column: usize) {
    let mut at = column;
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 && at + 1 + word.len() > WIDTH {
            let _ = write!(out, "\n{:column$}", "");
            at = column;
        } else if index > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += word.len();
    }
    out.push('\n');
}
