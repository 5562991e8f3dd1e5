//! Add channel id: bids with the number of their channel if it is well known, or else with the id in their URL.

use std::sync::LazyLock;

use dbsp::utils::Tup5;
use regex::Regex;

use crate::dbsp::tables::Tables;
use crate::dbsp::view::View;

static CHANNEL_ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?:&|^)channel_id=([^&]*)").unwrap_or_else(|error| panic!("{error}"))
});

fn channel_id(channel: &str, url: &str) -> Option<String> {
    let known = match channel.to_lowercase().as_str() {
        "apple" => "0",
        "google" => "1",
        "facebook" => "2",
        "baidu" => "3",
        _ => CHANNEL_ID.captures(url)?.get(1)?.as_str(),
    };
    Some(known.to_owned())
}

pub(super) fn program(tables: &Tables) -> View {
    let bids = tables.bid.flat_map(|bid| {
        let id = channel_id(&bid.channel, &bid.url)?;
        Some(Tup5(bid.auction, bid.bidder, bid.price, bid.channel.clone(), id))
    });
    View::new(bids, |row, Tup5(auction, bidder, price, channel, id)| {
        row.integer(*auction);
        row.integer(*bidder);
        row.integer(*price);
        row.text(channel);
        row.text(id);
    })
}
