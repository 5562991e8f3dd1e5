//! Bytes compare as the values do, delimit themselves, and are read back as the values.

use std::cmp::Ordering;
use std::fmt::Debug;

use alluvium_trace::typed::{Codec, OrderedFloat};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

fn encoded<C: Codec>(value: &C) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn encoded_last<C: Codec>(value: &C) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode_last(&mut bytes);
    bytes
}

/// The contract of `Codec`, for two values.
fn holds<C: Codec + Debug>(one: &C, other: &C) -> TestCaseResult {
    let (a, b) = (encoded(one), encoded(other));
    prop_assert_eq!(a.cmp(&b), one.cmp(other));
    prop_assert!(one == other || !a.starts_with(&b) && !b.starts_with(&a));
    let (last_a, last_b) = (encoded_last(one), encoded_last(other));
    prop_assert_eq!(last_a.cmp(&last_b), one.cmp(other));
    prop_assert_eq!(&C::decode_last(&last_a), one);
    let both = [a, b].concat();
    let mut rest = both.as_slice();
    prop_assert_eq!(&C::decode(&mut rest), one);
    prop_assert_eq!(&C::decode(&mut rest), other);
    prop_assert!(rest.is_empty());
    Ok(())
}

/// Checks the contract for pairs of any values, and of values that are alike.
fn check<C: Codec + Debug>(values: impl Strategy<Value = C> + Clone) {
    let pairs = (values.clone(), values);
    TestRunner::default().run(&pairs, |(one, other)| holds(&one, &other)).unwrap();
}

/// Strings of few characters, among them those with the smallest and the largest bytes.
fn text() -> impl Strategy<Value = String> + Clone {
    let character =
        prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('\u{ff}'), any::<char>()];
    prop::collection::vec(character, 0..4).prop_map(String::from_iter)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    let byte = prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()];
    prop::collection::vec(byte, 0..4)
}

fn double() -> impl Strategy<Value = OrderedFloat<f64>> + Clone {
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1.0];
    prop_oneof![prop::sample::select(special.to_vec()), prop::num::f64::ANY].prop_map(OrderedFloat)
}

fn float() -> impl Strategy<Value = OrderedFloat<f32>> + Clone {
    double().prop_map(|number| OrderedFloat(number.0 as f32))
}

/// Integers near the ends and zero as well as any.
macro_rules! integers {
    ($($integer:ty),*) => {$(
        let ends = [0, 1, <$integer>::MIN, <$integer>::MAX, <$integer>::MAX / 2];
        check(prop_oneof![prop::sample::select(ends.to_vec()), any::<$integer>()]);
    )*};
}

#[test]
fn integers_keep_their_order() {
    integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
    check(prop_oneof![Just(-1i64), Just(0), Just(1), Just(i64::MIN), Just(i64::MAX)]);
}

#[test]
fn floats_keep_their_total_order() {
    check(double());
    check(float());
}

#[test]
fn small_types_keep_their_order() {
    check(any::<bool>());
    check(prop_oneof![Just('\0'), Just(char::MAX), any::<char>()]);
    check(Just(()));
}

#[test]
fn strings_and_bytes_keep_their_order() {
    check(text());
    check(bytes());
}

#[test]
fn options_keep_their_order() {
    check(prop::option::of(any::<i8>()));
    check(prop::option::of(text()));
    check(prop::option::of(prop::option::of(prop::option::of(bytes()))));
}

#[test]
fn tuples_keep_their_order() {
    check((text(),));
    check((text(), 0u8..2));
    check((bytes(), bytes(), any::<bool>()));
    check((prop::option::of(text()), -1i16..2, prop::option::of(bytes())));
    check((0u8..2, 0u8..2, 0u8..2, bytes(), 0u8..2, text(), 0u8..2, double()));
    check((
        (0u8..2, 0u8..2, 0u8..2, text()),
        (float(), Just(()), 0u8..2),
        0i8..2,
        0u8..2,
        any::<char>(),
    ));
    check((0u8..2, 0u8..2, 0u8..2, 0u8..2, 0u8..2, text()));
    check((0u8..2, 0u8..2, 0u8..2, 0u8..2, 0u8..2, 0u8..2, text()));
}

#[test]
fn nested_tuples_of_strings_keep_their_order() {
    let pair = || (text(), bytes());
    check((pair(), prop::option::of(pair()), text()));
    check(((pair(), 0u8..2), ((bytes(), pair()), text())));
}

#[test]
fn a_string_ends_before_any_that_continues_it() {
    let pair = |text: &str| (text.to_owned(), 0xFFu8);
    for more in ["\0", "\0\0", "\0\u{ff}", "\u{1}", "\u{ff}"] {
        let (shorter, longer) = (pair("a"), pair(&format!("a{more}")));
        assert_eq!(encoded(&shorter).cmp(&encoded(&longer)), Ordering::Less, "{more:?}");
    }
    assert_eq!(encoded(&pair("a\0")), b"a\0\xFF\0\0\xFF");
}

#[test]
fn equal_floats_have_the_same_bytes() {
    let bytes = |number: f64| encoded(&OrderedFloat(number));
    assert_eq!(bytes(-0.0), bytes(0.0));
    assert_eq!(bytes(f64::NAN), bytes(-f64::NAN));
    assert!(bytes(f64::INFINITY) < bytes(f64::NAN));
    let zero = OrderedFloat::<f64>::decode(&mut bytes(-0.0).as_slice());
    assert!(zero.is_sign_positive());
}
