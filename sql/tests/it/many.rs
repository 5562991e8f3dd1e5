//! Planning is fast enough for programs of many views.

use std::time::Instant;

use crate::fixture::Definitions;

#[test]
#[ignore = "prints a time, for a release build"]
fn two_hundred_views_are_planned_in_well_under_a_second() {
    let started = Instant::now();
    let mut definitions = Definitions::flights();
    println!("catalog: {:?}", started.elapsed());
    let started = Instant::now();
    for number in 0..50 {
        definitions.define(&format!(
            "CREATE VIEW a{number} AS SELECT carrier, count(*) AS n, avg(dep_delay) AS d FROM flights WHERE month > {number} GROUP BY carrier;
             CREATE VIEW b{number} AS SELECT a.name, v.n FROM a{number} v JOIN airlines a ON a.carrier = v.carrier WHERE v.n > 10;
             CREATE VIEW c{number} AS SELECT f.id, p.model, w.temp FROM flights f JOIN planes p ON f.tailnum = p.tailnum
                JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour WHERE p.seats > {number};
             CREATE VIEW d{number} AS SELECT DISTINCT origin, upper(dest) AS dest FROM flights UNION ALL SELECT name, 'x' FROM airlines;"
        ));
    }
    println!("200 views: {:?}", started.elapsed());
}
