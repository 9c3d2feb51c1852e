//! Each request alone under the UEFI loader: long, because firmware starts anew each time.

mod common;

use common::*;
use std::fs;

#[test]
fn each_request_alone() {
    let image = fs::read(input("ISO")).unwrap();
    for (name, _) in REQUESTS {
        let mut image = image.clone();
        leave_alone(&mut image, name);
        let outcome = boot_uefi(name, &image, From::Cd, 2);
        check(name, &outcome, &expected_alone(name, From::Cd));
    }
}
