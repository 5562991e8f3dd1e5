//! Where the boxes of a plan are in a picture.
//!
//! Plans are trees but for a few operators that have several readers. So boxes are placed as those of a tree: the
//! operators that nothing reads are the topmost layer, each other one is a layer below its lowest reader, and below that reader
//! stand its inputs beside each other. Takes time and memory that grow with the operators and their inputs alone, at any depth.

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

/// The gaps between boxes, beside and below each other.
const BESIDE: f64 = 24.0;
const BELOW: f64 = 34.0;

/// Places boxes of these sizes, of operators with these inputs, from a corner on. Inputs make no circle.
pub(super) fn place(sizes: &[(f64, f64)], inputs: &[&[usize]], corner: (f64, f64)) -> Vec<Placed> {
    let order = before_inputs(inputs);
    let mut layers = vec![0; sizes.len()];
    // The lowest reader of each, below which it stands.
    let mut readers = vec![None; sizes.len()];
    for &node in &order {
        for &input in inputs[node] {
            if layers[input] <= layers[node] {
                layers[input] = layers[node] + 1;
                readers[input] = Some(node);
            }
        }
    }
    // How much room those below each need, and then each with them.
    let mut below = vec![0.0; sizes.len()];
    let mut whole = vec![0.0; sizes.len()];
    for &node in order.iter().rev() {
        whole[node] = f64::max(sizes[node].0, below[node]);
        if let Some(reader) = readers[node] {
            below[reader] += whole[node] + if below[reader] > 0.0 { BESIDE } else { 0.0 };
        }
    }
    let mut heights = vec![0.0; layers.iter().max().map_or(0, |last| last + 1)];
    for (layer, (_, height)) in layers.iter().zip(sizes) {
        heights[*layer] = f64::max(heights[*layer], *height);
    }
    let tops: Vec<f64> = heights
        .iter()
        .scan(corner.1, |top, height| Some(std::mem::replace(top, *top + height + BELOW)))
        .collect();
    let mut placed = vec![Placed::default(); sizes.len()];
    // Where the next one below each begins; the last one is that of those that nothing reads.
    let mut next = vec![0.0; sizes.len()];
    let mut next_root = corner.0;
    for &node in &order {
        let begin = match readers[node] {
            Some(reader) => &mut next[reader],
            None => &mut next_root,
        };
        let left = std::mem::replace(begin, *begin + whole[node] + BESIDE);
        let (width, height) = sizes[node];
        let top = tops[layers[node]];
        placed[node] = Placed { left: left + (whole[node] - width) / 2.0, top, width, height };
        next[node] = left + (whole[node] - below[node]) / 2.0;
    }
    placed
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
        let placed = place(&sizes, &inputs, (10.0, 10.0));
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
}
