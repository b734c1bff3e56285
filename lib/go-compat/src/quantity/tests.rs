use proptest::prelude::*;

use super::Quantity;

fn parse(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn canonical_text_is_what_go_writes() {
    for (given, written) in [
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1500000000", "1500M"),
        ("1000Ki", "1000Ki"),
        ("0", "0"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1000e0", "1e3"),
        ("+5", "+5"),
        ("1.500", "1.500"),
        ("100E", "100E"),
        ("3000000000G", "3E"),
        ("00.513n", "1n"),
        ("+804.900065n", "805n"),
        ("-0122000105900.40Mi", "-127926383044617830400m"),
        ("830085001808900000.000400Ei", "9223372036854775807"),
        ("-7Ei", "-7Ei"),
        ("0.1Ki", "102400m"),
        ("05", "05"),
        ("1e1", "10"),
        ("8Ki", "8Ki"),
        ("1.", "1."),
    ] {
        assert_eq!(parse(given).canonical(), written, "{given}");
    }
}

#[test]
fn order_is_by_amount() {
    let ascending = [
        "-1Gi", "-1", "-1m", "0", "1n", "999m", "1", "1.5", "1k", "1Ki", "1M", "1Mi", "1e9", "1Gi", "1e40",
    ];
    for pair in ascending.windows(2) {
        assert!(parse(pair[0]) < parse(pair[1]), "{pair:?}");
    }
    for (a, b) in [
        ("1", "1000m"),
        ("1Ki", "1024"),
        ("0", "0Gi"),
        ("1e3", "1k"),
        ("-0", "0"),
    ] {
        assert_eq!(parse(a), parse(b));
    }
}

#[test]
fn rounding_to_milli_goes_up() {
    for (given, rounded) in [
        ("1u", "1m"),
        ("1.0001", "1001m"),
        ("-1u", "-1m"),
        ("5m", "5m"),
        ("1Gi", "1Gi"),
    ] {
        assert_eq!(parse(given).round_up_to_milli(), parse(rounded), "{given}");
    }
}

#[test]
fn finer_than_nano_rounds_up_and_binary_is_capped() {
    assert_eq!(parse("0.1n"), parse("1n"));
    assert_eq!(parse("1e-30"), parse("1n"));
    assert_eq!(parse("16Ei"), parse("9223372036854775807"));
}

#[test]
fn amounts_beyond_the_last_suffix_keep_their_size() {
    assert_eq!(parse("5000E").canonical(), "5e21");
    assert_eq!(parse("5e21").canonical(), "5e21");
}

#[test]
fn more_digits_than_we_compute_with_is_its_own_error() {
    let long = "1".repeat(39);
    assert_eq!(
        long.parse::<Quantity>(),
        Err(crate::Error::QuantityTooLong(long.clone()))
    );
}

#[test]
fn malformed_text_is_refused() {
    for bad in [
        "", "1KiB", "1 Gi", "one", "1.2.3", "1e", "--1", "1mm", "1e3.5", "0x10", "1_000",
    ] {
        assert!(bad.parse::<Quantity>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn canonical_text_means_the_same_amount(
        sign in "[-+]?", whole in "[0-9]{1,12}", fraction in "(\\.[0-9]{0,6})?",
        suffix in "(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e3|E-3|e7)",
    ) {
        let given = parse(&format!("{sign}{whole}{fraction}{suffix}"));
        let again = parse(&given.canonical());
        prop_assert_eq!(&again, &given);
        prop_assert_eq!(again.canonical(), given.canonical());
    }
}

#[test]
fn an_amount_in_thousandths_is_rounded_up() {
    for (given, thousandths) in [
        ("0", 0),
        ("1", 1000),
        ("250m", 250),
        ("1u", 1),
        ("-1u", -1),
        ("1.5Ki", 1_536_000),
        ("2e3", 2_000_000),
        ("110", 110_000),
    ] {
        assert_eq!(parse(given).thousandths(), thousandths, "{given}");
    }
}
