//! Get URL directories: every bid with the first three folders of its URL.

use dbsp::utils::Tup7;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        let mut folders = bid.url.split('/').skip(3).map(str::to_owned);
        let mut folder = || folders.next().unwrap_or_default();
        let channel = bid.channel.clone();
        Some(Tup7(bid.auction, bid.bidder, bid.price, channel, folder(), folder(), folder()))
    });
    View::new(bids, |row, Tup7(auction, bidder, price, channel, first, second, third)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.integer(*price);
        row.text(channel);
        row.text(first);
        row.text(second);
        row.text(third);
    })
}
