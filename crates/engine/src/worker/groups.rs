//! Groups of dataflows, which advance together.
//!
//! A dataflow completes an epoch once every table it reads has advanced past it. So a table advances only when that
//! matters: when a commit changes it, or a table that some dataflow reads together with it. The tables and the dataflows
//! that read them, directly or through others, form a *group*; a commit advances the groups it changes, and costs as much
//! as these groups are large. A group that has not advanced as far as the epochs has no changes on their way: as of any
//! later epoch it holds what it holds as of its last one.

use std::collections::BTreeMap;

use alluvium_trace::Epoch;

use super::command::DataflowId;

/// Names a group: its first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(DataflowId);

/// The groups of a worker's dataflows.
#[derive(Default)]
pub(super) struct Groups {
    groups: BTreeMap<GroupId, Group>,
    /// What each dataflow reads, and the group it is in.
    dataflows: BTreeMap<DataflowId, (Vec<DataflowId>, GroupId)>,
}

struct Group {
    /// Where its tables are: all epochs before this one have been sent to them.
    advanced: Epoch,
    members: Vec<DataflowId>,
}

impl Groups {
    /// Adds a dataflow that reads others, whose groups become one with it. All of them are at `advanced`.
    pub(super) fn insert(&mut self, id: DataflowId, reads: Vec<DataflowId>, advanced: Epoch) {
        let mut group = GroupId(id);
        let mut members = vec![id];
        for read in &reads {
            let Some(other) = self.group(*read).filter(|other| *other != group) else { continue };
            let Some(Group { members: others, .. }) = self.groups.remove(&other) else { continue };
            // The members of the smaller group move.
            let (mut larger, smaller) = match others.len() < members.len() {
                true => (members, others),
                false => {
                    group = other;
                    (others, members)
                }
            };
            for member in &smaller {
                if let Some((_, of)) = self.dataflows.get_mut(member) {
                    *of = group;
                }
            }
            larger.extend(smaller);
            members = larger;
        }
        self.groups.insert(group, Group { advanced, members });
        self.dataflows.insert(id, (reads, group));
    }

    /// Removes a dataflow. What it alone connected falls into several groups.
    pub(super) fn remove(&mut self, id: DataflowId) {
        let Some((_, group)) = self.dataflows.remove(&id) else { return };
        let Some(Group { advanced, mut members }) = self.groups.remove(&group) else { return };
        members.retain(|member| *member != id);
        members.sort_unstable();
        // A dataflow reads what was installed before it.
        for member in members {
            if let Some((reads, _)) = self.dataflows.remove(&member) {
                self.insert(member, reads, advanced);
            }
        }
    }

    /// The group of a dataflow.
    pub(super) fn group(&self, id: DataflowId) -> Option<GroupId> {
        self.dataflows.get(&id).map(|(_, group)| *group)
    }

    /// Where the tables of a dataflow's group are.
    pub(super) fn advanced(&self, id: DataflowId) -> Option<Epoch> {
        let group = self.group(id)?;
        self.groups.get(&group).map(|group| group.advanced)
    }

    /// The members of a dataflow's group.
    pub(super) fn members(&self, id: DataflowId) -> &[DataflowId] {
        let group = self.group(id).and_then(|group| self.groups.get(&group));
        group.map_or(&[], |group| &group.members)
    }

    /// Records that the tables of a dataflow's group advance to an epoch. Returns the members of the group, or none if
    /// they are there already.
    pub(super) fn advance(&mut self, id: DataflowId, to: Epoch) -> &[DataflowId] {
        let group = self.dataflows.get(&id).and_then(|(_, group)| self.groups.get_mut(group));
        match group {
            Some(group) if group.advanced < to => {
                group.advanced = to;
                &group.members
            }
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(groups: &mut Groups, id: u64, to: Epoch) -> Vec<u64> {
        let mut members: Vec<u64> =
            groups.advance(DataflowId(id), to).iter().map(|member| member.0).collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn what_is_read_together_advances_together() {
        let mut groups = Groups::default();
        let mut insert = |id: u64, reads: &[u64]| {
            groups.insert(DataflowId(id), reads.iter().map(|id| DataflowId(*id)).collect(), 1);
        };
        // Three tables, a view of each of the first two, one of both, and one of a view.
        insert(0, &[]);
        insert(1, &[]);
        insert(2, &[]);
        insert(3, &[0]);
        insert(4, &[1]);
        insert(5, &[0, 1, 0]);
        insert(6, &[4]);
        assert_eq!(members(&mut groups, 1, 2), [0, 1, 3, 4, 5, 6]);
        assert_eq!(members(&mut groups, 3, 2), [0; 0], "they are there already");
        assert_eq!(groups.advanced(DataflowId(6)), Some(2));
        assert_eq!(groups.advanced(DataflowId(2)), Some(1));
        groups.remove(DataflowId(5));
        assert_eq!(members(&mut groups, 0, 3), [0, 3]);
        assert_eq!(members(&mut groups, 6, 4), [1, 4, 6]);
        assert_eq!(groups.advanced(DataflowId(3)), Some(3));
        assert_eq!(members(&mut groups, 2, 4), [2]);
    }
}
