//! Request discovery and the paging choice.

use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use super::kernel::{request, request_area, words};
use crate::protocol::{BASE_TAG, END_MARKER, Feature, START_MARKER};
use crate::requests::{PagingWish, RequestError, Requests, choose_levels};

fn discover(image: &[u8]) -> Result<Requests, RequestError> {
    Requests::discover(image, [(0, image.len())].into_iter())
}

#[test]
fn finds_what_is_between_the_markers() {
    let mut image = request(Feature::Rsdp, 0, &[]);
    image.extend(request_area(6, &[request(Feature::Hhdm, 3, &[])]));
    image.extend(request(Feature::Smbios, 0, &[]));
    let requests = discover(&image).unwrap();
    assert_eq!(requests.get(Feature::Rsdp), None);
    assert_eq!(requests.get(Feature::Smbios), None);
    assert_eq!(requests.get(Feature::Hhdm).unwrap().revision, 3);
}

#[test]
fn without_markers_everything_counts() {
    let mut image = words(&[BASE_TAG[0], BASE_TAG[1], 6]);
    image.extend(request(Feature::Rsdp, 0, &[]));
    assert!(discover(&image).unwrap().get(Feature::Rsdp).is_some());
}

#[test]
fn last_start_and_first_end_count() {
    let mut image = words(&START_MARKER);
    image.extend(request(Feature::Rsdp, 0, &[]));
    image.extend(request_area(6, &[request(Feature::Date, 0, &[])]));
    image.extend(request(Feature::Smbios, 0, &[]));
    image.extend(words(&END_MARKER));
    let requests = discover(&image).unwrap();
    assert!(requests.get(Feature::Rsdp).is_none() && requests.get(Feature::Smbios).is_none());
    assert!(requests.get(Feature::Date).is_some());
}

#[test]
fn refusals() {
    let mut image = words(&END_MARKER);
    image.extend(words(&START_MARKER));
    assert_eq!(discover(&image), Err(RequestError::Markers));
    assert_eq!(discover(&[0; 256]), Err(RequestError::NoBaseTag));
    for revision in [0, 5, 7, u64::MAX] {
        let image = request_area(revision, &[]);
        assert_eq!(discover(&image), Err(RequestError::BaseRevision(revision)));
    }
    let tag = words(&[BASE_TAG[0], BASE_TAG[1], 6]);
    assert_eq!(discover(&request_area(6, &[tag])), Err(RequestError::TwoBaseTags));
    let twice = vec![request(Feature::Date, 0, &[]), request(Feature::Date, 1, &[])];
    let id = Feature::Date.id();
    assert_eq!(discover(&request_area(6, &twice)), Err(RequestError::Duplicate(id)));
    let mut cut = words(&[BASE_TAG[0], BASE_TAG[1], 6]);
    cut.extend(request(Feature::StackSize, 0, &[]));
    assert_eq!(discover(&cut), Err(RequestError::Truncated(Feature::StackSize)));
    let mut cut = words(&[BASE_TAG[0], BASE_TAG[1], 6]);
    cut.extend(request(Feature::Modules, 1, &[0]));
    assert_eq!(discover(&cut), Err(RequestError::Truncated(Feature::Modules)));
}

#[test]
fn unknown_requests_are_kept_apart_and_counted() {
    let unknown = |n: u64| {
        let mut bytes = request(Feature::Date, 0, &[]);
        bytes[16..24].copy_from_slice(&n.to_le_bytes());
        bytes
    };
    let many: Vec<Vec<u8>> = (0..65).map(unknown).collect();
    assert!(discover(&request_area(6, &many[..64])).is_ok());
    assert_eq!(discover(&request_area(6, &many)), Err(RequestError::TooMany));
    assert!(matches!(
        discover(&request_area(6, &[unknown(5), unknown(5)])),
        Err(RequestError::Duplicate(_))
    ));
}

#[test]
fn only_aligned_words_count() {
    let mut image = vec![0u8; 4];
    image.extend(request_area(6, &[]));
    assert_eq!(discover(&image), Err(RequestError::NoBaseTag));
}

#[test]
fn paging_choices() {
    let wish = |mode, max, min| Some(PagingWish { mode, max, min });
    assert_eq!(choose_levels(None, true, None, None), Ok(4));
    assert_eq!(choose_levels(wish(1, 1, 0), true, None, None), Ok(5));
    assert_eq!(choose_levels(wish(1, 1, 0), false, None, None), Ok(4));
    assert_eq!(choose_levels(wish(0, 1, 0), true, None, None), Ok(4));
    assert_eq!(choose_levels(wish(1, 1, 0), true, Some(4), None), Ok(4));
    assert_eq!(choose_levels(wish(0, 1, 0), true, None, Some(5)), Ok(5));
    assert_eq!(
        choose_levels(wish(1, 1, 1), false, None, None),
        Err(RequestError::Paging { wanted: 5, available: 4 })
    );
    assert_eq!(
        choose_levels(wish(0, 0, 0), true, None, Some(5)),
        Err(RequestError::Paging { wanted: 5, available: 4 })
    );
    assert_eq!(
        choose_levels(wish(2, 3, 2), true, None, None),
        Err(RequestError::Paging { wanted: 6, available: 5 })
    );
    assert_eq!(
        choose_levels(wish(0, 1, 1), true, None, None),
        Err(RequestError::PagingOrder(0, 1, 1))
    );
    assert_eq!(
        choose_levels(wish(2, 1, 0), true, None, None),
        Err(RequestError::PagingOrder(2, 1, 0))
    );
}

proptest! {
    #[test]
    fn any_image_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let mut image = request_area(6, &[request(Feature::Mp, 0, &[0]), request(Feature::Modules, 1, &[0, 0])]);
        image.extend(bytes);
        let length = image.len();
        image.truncate(length - cut % length);
        let _ = discover(&image);
    }

    #[test]
    fn chosen_levels_satisfy_everyone(mode in 0u64..3, max in 0u64..3, min in 0u64..3, five in any::<bool>(), cmax in prop::option::of(4u8..6), cmin in prop::option::of(4u8..6)) {
        if let Ok(levels) = choose_levels(Some(PagingWish { mode, max, min }), five, cmax, cmin) {
            prop_assert!(u64::from(levels) >= min + 4 && u64::from(levels) <= max + 4);
            prop_assert!(five || levels == 4);
            prop_assert!(cmax.is_none_or(|c| levels <= c) && cmin.is_none_or(|c| levels >= c));
        }
    }
}
