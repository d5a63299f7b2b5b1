//! Formats of texts and numbers: those that are checked, and those that are published alone.

const FORMATS: [&str; 49] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "dns-1035-label",
    "dns-label",
    "dns-subdomain",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int-or-string",
    "int32",
    "int64",
    "ip",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-cidr",
    "k8s-ip",
    "k8s-label-key",
    "k8s-label-value",
    "k8s-long-name",
    "k8s-path-segment-name",
    "k8s-short-name",
    "k8s-uuid",
    "label-key",
    "label-value",
    "mac",
    "password",
    "path-segment",
    "port",
    "qualified-name",
    "quantity",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "binary",
];

/// What to write instead of a format that is none.
pub fn unknown(format: &str) -> Option<String> {
    if format.is_empty() || FORMATS.contains(&format) {
        return None;
    }
    let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
    let near = FORMATS.iter().find(|known| plain(known) == plain(format));
    Some(match near {
        Some(near) => format!("{near:?}"),
        None => format!("one of {}", FORMATS.join(", ")),
    })
}
