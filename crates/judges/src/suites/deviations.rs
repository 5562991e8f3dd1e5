//! Where Alluvium gives another answer than DataFusion on purpose.

/// A query whose answers differ for a known reason.
pub(super) struct Deviation {
    /// The beginning of the file's path.
    file: &'static str,
    /// A part of the query, in lower case and with single spaces.
    part: &'static str,
    pub(super) reason: &'static str,
    /// Whether the engine's own query has the answer of the view, which is compared with it then. It has DataFusion's types.
    pub(super) is_of_queries: bool,
}

const MICROSECONDS: &str = "TIMESTAMP counts microseconds";
const DIVISION: &str = "a quotient of DECIMAL has 16 digits behind the point";
const ONE_TYPE: &str = "functions of views return one type of text and of lists";
const STANDARD_PATTERN: &str = "SIMILAR TO matches the whole text";
const NULL_IN_LISTS: &str = "MAX takes NULL in a list for the smaller element";

const fn of_all(file: &'static str, part: &'static str, reason: &'static str) -> Deviation {
    Deviation { file, part, reason, is_of_queries: true }
}

const fn of_views(file: &'static str, part: &'static str, reason: &'static str) -> Deviation {
    Deviation { file, part, reason, is_of_queries: false }
}

const DEVIATIONS: &[Deviation] = &[
    of_all(
        "array/array_concat.slt",
        "array_concat(column4, column1)",
        "array_concat of NULLs is NULL, whatever rows are beside it",
    ),
    of_all("array_agg.slt", "array_sort(c", "array_sort puts NULLs last"),
    of_views("array_agg.slt", "arrow_typeof(array_agg(distinct arrow_cast(", ONE_TYPE),
    of_views("coalesce.slt", "arrow_typeof(coalesce(column1, arrow_cast(", ONE_TYPE),
    of_all("datetime/timestamps.slt", "arrow_typeof(to_local_time(", MICROSECONDS),
    of_all("datetime/timestamps.slt", "timestamp(9)", MICROSECONDS),
    of_views("datetime/timestamps.slt", "select arrow_cast(column1, 'timestamp(n", MICROSECONDS),
    of_views("datetime/timestamps.slt", "select arrow_cast(cast(1", MICROSECONDS),
    of_views(
        "datetime/timestamps.slt",
        "from t_europe where column1 = ",
        "times of two zones are equal if they are the same instant",
    ),
    of_all("functions.slt", "arrow_typeof(octet_length(", "octet_length returns BIGINT"),
    of_all("min_max/large_list.slt", "max(", NULL_IN_LISTS),
    of_all("min_max/list.slt", "max(", NULL_IN_LISTS),
    of_all("operator.slt", "arrow_typeof(int8 / ", DIVISION),
    of_all("operator.slt", " 2.0)", "FLOAT and DECIMAL make DOUBLE"),
    of_all("predicates.slt", "'-nan'::double in", "all NaN are equal"),
    of_views("string/", "arrow_typeof(left(", ONE_TYPE),
    of_views("string/", "arrow_typeof(substr(", ONE_TYPE),
    of_all("type_coercion.slt", "similar to", STANDARD_PATTERN),
    // TPC-DS.
    of_all("", "cast((revenue / 50) as int)", "a DECIMAL that is cast to INT is rounded"),
];

/// The deviation of a query at a place; `None` if it has none.
pub(super) fn deviation(place: &str, query: &str) -> Option<&'static Deviation> {
    let query = query.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let applies = |known: &&Deviation| place.starts_with(known.file) && query.contains(known.part);
    DEVIATIONS.iter().find(applies)
}

#[test]
fn a_deviation_is_known_by_its_place_and_its_query() {
    let reason = |place, query| deviation(place, query).map(|known| known.reason);
    let query = "SELECT a SIMILAR  TO\n'b' FROM t";
    assert_eq!(reason("type_coercion.slt:336", query), Some(STANDARD_PATTERN));
    assert_eq!(reason("aggregate.slt:7", query), None);
    assert_eq!(reason("type_coercion.slt:336", "SELECT a = b FROM t"), None);
}
