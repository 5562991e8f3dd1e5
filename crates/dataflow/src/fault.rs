//! Seeded faults of this crate; see [`alluvium_trace::fault`].

use alluvium_trace::fault::FaultId;

pub use alluvium_trace::fault::armed;

/// A fault of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A map panics.
    PanicInMap,
    /// A join or a reduction panics.
    PanicInTactic,
    /// A sink panics, where changes leave the dataflow.
    PanicInSink,
    /// A pair changes at the time of its left row, not at the later time of both.
    JoinAtLeftTime,
    /// A reduction reads only the first of the batches that arrive together.
    FirstTileOnly,
    /// A reduction emits the change of a key at its last time only.
    LastTimeOnly,
    /// A reduction does not retract its previous result.
    KeepOldAnswer,
    /// A reduction ignores the earlier rows of its input.
    ForgetHistory,
    /// A join ignores the residual condition.
    DropResidual,
    /// One partner, or one copy of a row on the other side, counts as none.
    MissLastPartner,
    /// The first rows of a group do not shift when a row among them comes or goes.
    KeepNumbers,
    /// A recomputed group emits its new results without retracting the old ones.
    ForgetOldResults,
    /// A row with several copies is evaluated once.
    IgnoreCopies,
    /// One row in seven goes to the first worker, whatever its key.
    WrongWorker,
    /// A distinct row goes when one of its copies does.
    LeaveEarly,
    /// A distinct row keeps its marks when the copies that have them go.
    KeepMarks,
    /// Equal rows that become one count once.
    CountOnce,
    /// INTERSECT ALL emits each row once.
    IntersectOnce,
    /// Of several writes to a key in one epoch the first wins.
    FirstWriteWins,
    /// Rows of a table that a write replaces stay in the views that read its changes as they come.
    DropCorrections,
    /// Errors stay when their causes are gone.
    KeepErrors,
    /// UNNEST drops the last element of a list.
    LoseElement,
    /// A linear aggregate counts NULL as a value.
    CountNulls,
    /// The row of an aggregate over no rows stays when there are rows.
    KeepDefault,
    /// An outer join does not emit rows of its left side without a partner.
    NoLonelyRows,
    /// Rows below a waterline can still be replaced by their keys.
    ReplaceLateRows,
    /// A waterline holds before its epoch.
    WaterlineAhead,
    /// The last row whose frame sees a changed row keeps its result.
    ShortFrames,
    /// Rows after a changed one keep their running totals.
    KeepTotals,
    /// Final rows are emitted twice.
    FinalTwice,
    /// Rows at the bound are final, as those below it.
    FinalEarly,
    /// A left row of an ASOF join keeps its match when a nearer right row comes or goes.
    KeepMatch,
    /// Of right rows of one time an ASOF join matches the one that came first.
    TiesByArrival,
    /// Rows that an end of a range join passes stay as they are.
    EndStays,
    /// Rows leave the view of a temporal filter one epoch too late.
    LeaveViewLate,
    /// When rows are repartitioned, some go to all workers and others to none.
    DealUnevenly,
    /// The waterline of a view counts the rows of one worker only.
    OwnWaterline,
    /// Rows of a window are pruned that the frames of rows in time still reach.
    PruneReached,
    /// A recursion ends after two rounds.
    TwoRounds,
    /// A row of a recursion stays in the rounds that come after the present one when its support goes.
    ForgetLaterRounds,
    /// A group of a recursion keeps its accumulators of the round before.
    KeepOldRound,
    /// MIN and MAX of a recursion keep a value that has gone.
    KeepExtreme,
    /// The first rows of a group end at their number, also where rows equal to the last one follow.
    CutTies,
    /// The last row of an order is one where it is NULL.
    LastIsNull,
    /// Of the counted rows of a session only the first and the last count.
    ForgetBetween,
    /// An index keeps rows that are deleted.
    IndexKeepsDeleted,
    /// A dataflow that is built takes the earlier rows of another one twice.
    FillTwice,
    /// A dataflow that is built misses a batch of the earlier rows of another one.
    FillLess,
    /// As keys, NaN is another one in every other row.
    ManyNans,
    /// As keys, -0.0 and 0.0 differ.
    TwoZeros,
    /// A range of keys ends before its end, although that is in it.
    RangeWithoutEnd,
}

impl Fault {
    /// Those that make wrong results, and do not panic.
    pub const WRONG: [Fault; 44] = [
        Fault::JoinAtLeftTime,
        Fault::FirstTileOnly,
        Fault::LastTimeOnly,
        Fault::KeepOldAnswer,
        Fault::ForgetHistory,
        Fault::DropResidual,
        Fault::MissLastPartner,
        Fault::KeepNumbers,
        Fault::ForgetOldResults,
        Fault::IgnoreCopies,
        Fault::WrongWorker,
        Fault::LeaveEarly,
        Fault::KeepMarks,
        Fault::CountOnce,
        Fault::IntersectOnce,
        Fault::FirstWriteWins,
        Fault::DropCorrections,
        Fault::KeepErrors,
        Fault::LoseElement,
        Fault::CountNulls,
        Fault::KeepDefault,
        Fault::NoLonelyRows,
        Fault::ReplaceLateRows,
        Fault::WaterlineAhead,
        Fault::ShortFrames,
        Fault::KeepTotals,
        Fault::FinalTwice,
        Fault::FinalEarly,
        Fault::KeepMatch,
        Fault::EndStays,
        Fault::TiesByArrival,
        Fault::LeaveViewLate,
        Fault::OwnWaterline,
        Fault::PruneReached,
        Fault::TwoRounds,
        Fault::CutTies,
        Fault::LastIsNull,
        Fault::ForgetBetween,
        Fault::IndexKeepsDeleted,
        Fault::RangeWithoutEnd,
        Fault::ManyNans,
        Fault::TwoZeros,
        Fault::FillTwice,
        Fault::FillLess,
    ];

    /// Those that random graphs find.
    pub const RECURSIVE: [Fault; 4] =
        [Fault::TwoRounds, Fault::ForgetLaterRounds, Fault::KeepOldRound, Fault::KeepExtreme];
}

impl From<Fault> for FaultId {
    fn from(fault: Fault) -> Self {
        FaultId::new(64 + fault as u8)
    }
}

/// Arms a fault on this thread, or none.
#[cfg(feature = "faults")]
pub fn arm(fault: Option<Fault>) {
    alluvium_trace::fault::arm(fault.map(Into::into));
}

/// Arms a fault in the whole process, or none. Two tests that do so cannot run at once.
#[cfg(feature = "faults")]
pub fn arm_everywhere(fault: Option<Fault>) {
    alluvium_trace::fault::arm_everywhere(fault.map(Into::into));
}
