//! Flags as `/flagz` shows them: every one by its name, with the value that it has.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command};

/// All flags of the command line, given or not.
pub(super) fn flags(command: &Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let named = command
        .get_arguments()
        .filter_map(|flag| Some((flag.get_long()?, flag)));
    named
        .map(|(name, flag)| (name.to_owned(), value(flag, matches)))
        .collect()
}

/// Lists stand in brackets, as Go writes them.
fn value(flag: &Arg, matches: &ArgMatches) -> String {
    let raw = matches.try_get_raw(flag.get_id().as_str()).ok().flatten();
    let texts: Vec<_> = raw.into_iter().flatten().map(|text| text.to_string_lossy()).collect();
    match flag.get_action() {
        ArgAction::Append => format!("[{}]", texts.join(",")),
        _ => texts.join(","),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Invocation, parse};

    #[test]
    fn every_flag_is_shown_with_its_value() {
        let arguments = ["--secure-port=7", "--api-audiences=a,b", "--anonymous-auth=false"].map(Into::into);
        let Invocation::Serve(options) = parse("keelson", "", arguments).unwrap() else {
            panic!("these arguments ask for a server");
        };
        let value = |name: &str| options.shown.get(name).map(String::as_str);
        assert_eq!(value("secure-port"), Some("7"));
        assert_eq!(value("api-audiences"), Some("[a,b]"));
        assert_eq!(value("anonymous-auth"), Some("false"));
        assert_eq!(value("audit-log-path"), Some(""));
        assert_eq!(value("nothing"), None);
    }
}
