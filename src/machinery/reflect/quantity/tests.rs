use super::*;

/// Text, canonical form, and the same rounded up to thousandths.
const CASES: &[(&str, &str, &str)] = &[
    ("1000", "1k", "1k"),
    ("1010", "1010", "1010"),
    ("1100k", "1100k", "1100k"),
    ("2048", "2048", "2048"),
    ("2048Ki", "2Mi", "2Mi"),
    ("1000Mi", "1000Mi", "1000Mi"),
    ("8Ki", "8Ki", "8Ki"),
    ("1025Ki", "1025Ki", "1025Ki"),
    ("1e-3", "1e-3", "1e-3"),
    ("0.1", "100m", "100m"),
    ("00.5", "500m", "500m"),
    ("01", "01", "01"),
    ("+1", "+1", "+1"),
    ("1.", "1.", "1."),
    ("+.5", "500m", "500m"),
    (".", "0", "0"),
    ("+", "0", "0"),
    ("1.000", "1", "1"),
    ("1.500", "1.500", "1.500"),
    ("1000u", "1m", "1m"),
    ("1000n", "1u", "1m"),
    ("1u", "1u", "1m"),
    ("0.5n", "1n", "1m"),
    ("-0.5n", "-1n", "-1m"),
    ("1.5n", "2n", "1m"),
    ("1001m", "1001m", "1001m"),
    ("1.5Ki", "1536", "1536"),
    ("0.5Ki", "512", "512"),
    ("-0.5Ki", "-512", "-512"),
    ("0.1Ki", "102400m", "102400m"),
    ("1.2Mi", "1258291200m", "1258291200m"),
    ("-1.5Gi", "-1536Mi", "-1536Mi"),
    ("1.0Gi", "1Gi", "1Gi"),
    ("1Pi", "1Pi", "1Pi"),
    ("8Ei", "9223372036854775807", "9223372036854775807"),
    ("-9Ei", "-9223372036854775807", "-9223372036854775807"),
    ("9223372036854775808", "9223372036854775808", "9223372036854775808"),
    ("100000000000000000000", "100E", "100E"),
    (
        "123456789012345678901234567890",
        "123456789012345678901234567890",
        "123456789012345678901234567890",
    ),
    // Kubernetes prints "1" for these two, since it has no letter above E; here nothing is lost.
    ("1000E", "1000E", "1000E"),
    ("1000000000000000000000", "1000E", "1000E"),
    ("1e19", "10e18", "10e18"),
    ("1e+21", "1e+21", "1e+21"),
    ("1.5e3", "1500", "1500"),
    ("15e-1", "1500e-3", "1500e-3"),
    ("5E5", "500e3", "500e3"),
    ("1e-10", "1e-9", "1e-3"),
    ("1e-7", "100e-9", "1e-3"),
    ("1e999999999", "1e999999999", "1e999999999"),
    ("3.14159265358979", "3141592654n", "3142m"),
    ("123456789.987654321", "123456789.987654321", "123456789988m"),
    ("0.9999999999", "1", "1"),
    ("0m", "0", "0"),
    ("-0", "0", "0"),
    ("0Gi", "0", "0"),
    ("0e5", "0", "0"),
];

#[test]
fn canonical_forms() {
    for (input, canonical, rounded) in CASES {
        let mut q = Quantity::parse(input).unwrap();
        assert_eq!(q.as_str(), *canonical, "{input}");
        let again = Quantity::parse(canonical).unwrap();
        assert_eq!(again.as_str(), *canonical, "{input} read twice");
        assert_eq!(again, q);
        let exact = q.round_up(-3);
        assert_eq!((q.as_str(), exact), (*rounded, canonical == rounded), "{input} rounded");
    }
}

#[test]
fn refused() {
    let (format, suffix) = (QuantityError::Format, QuantityError::Suffix);
    for (input, want) in [
        ("", format),
        (" ", format),
        ("1kb", format),
        ("abc", format),
        ("1.2.3", format),
        ("1e3k", format),
        ("1 Gi", format),
        ("1é", format),
        ("1e", suffix),
        ("--1", suffix),
        ("1Em", suffix),
        ("1M5", suffix),
        ("1K", suffix),
        ("1e-", suffix),
        ("1e99999999999999999999", suffix),
    ] {
        assert_eq!(Quantity::parse(input).err(), Some(want), "{input:?}");
    }
}

#[test]
fn order_is_that_of_the_numbers() {
    let sorted = [
        "-1E",
        "-2",
        "-1500m",
        "0",
        "1n",
        "1m",
        "0.5",
        "1",
        "1024",
        "1Ki5",
        "1Mi",
        "1e999999999",
    ];
    let sorted: Vec<_> = sorted.iter().filter_map(|s| Quantity::parse(s).ok()).collect();
    assert_eq!(sorted.len(), 11);
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a} {b}");
        }
    }
    for (a, b) in [
        ("1000m", "1"),
        ("1Ki", "1024"),
        ("1e3", "1k"),
        ("-0", "0"),
        ("1.", "1"),
        ("0.5Gi", "512Mi"),
    ] {
        assert_eq!(Quantity::parse(a), Quantity::parse(b));
    }
}

#[test]
fn values_round_away_from_zero() {
    for (input, value, milli) in [
        ("100m", 1, 100),
        ("-1500m", -2, -1500),
        ("1Gi", 1 << 30, 1_073_741_824_000),
        ("2", 2, 2000),
        ("1n", 1, 1),
        ("9223372036854775807", i64::MAX, i64::MAX),
        ("-1e30", i64::MIN, i64::MIN),
        ("0", 0, 0),
    ] {
        let q = Quantity::parse(input).unwrap();
        assert_eq!((q.value(), q.milli_value()), (value, milli), "{input}");
    }
    assert_eq!(Quantity::from_int(5000).as_str(), "5k");
    assert_eq!(Quantity::from_int(i64::MIN).as_str(), "-9223372036854775808");
}

#[test]
fn json_takes_strings_and_numbers() {
    for (input, want) in [
        ("\"1 \"", Ok("1")),
        ("1.5", Ok("1500m")),
        ("1e21", Ok("1e21")),
        ("null", Ok("0")),
        ("true", Err(QuantityError::Format)),
        ("[]", Err(QuantityError::Format)),
        ("\"\"", Err(QuantityError::Format)),
    ] {
        let mut q = Quantity::default();
        let got = q.read_json(input.as_bytes()).map(|()| q.as_str().to_owned());
        assert_eq!(got, want.map(str::to_owned).map_err(|e| e.to_string()), "{input}");
    }
    let mut out = Vec::new();
    Quantity::default().write_json(&mut out);
    assert_eq!(out, b"\"0\"");
}

#[test]
fn sums_are_written_as_what_they_began_with() {
    let quantity = |text: &str| Quantity::parse(text).unwrap();
    for (a, b, sum, difference) in [
        ("1", "2", "3", "-1"),
        ("1500m", "500m", "2", "1"),
        ("999m", "1m", "1", "998m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("1Gi", "1M", "1074741824", "1072741824"),
        ("1M", "1Gi", "1074741824", "-1072741824"),
        ("-5", "7", "2", "-12"),
        ("7", "-5", "2", "12"),
        ("-5", "-7", "-12", "2"),
        ("1", "1", "2", "0"),
        (
            "1000000000000000000000",
            "1n",
            "1000000000000000000000000000001n",
            "999999999999999999999999999999n",
        ),
        ("1e3", "1", "1001", "999"),
        ("1E", "1e2147483647", "1e2147483647", "-1e2147483647"),
    ] {
        let (a, b) = (quantity(a), quantity(b));
        assert_eq!(a.plus(&b), quantity(sum), "{a} + {b}");
        assert_eq!(a.minus(&b), quantity(difference), "{a} - {b}");
        assert_eq!(a.plus(&b).minus(&b).plus(&b), a.plus(&b));
    }
    assert_eq!(quantity("1Gi").plus(&quantity("1Gi")).as_str(), "2Gi");
    assert_eq!(quantity("1Gi").plus(&quantity("512Mi")).as_str(), "1536Mi");
    assert_eq!(quantity("0").plus(&quantity("512Mi")).as_str(), "512Mi");
    assert_eq!(quantity("100m").plus(&quantity("900m")).as_str(), "1");
}

/// What is told by a look at the text is what the numbers say.
#[test]
fn usual_amounts_are_compared_as_all_others() {
    let numbers = ["0", "1", "7", "100", "1024", "1048576", "999999999", "1000000000"];
    let suffixes = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "u"];
    let all: Vec<Quantity> = numbers
        .iter()
        .flat_map(|number| suffixes.iter().map(move |suffix| format!("{number}{suffix}")))
        .map(|text| text.parse().unwrap())
        .collect();
    for a in &all {
        assert_eq!(a.milli_value(), a.scaled_value(-3), "{a}");
        assert_eq!(a.is_zero(), a.decimal().0.is_zero(), "{a}");
        for b in &all {
            assert_eq!(a.cmp(b), a.decimal().0.cmp(&b.decimal().0), "{a} {b}");
        }
    }
}
