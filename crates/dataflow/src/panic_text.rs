//! The messages of panics.

use std::any::Any;

/// The message of a panic that was caught, if it has one.
pub fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    match panic.downcast_ref::<String>() {
        Some(text) => Some(text),
        None => panic.downcast_ref::<&'static str>().copied(),
    }
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
