use super::*;
use cairn_extents::Config;

fn entry(lblk: u32, len: u32, status: Status) -> Extent {
    let map = ExtentMap::standalone(1, Config::new());
    let _ = map.insert(lblk, len, status).unwrap();
    map.containing(lblk).unwrap()
}

#[test]
fn entries_out_of_order_or_past_the_device_are_told() {
    let good = [
        entry(0, 8, Status::Written(92)),
        entry(8, 4, Status::Hole),
        entry(20, 4, Status::Delayed),
    ];
    assert_eq!(inside(&good, 100), Ok(()));
    let said = inside(&good, 99).unwrap_err();
    assert!(said.contains("92 of the device, which has 99"), "{said}");
    let said = inside(&[good[1], good[0]], 100).unwrap_err();
    assert!(
        said.contains("at 0 where the one before it ends at 12"),
        "{said}"
    );
}

#[test]
fn one_block_of_the_device_in_two_entries_is_told() {
    let one = entry(0, 8, Status::Written(40));
    let two = entry(64, 8, Status::Unwritten(48));
    assert_eq!(apart([one, two].iter()), Ok(()));
    let over = entry(64, 8, Status::Unwritten(47));
    let said = apart([over, one].iter()).unwrap_err();
    assert!(
        said.contains("block 47 ") && said.contains("at 0 and at 64"),
        "{said}"
    );
}

#[test]
fn a_reading_is_held_to_its_bound() {
    let read = |exact, approximate| Reading {
        exact,
        approximate,
        bound: 62,
    };
    assert_eq!(close("hits", read(1000, 938), read(1000, 1062), 0), Ok(()));
    // Between the two reports the counter grew.
    assert_eq!(close("hits", read(1000, 1500), read(2000, 950), 0), Ok(()));
    for (one, two) in [
        (read(1000, 1063), read(1000, 1000)),
        (read(1000, 1000), read(1000, 937)),
        (read(1000, 1000), read(999, 1000)),
    ] {
        let said = close("hits", one, two, 0).unwrap_err();
        assert!(said.contains("hits"), "{said}");
    }
    assert_eq!(close("hits", read(1000, 1063), read(1000, 1000), 1), Ok(()));
}

#[test]
fn the_first_fault_stays() {
    let mut check = Check::default();
    check.take(Ok(0));
    assert_eq!(check, Check::Nothing);
    check.take(Ok(5));
    check.take(Ok(0));
    assert_eq!(check, Check::Held(5));
    check.take(Err("one".to_owned()));
    check.take(Err("two".to_owned()));
    check.take(Ok(7));
    assert_eq!(check.broken(), Some("one"));
    let checks = Checks {
        sums: check,
        ..Checks::default()
    };
    assert_eq!(checks.broken(), Some(("sums", "one")));
}
