use alluvium_trace::Cursors;
use proptest::prelude::*;
use timely::order::Product;

use crate::cursor::{Move, agrees, any_move};
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

#[test]
fn no_batches_have_no_key() {
    let mut cursors = Cursors::<u64>::new([]);
    cursors.step_key();
    cursors.step_val();
    cursors.rewind_vals();
    assert_eq!((cursors.key(), cursors.val()), (None, None));
}
