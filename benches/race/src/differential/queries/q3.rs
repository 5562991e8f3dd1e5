//! Local item suggestion: who sells in category 10, in three states?

use crate::differential::Tables;
use crate::differential::view::View;

const STATES: [&str; 3] = ["or", "id", "ca"];

pub(in crate::differential) fn program(tables: Tables<'_>) -> View<'_> {
    let auctions = tables.auction.flat_map(|it| (it.category == 10).then_some((it.seller, it.id)));
    let people = tables.person.flat_map(|it| {
        let is_there = STATES.contains(&it.state.as_str());
        is_there.then_some((it.id, (it.name, it.city, it.state)))
    });
    let sellers = auctions.join_map(people, |_, auction, (name, city, state)| {
        (name.clone(), city.clone(), state.clone(), *auction)
    });
    View::new(sellers, |row, (name, city, state, auction)| {
        row.text(name);
        row.text(city);
        row.text(state);
        row.integer(*auction);
    })
}
