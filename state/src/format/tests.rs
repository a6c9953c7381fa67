use super::*;
use crate::conformance::snapshot;

fn end() -> End {
    End { lsn: 12, chain: [0xab; 16], epoch: 2 }
}

fn encoded(serial: u64) -> (Header, Vec<u8>) {
    encode(&snapshot(serial), 3, end()).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_was_written_is_read() {
    for serial in 0..6 {
        let (header, bytes) = encoded(serial);
        let (read, back) = decode(&bytes).unwrap();
        assert_eq!((read, back), (header.clone(), snapshot(serial)));
        assert_eq!(peek(&bytes), Ok(header));
        assert_eq!(encoded(serial).1, bytes, "the same state has the same bytes");
    }
}

#[test]
fn the_first_line_says_what_it_is() {
    let (header, bytes) = encoded(0);
    let line = text(&bytes).lines().next().unwrap();
    let expected = format!(
        r#"{{"format":1,"engine":"{}","lineage":"lineage-1","serial":0,"epoch":3,"checkpoint":{{"lsn":12,"epoch":2,"chain":"abababababababababababababababab"}},"digest":"{}"}}"#,
        env!("CARGO_PKG_VERSION"),
        header.digest
    );
    assert_eq!(line, expected);
    assert_eq!(header.version(), Version(format!("0-{}", header.digest)));
    for line in text(&bytes).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (_, bytes) = encoded(2);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn every_cut_is_noticed_and_so_is_more() {
    let (_, bytes) = encoded(2);
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert_eq!(decode(&[&bytes[..], b"\n"].concat()), Err(Unreadable::Damaged));
}

#[test]
fn what_is_no_state_says_what_is_wrong() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(decode(bytes).unwrap_err().to_string(), expected);
    };
    check(b"", "it is empty");
    check(
        br#"{"format":2,"serial":7}"#,
        "it has format 2, and this version of Plumb reads formats up to 1",
    );
    check(
        b"{\n  \"format\": 18446744073709551615,\n  \"other\": []\n}\n",
        "it has format 18446744073709551615, and this version of Plumb reads formats up to 1",
    );
    for foreign in [&b"{}"[..], b"null", b"[1,2]\n", b"\0\0\0\0", b"\xff\xfe", b"{\"version\":4}\n"]
    {
        check(
            foreign,
            "it is not a state that Plumb wrote: its first line does not end with a digest",
        );
    }
    let (_, bytes) = encoded(1);
    let edited = text(&bytes).replacen("builtin", "bultiin", 1);
    check(edited.as_bytes(), "its digest is wrong: it was damaged, truncated or edited");
}

#[test]
fn values_that_could_not_be_read_back_are_not_written() {
    let mut deep = snapshot(1);
    let nested = (0..130).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    for entry in deep.entries.values_mut() {
        entry.current.as_mut().unwrap().attributes.json = engine::stored::from_json(&nested);
    }
    let error = encode(&deep, 1, end()).unwrap_err();
    assert_eq!(error.to_string(), "a value is nested deeper than 120 levels");
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, at in 0_usize..3000) {
        decode(&bytes).ok();
        let (_, mut state) = encoded(2);
        let at = at.min(state.len());
        state.splice(at..at, bytes.clone());
        proptest::prop_assert!(bytes.is_empty() || decode(&state).is_err());
    }

    #[test]
    fn floats_come_back_exactly(bits: u64) {
        let float = f64::from_bits(bits);
        proptest::prop_assume!(float.is_finite());
        let mut with = snapshot(1);
        for entry in with.entries.values_mut() {
            entry.current.as_mut().unwrap().attributes.json = engine::value::Value::Float(float);
        }
        let (_, bytes) = encode(&with, 1, end()).unwrap();
        proptest::prop_assert_eq!(decode(&bytes).unwrap().1, with);
    }
}
