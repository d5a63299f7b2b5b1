//! Help of `store`: of all commands, and of each one with its flags.

use std::fmt::Write;

use crate::help::write_wrapped;

/// A command: its name, its arguments, what it does, and which flags it takes beside `--data-dir`.
struct Command {
    name: &'static str,
    arguments: &'static str,
    text: &'static str,
    flags: &'static [&'static str],
}

const COMMANDS: [Command; 8] = [
    Command {
        name: "check",
        arguments: " [FILE]",
        text: "Reads everything, of the store or of a snapshot, and compares it with its checksums; of the store, every \
               object of this program's kinds is decoded. Says how large the files are, and how much of them is in \
               reserve or free.",
        flags: &["--etcd-prefix"],
    },
    Command {
        name: "migrate",
        arguments: "",
        text: "Writes every object of this program's kinds as it is stored today, where it is stored otherwise: in \
               another version, in another form. It can be interrupted and begun again.",
        flags: &["--etcd-prefix"],
    },
    Command {
        name: "repair",
        arguments: "",
        text: "Mends what only proves that nothing is missing, where everything is there; says what it did, and keeps \
               the files as they were in a folder beside them.",
        flags: &["--accept-loss"],
    },
    Command {
        name: "compact",
        arguments: "",
        text: "Forgets history and gives unused space back.",
        flags: &[],
    },
    Command {
        name: "snapshot",
        arguments: " FILE",
        text: "Copies the store into a new file.",
        flags: &[],
    },
    Command {
        name: "restore",
        arguments: " FILE",
        text: "Makes the store of a folder that has none from a snapshot. With --overwrite it takes the place of a store \
               that is there, damaged or not, whose files are kept in a folder beside the new one.",
        flags: &["--overwrite", "--force"],
    },
    Command {
        name: "import",
        arguments: " --from URL",
        text: "Makes the store from what etcd holds; with its revisions, so that objects keep their resource versions. \
               Instead of a URL (or several, with commas between) it takes the file of a snapshot made by etcdctl \
               snapshot save. Keys and values are carried byte by byte, encrypted or not. Stop the servers that write \
               to etcd before.",
        flags: &[
            "--from",
            "--overwrite",
            "--etcd-prefix",
            "--etcd-cafile",
            "--etcd-certfile",
            "--etcd-keyfile",
        ],
    },
    Command {
        name: "export",
        arguments: " --to URL",
        text: "Puts everything that the store holds into etcd, byte by byte, encrypted or not.",
        flags: &[
            "--to",
            "--overwrite",
            "--etcd-prefix",
            "--etcd-cafile",
            "--etcd-certfile",
            "--etcd-keyfile",
        ],
    },
];

const FLAGS: [(&str, &str, &str); 10] = [
    ("--data-dir", " string", "The data folder."),
    (
        "--from",
        " string",
        "Where to read: URLs of etcd, or the file of a snapshot of it.",
    ),
    ("--to", " string", "Where to write: URLs of etcd."),
    (
        "--overwrite",
        "",
        "The target may hold keys: a store is replaced, in etcd the same keys are overwritten.",
    ),
    ("--force", "", "The same as --overwrite."),
    ("--accept-loss", "", "What is missing is given up; each key is named."),
    ("--etcd-prefix", " string", "What keys begin with. Default: /registry."),
    (
        "--etcd-cafile",
        " string",
        "A PEM file of the authorities that etcd's certificates are checked against.",
    ),
    (
        "--etcd-certfile",
        " string",
        "A PEM file of the client certificate shown to etcd.",
    ),
    ("--etcd-keyfile", " string", "A PEM file of that certificate's key."),
];

/// Of the command, or without one of all.
pub(super) fn text(program: &str, command: Option<&str>) -> String {
    let mut out = String::new();
    match COMMANDS.iter().find(|known| Some(known.name) == command) {
        Some(command) => one(&mut out, program, command),
        None => all(&mut out, program),
    }
    out
}

fn one(out: &mut String, program: &str, command: &Command) {
    write_wrapped(out, command.text, 0);
    let _ = write!(
        out,
        "\nUsage:\n  {program} store {}{} [flags]\n\n",
        command.name, command.arguments
    );
    for flag in FLAGS {
        if flag.0 == "--data-dir" || command.flags.contains(&flag.0) {
            let _ = write!(out, "{:27}", format!("  {}{}", flag.0, flag.1));
            write_wrapped(out, flag.2, 27);
        }
    }
}

fn all(out: &mut String, program: &str) {
    out.push_str("Works on the embedded store of a data folder that no server uses at the moment.\n\nUsage:\n");
    let usage = |command: &Command| format!("  {program} store {}{}", command.name, command.arguments);
    let column = COMMANDS.iter().map(|command| usage(command).len()).max().unwrap_or(0) + 3;
    for command in &COMMANDS {
        let _ = write!(out, "{:column$}", usage(command));
        write_wrapped(out, command.text, column);
    }
    let _ = write!(
        out,
        "\nEach has --data-dir, and flags of its own: {program} store COMMAND --help\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::WIDTH;

    #[test]
    fn each_command_has_a_page_with_its_flags() {
        let page = text("keelson", Some("restore"));
        assert!(page.contains("\n  keelson store restore FILE [flags]\n"), "{page}");
        assert!(
            page.contains("--data-dir string") && page.contains("\n  --overwrite"),
            "{page}"
        );
        assert!(
            !page.contains("--etcd") && !page.contains("--accept-loss") && !page.contains("import"),
            "{page}"
        );
        let all = text("keelson", None);
        for command in &COMMANDS {
            assert!(all.contains(&format!("keelson store {}", command.name)), "{all}");
            for flag in command.flags {
                assert!(FLAGS.iter().any(|(name, ..)| name == flag), "{flag}");
            }
        }
        for line in all.lines().chain(page.lines()) {
            assert!(line.len() <= WIDTH, "{line}");
        }
    }
}
