//! Where the boxes of a plan are in a picture.
//!
//! Plans are trees but for a few operators that have several readers. So boxes are placed as those of a tree: the
//! operators that nothing reads are the topmost layer, each other one is a layer below its lowest reader, and below that reader
//! stand its inputs beside each other, in several rows if they are many. Takes time and memory that grow with the operators
//! and their inputs alone, at any depth.

use std::collections::HashSet;

/// A box of a picture, in pixels.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Placed {
    pub(super) fn middle(&self) -> f64 {
        self.left + self.width / 2.0
    }
}

/// The gaps between boxes of text, beside and below each other.
pub(super) const GAPS: (f64, f64) = (24.0, 34.0);

/// The least inputs of an operator that stand beside each other. More of them than this stand in several rows, about as many as each has.
const ABREAST: usize = 8;

/// Places boxes of these sizes with these gaps, of operators with these inputs, from a corner on. Inputs make no circle.
pub(super) fn place(
    sizes: &[(f64, f64)],
    (beside, under): (f64, f64),
    inputs: &[&[usize]],
    corner: (f64, f64),
) -> Vec<Placed> {
    let order = before_inputs(inputs);
    let below = tree(&order, inputs);
    let rows = |node: usize| below[node].chunks(below[node].len().isqrt().max(ABREAST));
    // How much room each needs with those below it: its width, and its layers.
    let mut widths = vec![0.0; sizes.len()];
    let mut depths = vec![0; sizes.len()];
    let wide = |row: &[usize], widths: &[f64]| {
        row.iter().map(|&node| widths[node] + beside).sum::<f64>() - beside
    };
    for &node in order.iter().rev() {
        widths[node] = rows(node).map(|row| wide(row, &widths)).fold(sizes[node].0, f64::max);
        depths[node] = 1 + rows(node).map(|row| deep(row, &depths)).sum::<usize>();
    }
    // The left edges of these rooms, and the layers.
    let mut lefts = vec![corner.0; sizes.len()];
    let mut layers = vec![0; sizes.len()];
    let is_read: HashSet<usize> = below.iter().flatten().copied().collect();
    let roots = order.iter().filter(|node| !is_read.contains(node));
    roots.fold(corner.0, |left, &root| {
        lefts[root] = left;
        left + widths[root] + beside
    });
    for &node in &order {
        let mut layer = layers[node] + 1;
        for row in rows(node) {
            let mut left = lefts[node] + (widths[node] - wide(row, &widths)) / 2.0;
            for &input in row {
                (lefts[input], layers[input]) = (left, layer);
                left += widths[input] + beside;
            }
            layer += deep(row, &depths);
        }
    }
    let mut heights = vec![0.0; layers.iter().max().map_or(0, |last| last + 1)];
    for (layer, (_, height)) in layers.iter().zip(sizes) {
        heights[*layer] = f64::max(heights[*layer], *height);
    }
    let tops: Vec<f64> = heights
        .iter()
        .scan(corner.1, |top, height| Some(std::mem::replace(top, *top + height + under)))
        .collect();
    let placed = sizes.iter().enumerate().map(|(node, &(width, height))| Placed {
        left: lefts[node] + (widths[node] - width) / 2.0,
        top: tops[layers[node]],
        width,
        height,
    });
    placed.collect()
}

/// The layers of a row with what is below it.
fn deep(row: &[usize], depths: &[usize]) -> usize {
    row.iter().map(|&node| depths[node]).max().unwrap_or(0)
}

/// The operators that stand below each: its inputs, but for those that have a reader which is lower, or comes later.
fn tree(order: &[usize], inputs: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut layers = vec![0; inputs.len()];
    let mut readers = vec![None; inputs.len()];
    for &node in order {
        for &input in inputs[node] {
            if layers[input] <= layers[node] + 1 {
                layers[input] = layers[node] + 1;
                readers[input] = Some(node);
            }
        }
    }
    let mut below = vec![Vec::new(); inputs.len()];
    for &node in order {
        if let Some(reader) = readers[node] {
            below[reader].push(node);
        }
    }
    below
}

/// All operators, each before its inputs, and these in their order where nothing else reads them.
fn before_inputs(inputs: &[&[usize]]) -> Vec<usize> {
    let mut unplaced = vec![0; inputs.len()];
    inputs.iter().copied().flatten().for_each(|&input| unplaced[input] += 1);
    let mut free: Vec<usize> = (0..inputs.len()).filter(|&node| unplaced[node] == 0).collect();
    free.reverse();
    let mut order = Vec::with_capacity(inputs.len());
    while let Some(node) = free.pop() {
        order.push(node);
        for &input in inputs[node].iter().rev() {
            unplaced[input] -= 1;
            if unplaced[input] == 0 {
                free.push(input);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(one: &Placed, other: &Placed) -> bool {
        one.left < other.left + other.width
            && other.left < one.left + one.width
            && one.top < other.top + other.height
            && other.top < one.top + one.height
    }

    #[test]
    fn boxes_stand_apart_and_below_their_readers() {
        // Each reads the three after three times its own number, and every seventh one more that has a reader.
        let count = 300;
        let inputs: Vec<Vec<usize>> = (0..count)
            .map(|node| {
                let own = 3 * node + 1..3 * node + 4;
                let more = (node % 7 == 0).then_some(node + 100);
                own.chain(more).filter(|input| *input < count).collect()
            })
            .collect();
        let inputs: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
        let sizes: Vec<(f64, f64)> =
            (0..count).map(|node| (40.0 + (node % 13) as f64 * 20.0, 20.0)).collect();
        let placed = place(&sizes, GAPS, &inputs, (10.0, 10.0));
        for (node, one) in placed.iter().enumerate() {
            assert!(one.left >= 10.0 && one.top >= 10.0, "{one:?}");
            for other in &placed[..node] {
                assert!(!overlaps(one, other), "{one:?} {other:?}");
            }
            for &input in inputs[node] {
                assert!(placed[input].top > one.top + one.height, "{node} {input}");
            }
        }
    }

    #[test]
    fn many_inputs_of_one_operator_stand_in_rows() {
        // All of them read one operator more.
        let count = 1000;
        let mut inputs: Vec<Vec<usize>> = vec![vec![count + 1]; count + 1];
        inputs[0] = (1..=count).collect();
        inputs.push(Vec::new());
        let inputs: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
        let placed = place(&vec![(1.0, 1.0); count + 2], (0.0, 0.0), &inputs, (0.0, 0.0));
        let most = |of: fn(&Placed) -> f64| placed.iter().map(of).fold(0.0, f64::max);
        assert_eq!((most(|it| it.left), most(|it| it.top)), (30.0, 34.0));
        for (node, one) in placed.iter().enumerate() {
            for other in &placed[..node] {
                assert!(!overlaps(one, other), "{one:?} {other:?}");
            }
            assert!(node > count || placed[count + 1].top > one.top, "{node}");
        }
    }
}
