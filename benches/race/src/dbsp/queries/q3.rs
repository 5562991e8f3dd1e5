//! Local item suggestion: who sells in category 10, in three states?

use dbsp::utils::{Tup3, Tup4};

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

const STATES: [&str; 3] = ["or", "id", "ca"];

pub(super) fn program(tables: &Tables) -> View {
    let auctions = tables.auction.index(|it| (it.category == 10).then_some((it.seller, it.id)));
    let people = tables.person.index(|it| {
        let is_there = STATES.contains(&it.state.as_str());
        is_there.then(|| (it.id, Tup3(it.name.clone(), it.city.clone(), it.state.clone())))
    });
    let sellers = auctions.join(&people, |_, auction, Tup3(name, city, state)| {
        Tup4(name.clone(), city.clone(), state.clone(), *auction)
    });
    View::new(sellers, |row, Tup4(name, city, state, auction)| {
        row.text(name);
        row.text(city);
        row.text(state);
        row.integer(*auction);
    })
}
