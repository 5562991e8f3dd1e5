//! The messages of panics and failures.

use std::any::Any;

use alluvium_trace::Failure;

/// The message of a panic, or the reason of a [`Failure`], that was caught, if it has one.
pub fn panic_text(caught: &(dyn Any + Send)) -> Option<&str> {
    let text = caught.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| caught.downcast_ref::<&'static str>().copied())
        .or_else(|| Failure::reason(caught))
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, panic_any};

    use super::*;

    #[test]
    fn it_is_found_whether_or_not_it_was_put_together() {
        let text = |panics: fn()| {
            let panic = catch_unwind(panics).unwrap_err();
            panic_text(&*panic).map(str::to_owned)
        };
        assert_eq!(text(|| panic!("plain")).as_deref(), Some("plain"));
        assert_eq!(text(|| panic!("number {}", "seven".len())).as_deref(), Some("number 5"));
        assert_eq!(text(|| panic_any(7)), None);
    }
}
