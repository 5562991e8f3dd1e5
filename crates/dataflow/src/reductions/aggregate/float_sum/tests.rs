//! Sums against the processor, against fixed point, and against themselves.

use proptest::prelude::*;

use super::*;

fn sum(terms: &[f64]) -> FloatSum {
    let mut sum = FloatSum::new();
    terms.iter().for_each(|&x| sum.add(x, 1));
    sum
}

fn encoded(sum: &FloatSum) -> Vec<u8> {
    let mut bytes = Vec::new();
    sum.encode_into(&mut bytes);
    bytes
}

fn decoded(bytes: &[u8]) -> FloatSum {
    let mut sum = FloatSum::new();
    sum.add(f64::NAN, 3);
    let mut rest = bytes;
    sum.decode_from(&mut rest).unwrap();
    assert!(rest.is_empty());
    sum
}

#[test]
fn sums_that_lose_their_way_in_floats_are_exact() {
    let least = f64::from_bits(1);
    for (terms, expected) in [
        (&[1e308, 1e308, -1e308][..], 1e308),
        (&[1e16, 1.0, -1e16], 1.0),
        (&[f64::MAX, f64::MAX], f64::INFINITY),
        (&[f64::MAX, f64::MAX, -f64::MAX, -f64::MAX], 0.0),
        (&[f64::MAX, least], f64::MAX),
        (&[least, least], f64::from_bits(2)),
        (&[f64::MIN_POSITIVE, -least], f64::from_bits((1 << 52) - 1)),
        (&[1e308, least, -1e308], least),
        (&[0.1; 10], 1.0),
        (&[f64::from(0.1_f32), f64::from(-0.1_f32), 2.5], 2.5),
        (&[], 0.0),
        (&[-0.0, -0.0], 0.0),
    ] {
        assert_eq!(sum(terms).value().to_bits(), f64::to_bits(expected), "{terms:?}");
    }
}

#[test]
fn ties_go_to_even_and_anything_more_goes_up() {
    let one = 9_007_199_254_740_992.0; // 2^53, above which floats are two apart
    assert_eq!(sum(&[one, 1.0]).value(), one);
    assert_eq!(sum(&[one, 2.0, 1.0]).value(), one + 4.0);
    assert_eq!(sum(&[one, 1.0, 1e-300]).value(), one + 2.0);
    assert_eq!(sum(&[one, 1.0, -1e-300]).value(), one);
    assert_eq!(sum(&[-one, -1.0, -1e-300]).value(), -one - 2.0);
    let half_step = 2_f64.powi(970);
    assert_eq!(sum(&[f64::MAX, half_step]).value(), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, half_step, -1.0]).value(), f64::MAX);
}

#[test]
fn infinities_and_nan_decide_until_they_are_taken_away() {
    let mut sum = sum(&[1.5, f64::INFINITY]);
    assert_eq!(sum.value(), f64::INFINITY);
    sum.add(f64::NEG_INFINITY, 2);
    assert!(sum.value().is_nan() && sum.mean(4).is_nan());
    assert_eq!(decoded(&encoded(&sum)), sum);
    sum.add(f64::INFINITY, -1);
    assert_eq!(sum.mean(3), f64::NEG_INFINITY);
    sum.add(f64::NEG_INFINITY, -2);
    sum.add(f64::NAN, 1);
    assert!(sum.value().is_nan());
    sum.add(f64::from_bits(f64::NAN.to_bits() | 1), -1);
    assert_eq!(sum.value(), 1.5);
    assert_eq!(encoded(&sum), encoded(&super::tests::sum(&[1.5])));
}

#[test]
fn means_are_rounded_once() {
    assert_eq!(sum(&[f64::MAX, f64::MAX, f64::MAX]).mean(3), f64::MAX);
    assert_eq!(sum(&[1.0]).mean(3), 1.0 / 3.0);
    assert_eq!(sum(&[-2.0, -5.0]).mean(2), -3.5);
    let least = f64::from_bits(1);
    assert_eq!(sum(&[least]).mean(2).to_bits(), 0, "a tie goes to even");
    assert_eq!(sum(&[least; 3]).mean(2).to_bits(), 2);
    assert_eq!(sum(&[least; 5]).mean(3).to_bits(), 2);
    assert_eq!(sum(&[least; 4]).mean(3).to_bits(), 1);
    assert!(sum(&[1.0]).mean(0).is_nan());
}

#[test]
fn the_widest_weights_and_floats_fit() {
    let mut sum = FloatSum::new();
    for _ in 0..3 {
        sum.add(f64::MAX, i64::MAX);
        sum.add(f64::MAX, i64::MAX);
    }
    assert_eq!(sum.value(), f64::INFINITY);
    for _ in 0..6 {
        sum.add(-f64::MAX, i64::MAX);
    }
    assert_eq!(sum, FloatSum::new());
    sum.add(-1.0, i64::MIN);
    assert_eq!(sum.value(), 9_223_372_036_854_775_808.0);
}

#[test]
fn the_bytes_stay_what_they_are_and_are_few() {
    assert_eq!(encoded(&sum(&[])), [0, 0, 0, 0, 0]);
    assert_eq!(encoded(&sum(&[1.0])), [0, 134, 0, 1, 0, 4]);
    assert_eq!(encoded(&sum(&[-3.0])), [1, 134, 0, 1, 0, 12]);
    assert!(encoded(&sum(&[12.34, 0.1, 99.99])).len() <= 14);
}

#[test]
fn bytes_that_are_no_sum_are_refused() {
    for bytes in [&[][..], &[0, 0, 0], &[0, 0, 0, 2, 0, 1], &[2, 0], &[0, 255, 255, 1, 0, 1]] {
        let mut rest = bytes;
        assert_eq!(FloatSum::new().decode_from(&mut rest), None, "{bytes:?}");
    }
}

fn any_finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |x| x.is_finite()),
        any::<i16>().prop_map(f64::from),
        any::<f32>().prop_filter("finite", |x| x.is_finite()).prop_map(f64::from),
        (0..4_u64).prop_map(f64::from_bits),
    ]
}

proptest! {
    #[test]
    fn equals_fixed_point_where_that_suffices(
        terms in prop::collection::vec((-(1_i64 << 53)..1 << 53, 0..8_i32, -5..6_i64), 0..40),
    ) {
        let mut sum = FloatSum::new();
        let mut model = 0_i128;
        for &(significand, exponent, weight) in &terms {
            sum.add(significand as f64 * 2_f64.powi(exponent), weight);
            model += (i128::from(significand) << exponent) * i128::from(weight);
        }
        prop_assert_eq!(sum.value(), model as f64);
    }

    #[test]
    fn means_equal_long_division(
        terms in prop::collection::vec((-(1_i64 << 40)..1 << 40, -5..6_i64), 0..40),
        count in 1..1000_i64,
    ) {
        let mut sum = FloatSum::new();
        let mut model = 0_i128;
        for &(x, weight) in &terms {
            sum.add(x as f64, weight);
            model += i128::from(x) * i128::from(weight);
        }
        // At least 56 bits of quotient, and one more that says whether there is a rest.
        let dividend = model << 66;
        let rest = i128::from(dividend % i128::from(count) != 0) * model.signum();
        let quotient = (dividend / i128::from(count) * 2) + rest;
        prop_assert_eq!(sum.mean(count), quotient as f64 * 2_f64.powi(-67));
    }

    #[test]
    fn two_terms_add_as_the_processor_adds(a in any_finite(), b in any_finite()) {
        prop_assert_eq!(sum(&[a, b]).value(), a + b);
        prop_assert_eq!(sum(&[a]).value(), a);
    }

    #[test]
    fn order_and_what_is_taken_away_leave_no_trace(
        terms in prop::collection::vec((any_finite(), -3..4_i64), 0..30).prop_shuffle(),
        passing in prop::collection::vec((any_finite(), any::<i64>()), 0..30),
    ) {
        let mut plain = FloatSum::new();
        terms.iter().for_each(|&(x, weight)| plain.add(x, weight));
        let mut other = FloatSum::new();
        passing.iter().for_each(|&(x, weight)| other.add(x, weight / 2));
        terms.iter().rev().for_each(|&(x, weight)| other.add(-x, -weight));
        passing.iter().rev().for_each(|&(x, weight)| other.add(x, -(weight / 2)));
        prop_assert_eq!(&plain, &other);
        prop_assert_eq!(encoded(&plain), encoded(&other));
        prop_assert_eq!(decoded(&encoded(&plain)), plain);
    }
}
