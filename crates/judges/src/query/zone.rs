//! Time zones.

/// A zone of the IANA database: two that change their clocks in the north by an hour, one in the south by half an hour, and two that
/// never change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Berlin,
    NewYork,
    LordHowe,
    Kolkata,
    Utc,
}

impl Zone {
    pub(crate) const ALL: [Zone; 5] =
        [Zone::Berlin, Zone::NewYork, Zone::LordHowe, Zone::Kolkata, Zone::Utc];

    /// Its name.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Zone::Berlin => "Europe/Berlin",
            Zone::NewYork => "America/New_York",
            Zone::LordHowe => "Australia/Lord_Howe",
            Zone::Kolkata => "Asia/Kolkata",
            Zone::Utc => "UTC",
        }
    }
}

/// A length of time; all parts have one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) seconds: i64,
}

impl Length {
    /// Whether it leads back in time.
    pub(crate) fn is_negative(self) -> bool {
        self.months < 0 || self.days < 0 || self.seconds < 0
    }

    /// Without its sign, in all dialects but SQLite's.
    pub(crate) fn sql(self) -> String {
        let parts = [(self.months, "months"), (self.days, "days"), (self.seconds, "seconds")];
        let parts = parts.iter().filter(|(number, _)| *number != 0);
        let parts: Vec<_> =
            parts.map(|(number, unit)| format!("{} {unit}", number.abs())).collect();
        format!("INTERVAL '{}'", parts.join(" "))
    }
}
