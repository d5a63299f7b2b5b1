use super::*;

fn json_of(leaf: &dyn Leaf) -> String {
    let mut out = Vec::new();
    leaf.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

/// Beyond the years that have four digits, JSON shows the last moment of them, or the first: what it shows can be read.
#[test]
fn json_shows_times_that_can_be_read() {
    for (seconds, shown) in [
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "9999-12-31T23:59:59Z"),
        (1_001_790_000_000, "9999-12-31T23:59:59Z"),
        (i64::MAX, "9999-12-31T23:59:59Z"),
        (-62_167_219_200, "0000-01-01T00:00:00Z"),
        (-62_167_219_201, "0000-01-01T00:00:00Z"),
        (i64::MIN, "0000-01-01T00:00:00Z"),
    ] {
        let text = json_of(&Time::from_unix(seconds, 0));
        assert_eq!(text, format!("{shown:?}"));
        let micro = json_of(&MicroTime::from_unix(seconds, 0));
        assert_eq!(micro, format!("{:?}", shown.replace('Z', ".000000Z")));
        assert!(Time::default().read_json(text.as_bytes()).is_ok());
        assert!(MicroTime::default().read_json(micro.as_bytes()).is_ok());
    }
}

#[test]
fn time_texts() {
    let as_layout = |v: &str, rest: &str, element: &str| {
        Err(format!(
            "parsing time {v:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {rest:?} as {element:?}"
        ))
    };
    let fault = |v: &str, reason: &str| Err(format!("parsing time {v:?}: {reason}"));
    let cases = [
        ("2024-01-02T03:04:05Z", Ok("2024-01-02T03:04:05Z")),
        ("2024-01-02T03:04:05.123456789Z", Ok("2024-01-02T03:04:05Z")),
        ("2024-01-02T03:04:05,5Z", Ok("2024-01-02T03:04:05Z")),
        ("2024-01-02T3:04:05Z", Ok("2024-01-02T03:04:05Z")),
        ("2024-01-02T03:04:05+02:00", Ok("2024-01-02T01:04:05Z")),
        ("2024-01-02T03:04:05.9-07:30", Ok("2024-01-02T10:34:05Z")),
        ("2024-02-29T00:00:00+24:00", Ok("2024-02-28T00:00:00Z")),
        ("9999-12-31T23:59:59Z", Ok("9999-12-31T23:59:59Z")),
        ("9999-12-31T23:59:59-01:00", Ok("10000-01-01T00:59:59Z")),
        ("0000-01-01T00:00:00+01:00", Ok("-0001-12-31T23:00:00Z")),
    ];
    for (input, want) in cases {
        assert_eq!(Time::parse(input).map(|t| t.to_string()).as_deref(), want);
    }
    let refused = [
        (
            "2024-01-02t03:04:05z",
            as_layout("2024-01-02t03:04:05z", "t03:04:05z", "T"),
        ),
        ("2024-01-02", as_layout("2024-01-02", "", "T")),
        (
            "10000-01-01T00:00:00Z",
            as_layout("10000-01-01T00:00:00Z", "0-01-01T00:00:00Z", "-"),
        ),
        ("", as_layout("", "", "2006")),
        ("null", as_layout("null", "null", "2006")),
        (
            "2024-1-02T03:04:05Z",
            as_layout("2024-1-02T03:04:05Z", "1-02T03:04:05Z", "01"),
        ),
        ("2024-01-02T03:04:05", as_layout("2024-01-02T03:04:05", "", "Z07:00")),
        (
            "2024-01-02T03:04:05.Z",
            as_layout("2024-01-02T03:04:05.Z", ".Z", "Z07:00"),
        ),
        (
            "2024-02-30T00:00:00Z",
            fault("2024-02-30T00:00:00Z", "day out of range"),
        ),
        (
            "2024-13-30T00:00:00Z",
            fault("2024-13-30T00:00:00Z", "month out of range"),
        ),
        (
            "2024-01-02T24:00:00Z",
            fault("2024-01-02T24:00:00Z", "hour out of range"),
        ),
        (
            "2024-01-02T03:04:60Z",
            fault("2024-01-02T03:04:60Z", "second out of range"),
        ),
        (
            "2024-01-02T03:04:05+25:00",
            fault("2024-01-02T03:04:05+25:00", "time zone offset hour out of range"),
        ),
        (
            "2024-01-02T03:04:05Zx",
            fault("2024-01-02T03:04:05Zx", "extra text: \"x\""),
        ),
    ];
    for (input, want) in refused {
        assert_eq!(Time::parse(input).map_err(|error| error.to_string()), want);
    }
}

#[test]
fn micro_time_needs_six_decimals() {
    let text = "2024-01-02T03:04:05.123456Z";
    assert_eq!(MicroTime::parse(text).map(|t| t.to_string()), Ok(text.to_owned()));
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    for (input, rest, element) in [
        ("2024-01-02T03:04:05Z", "Z", ".000000"),
        ("2024-01-02T03:04:05.1Z", ".1Z", ".000000"),
        ("2024-01-02T03:04:05+02:00", "+02:00", ".000000"),
        ("2024-01-02T03:04:05.123456789Z", "789Z", "Z07:00"),
    ] {
        let want = format!("parsing time {input:?} as {layout:?}: cannot parse {rest:?} as {element:?}");
        assert_eq!(MicroTime::parse(input).unwrap_err().to_string(), want);
    }
}

#[test]
fn zero_time() {
    let mut time = Time::default();
    assert!(time.is_zero());
    assert_eq!(json_of(&time), "null");
    assert_eq!(json_of(&MicroTime::default()), "null");
    time.read_json(b"\"0001-01-01T00:00:00Z\"").unwrap();
    assert!(time.is_zero());
    let mut out = Vec::new();
    time.write_protobuf(&mut out);
    assert!(out.is_empty());
    time = Time::from_unix(5, 0);
    time.read_protobuf(&[]).unwrap();
    assert!(time.is_zero());
    // The start of 1970 is not the zero time.
    time.read_protobuf(&[8, 0, 16, 0]).unwrap();
    assert_eq!(time, Time::from_unix(0, 0));
}

#[test]
fn protobuf_precision() {
    let mut out = Vec::new();
    let time = Time::from_unix(1_700_000_000, 123_456_789);
    time.write_protobuf(&mut out);
    let mut back = Time::default();
    back.read_protobuf(&out).unwrap();
    assert_eq!(back, Time::from_unix(1_700_000_000, 0));

    out.clear();
    MicroTime(time).write_protobuf(&mut out);
    let mut back = MicroTime::default();
    back.read_protobuf(&out).unwrap();
    assert_eq!(back, MicroTime::from_unix(1_700_000_000, 123_456_000));
}

#[test]
fn arithmetic() {
    let start = Time::from_unix(100, 900_000_000);
    let end = start + Duration::from_nanos(200_000_000);
    assert_eq!(end, Time::from_unix(101, 100_000_000));
    assert_eq!(end - start, Duration::from_nanos(200_000_000));
    assert_eq!(start - end, Duration::from_nanos(-200_000_000));
    assert_eq!(end - Duration::from_nanos(200_000_000), start);
    assert_eq!(start - Time::default(), Duration::from_nanos(i64::MAX));
    assert!(start < end);
}

/// Nanoseconds and canonical text, or the error.
type Read = Result<(i64, &'static str), &'static str>;

#[test]
fn duration_texts() {
    let cases: &[(&str, Read)] = &[
        ("0", Ok((0, "0s"))),
        ("1h2m3.5s", Ok((3_723_500_000_000, "1h2m3.5s"))),
        ("-1.5h", Ok((-5_400_000_000_000, "-1h30m0s"))),
        ("1ns", Ok((1, "1ns"))),
        ("1500ns", Ok((1500, "1.5µs"))),
        ("1.5µs", Ok((1500, "1.5µs"))),
        ("1.5us", Ok((1500, "1.5µs"))),
        (".5ms", Ok((500_000, "500µs"))),
        ("90s", Ok((90_000_000_000, "1m30s"))),
        ("2562047h47m16.854775807s", Ok((i64::MAX, "2562047h47m16.854775807s"))),
        ("-2562047h47m16.854775808s", Ok((i64::MIN, "-2562047h47m16.854775808s"))),
        (
            "2562047h47m16.854775808s",
            Err("time: invalid duration \"2562047h47m16.854775808s\""),
        ),
        ("", Err("time: invalid duration \"\"")),
        ("-", Err("time: invalid duration \"-\"")),
        (".s", Err("time: invalid duration \".s\"")),
        ("3", Err("time: missing unit in duration \"3\"")),
        ("3d", Err("time: unknown unit \"d\" in duration \"3d\"")),
        (
            "99999999999999999999s",
            Err("time: invalid duration \"99999999999999999999s\""),
        ),
    ];
    for (input, want) in cases {
        let got = Duration::parse(input);
        match want {
            Ok((nanos, shown)) => {
                let got = got.unwrap();
                assert_eq!((got.as_nanos(), got.to_string().as_str()), (*nanos, *shown), "{input}");
                assert_eq!(json_of(&got), format!("\"{shown}\""));
            }
            Err(text) => assert_eq!(got.unwrap_err().to_string(), *text),
        }
    }
}
