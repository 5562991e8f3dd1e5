//! Waiting: who waits is woken when what it waits for is there, and by nothing else.
//!
//! A [`WaitList`] has the [`Waker`](std::task::Waker)s of those who wait, by the key of their condition. A future enters its own waker. A
//! call that blocks waits with [`until`], which enters a waker of its thread: both park on the same lists.
//!
//! A waiter enters the list under the lock of the state that it has looked at, and a change of the state wakes
//! those whose wait is over under the same lock, or after it. So no waiter misses a change.
//!
//! A blocking wait ends early if its call is [interrupted or comes to its deadline](crate::interrupt::Limits). Leaving a list
//! happens when the entry is dropped: a wait that is given up leaves nothing.

mod list;
mod park;

pub(crate) use list::WaitList;
pub use park::thread_waker;
pub(crate) use park::{Look, until};
