//! The settings of the terminal, which a prompt changes while it waits.

use std::mem::MaybeUninit;

/// The settings of the terminal that standard input is, if it is one.
pub(crate) struct Terminal(Option<libc::termios>);

impl Terminal {
    /// The present settings.
    pub(crate) fn now() -> Self {
        let mut settings = MaybeUninit::uninit();
        // SAFETY: the call initialises the settings if it returns 0.
        Self(unsafe {
            (libc::tcgetattr(libc::STDIN_FILENO, settings.as_mut_ptr()) == 0)
                .then(|| settings.assume_init())
        })
    }

    /// Makes these the settings again.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.0 {
            // SAFETY: the call reads settings that outlive it.
            unsafe {
                libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, settings);
            }
        }
    }
}
