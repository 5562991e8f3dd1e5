use alluvium_trace::Cursors;
use proptest::prelude::*;
use timely::order::Product;

use crate::cursor::{Move, Moves, agrees, any_move};
use crate::reference::*;

fn cursors_move_as_the_model<T: TestTime>(batches: Vec<(Vec<Update<T>>, World)>, moves: Vec<Move>) {
    let built = batches.iter().map(|(updates, world)| batch_in(world, updates));
    let references: Vec<_> = batches.iter().map(|(updates, _)| reference(updates)).collect();
    agrees(&mut Cursors::new(built), &references, &moves);
}

proptest! {
    #[test]
    fn cursors_of_epochs_move_as_the_model(
        batches in prop::collection::vec((any_updates(30), any_world()), 0..5),
        moves in prop::collection::vec(any_move(), 0..60),
    ) {
        cursors_move_as_the_model::<u64>(batches, moves);
    }

    #[test]
    fn cursors_of_iterations_move_as_the_model(
        batches in prop::collection::vec((any_updates(30), any_world()), 0..5),
        moves in prop::collection::vec(any_move(), 0..60),
    ) {
        cursors_move_as_the_model::<Product<u64, u64>>(batches, moves);
    }
}

proptest! {
    #[test]
    fn cursors_that_start_at_a_key_are_those_that_have_moved_there(
        batches in prop::collection::vec((any_updates::<u64>(30), any_world()), 0..5),
        start in any_bytes(),
        moves in prop::collection::vec(any_move(), 0..60),
    ) {
        let built: Vec<_> = batches.iter().map(|(updates, world)| batch_in(world, updates)).collect();
        for start_at in [Cursors::seeking, Cursors::scan_from] {
            let mut moved = Cursors::new(built.iter().cloned());
            moved.seek_key(&start);
            let mut started = start_at(built.clone(), &start);
            prop_assert_eq!(started.shown(), moved.shown());
            // A scan is not moved back.
            let is_back = |to: &&Move| matches!(to, Move::RewindVals | Move::SeekValBefore(_));
            for to in moves.iter().filter(|to| !is_back(to)) {
                started.go(to);
                moved.go(to);
                prop_assert_eq!(started.shown(), moved.shown());
            }
        }
    }
}

proptest! {
    #[test]
    fn cursors_that_are_sought_anywhere_are_as_new(
        batches in prop::collection::vec((any_updates::<u64>(30), any_world()), 0..5),
        visits in prop::collection::vec(
            (any_bytes(), prop::collection::vec(any_move(), 0..8)), 0..12,
        ),
    ) {
        let built: Vec<_> = batches.iter().map(|(updates, world)| batch_in(world, updates)).collect();
        let mut cursors = Cursors::seeking(built.clone(), &[]);
        for (key, moves) in &visits {
            cursors.seek_anywhere(key);
            let mut new = Cursors::seeking(built.clone(), key);
            prop_assert_eq!(cursors.shown(), new.shown());
            for to in moves {
                cursors.go(to);
                new.go(to);
                prop_assert_eq!(cursors.shown(), new.shown());
            }
        }
    }
}

#[test]
fn no_batches_have_no_key() {
    let mut cursors = Cursors::<u64>::new([]);
    cursors.step_key();
    cursors.step_val();
    cursors.rewind_vals();
    assert_eq!((cursors.key(), cursors.val()), (None, None));
}
