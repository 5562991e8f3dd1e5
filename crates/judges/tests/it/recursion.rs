//! Recursive views over random graphs.

use alluvium_judges::recursion::judge;

#[test]
fn recursive_views_hold_what_a_fixpoint_from_scratch_has() {
    for number in 0..24 {
        assert_eq!(judge(number), Ok(()));
    }
}
