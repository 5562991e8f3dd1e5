//! Monitor new users: who entered the system and opened an auction within the same 10 seconds?

use dbsp::utils::{Tup2, Tup3};

use super::{SECOND, window};
use crate::dbsp::tables::{Tables, forget, forget_rows};
use crate::dbsp::view::View;

/// Whether a window has not ended at the waterline.
fn is_open(start: i64, now: i64) -> bool {
    start.saturating_add(10 * SECOND) >= now
}

pub(super) fn program(tables: &Tables) -> View {
    let of_persons = tables.waterline_of_persons();
    let of_auctions = tables.waterline_of_auctions();
    let people =
        tables.person.flat_map(|it| Some(Tup3(it.id, it.name.clone(), window(it.date_time))));
    let sellers = tables.auction.flat_map(|it| Some(Tup2(it.seller, window(it.date_time))));
    forget_rows(&people, of_persons.as_ref(), |Tup3(_, _, start), now| is_open(*start, *now));
    forget_rows(&sellers, of_auctions.as_ref(), |Tup2(_, start), now| is_open(*start, *now));

    let people =
        people.distinct().map_index(|Tup3(id, name, start)| (Tup2(*id, *start), name.clone()));
    let sellers = sellers.distinct().map_index(|seller| (*seller, ()));
    // Each side is met by rows of the other.
    forget(&people, of_auctions.as_ref(), |Tup2(_, start), now| is_open(*start, *now));
    forget(&sellers, of_persons.as_ref(), |Tup2(_, start), now| is_open(*start, *now));
    let new = people.join(&sellers, |Tup2(id, start), name, ()| Tup3(*id, name.clone(), *start));
    View::new(new, |row, Tup3(id, name, start)| {
        row.integer(*id);
        row.text(name);
        row.integer(*start);
    })
}
