//! The new place of a block's bytes when its layout is changed: pure arithmetic on offsets.

use results::Field;

/// One change of a block's layout.
#[derive(Clone, Debug)]
pub enum Shape {
    Pad {
        row: u64,
        pad: u64,
    },
    Transpose {
        element: u64,
        columns: u64,
    },
    /// Elements that move apart, `stride` bytes from one to the next.
    Separate {
        element: u64,
        stride: u64,
    },
    Fields {
        element: u64,
        /// Every byte of an element is in one of them; sorted by their offset.
        fields: Vec<Placed>,
        /// Bytes of an element in each group.
        groups: Vec<u64>,
    },
}

/// A field of an element, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    offset: u64,
    bytes: u64,
    group: usize,
    /// From the beginning of the element's part of the group.
    at: u64,
}

/// The new place of an offset: the part, the offset in it, and the number of bytes that follow it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goes {
    pub part: usize,
    pub offset: u64,
    pub run: u64,
}

impl Shape {
    /// Fields by group; bytes that no group names make a last one. The fields do not overlap and lie in the element.
    pub fn fields(element: u64, groups: &[Vec<Field>]) -> Shape {
        let mut fields = Vec::new();
        let mut sizes = Vec::new();
        for (group, of_group) in groups.iter().enumerate() {
            let mut at = 0;
            for field in of_group {
                fields.push(Placed {
                    offset: field.offset,
                    bytes: field.bytes,
                    group,
                    at,
                });
                at += field.bytes;
            }
            sizes.push(at);
        }
        fields.sort_by_key(|field| field.offset);
        let mut cold = Vec::new();
        let (mut end, mut at) = (0, 0);
        for begin in fields
            .iter()
            .map(|field| (field.offset, field.bytes))
            .chain([(element, 0)])
        {
            if begin.0 > end {
                cold.push(Placed {
                    offset: end,
                    bytes: begin.0 - end,
                    group: groups.len(),
                    at,
                });
                at += begin.0 - end;
            }
            end = begin.0 + begin.1;
        }
        if !cold.is_empty() {
            sizes.push(at);
            fields.append(&mut cold);
            fields.sort_by_key(|field| field.offset);
        }
        Shape::Fields {
            element,
            fields,
            groups: sizes,
        }
    }

    /// The sizes of the parts that a block becomes; `None` where they are beyond all bounds.
    pub fn parts(&self, bytes: u64) -> Option<Vec<u64>> {
        match self {
            Shape::Pad { row, pad } => Some(vec![(bytes / row).checked_mul(*pad)?.checked_add(bytes)?]),
            Shape::Transpose { .. } => Some(vec![bytes]),
            Shape::Separate { element, stride } => {
                let (elements, rest) = (bytes / element, bytes % element);
                Some(vec![elements.checked_mul(*stride)?.checked_add(rest)?])
            }
            Shape::Fields { element, groups, .. } => {
                let (elements, rest) = (bytes / element, bytes % element);
                let mut parts: Vec<u64> = groups.iter().map(|group| elements * group).collect();
                *parts.last_mut()? += rest;
                Some(parts)
            }
        }
    }

    /// The new place of an offset of a block of `bytes` bytes.
    pub fn goes(&self, bytes: u64, offset: u64) -> Goes {
        let one = |offset, run| Goes { part: 0, offset, run };
        match self {
            Shape::Pad { row, pad } => one(offset + offset / row * pad, row - offset % row),
            Shape::Transpose { element, columns } => {
                let row = element * columns;
                let rows = bytes / row;
                if offset >= rows * row {
                    return one(offset, bytes - offset);
                }
                let (number, within) = (offset / element, offset % element);
                let (r, c) = (number / columns, number % columns);
                one((c * rows + r) * element + within, element - within)
            }
            Shape::Separate { element, stride } => {
                let (number, within) = (offset / element, offset % element);
                one(number * stride + within, element - within)
            }
            Shape::Fields {
                element,
                fields,
                groups,
            } => {
                let (number, within) = (offset / element, offset % element);
                if number == bytes / element {
                    let part = groups.len() - 1;
                    return Goes {
                        part,
                        offset: number * groups[part] + within,
                        run: bytes - offset,
                    };
                }
                let field = fields[fields.partition_point(|field| field.offset <= within) - 1];
                Goes {
                    part: field.group,
                    offset: number * groups[field.group] + field.at + (within - field.offset),
                    run: field.offset + field.bytes - within,
                }
            }
        }
    }
}

/// The image of a block of a certain size under all changes of its layout, one after the other.
#[derive(Debug)]
pub struct Image {
    /// Each with the bytes that it finds, and where the parts before the last change begin in one piece.
    stages: Vec<(Shape, u64, Vec<u64>)>,
    /// The sizes of the parts in the end.
    pub parts: Vec<u64>,
}

/// The most bytes that a block may become: 2^44.
const MOST: u64 = 1 << 44;

impl Image {
    /// `align`: at multiples of it parts begin where several make up one piece. `None` where it would be too large.
    pub fn new(shapes: &[Shape], bytes: u64, align: u64) -> Option<Image> {
        let mut image = Image {
            stages: Vec::new(),
            parts: vec![bytes],
        };
        for shape in shapes {
            let whole = image.bytes(align).filter(|bytes| *bytes <= MOST)?;
            image.parts = shape.parts(whole)?;
            let starts = image.starts(align)?;
            image.stages.push((shape.clone(), whole, starts));
        }
        image.bytes(align).filter(|bytes| *bytes <= MOST)?;
        Some(image)
    }

    /// The start of each part, if they make up one piece.
    pub fn starts(&self, align: u64) -> Option<Vec<u64>> {
        let mut end: u64 = 0;
        let start = |bytes: &u64| {
            let start = end.checked_next_multiple_of(align)?;
            end = start.checked_add(*bytes)?;
            Some(start)
        };
        self.parts.iter().map(start).collect()
    }

    /// Of the one piece.
    pub fn bytes(&self, align: u64) -> Option<u64> {
        let starts = self.starts(align)?;
        Some(starts.last()? + self.parts.last()?)
    }

    /// The new place of an offset of the block.
    pub fn goes(&self, offset: u64) -> Goes {
        let mut goes = Goes {
            part: 0,
            offset,
            run: u64::MAX,
        };
        let mut starts: &[u64] = &[0];
        for (shape, bytes, next) in &self.stages {
            let after = shape.goes(*bytes, starts[goes.part] + goes.offset);
            goes = Goes {
                run: goes.run.min(after.run),
                ..after
            };
            starts = next;
        }
        goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(shape: &Shape, bytes: u64, offset: u64) -> (usize, u64, u64) {
        let goes = shape.goes(bytes, offset);
        (goes.part, goes.offset, goes.run)
    }

    #[test]
    fn rows_are_padded() {
        let shape = Shape::Pad { row: 100, pad: 28 };
        assert_eq!(shape.parts(250), Some(vec![306]));
        assert_eq!(at(&shape, 250, 99), (0, 99, 1));
        assert_eq!(at(&shape, 250, 100), (0, 128, 100));
        assert_eq!(at(&shape, 250, 249), (0, 305, 51));
    }

    #[test]
    fn matrices_are_transposed_and_the_rest_stays() {
        let shape = Shape::Transpose { element: 4, columns: 3 };
        // Two rows of three, and half a row.
        let places: Vec<u64> = (0..7).map(|number| shape.goes(28, number * 4).offset / 4).collect();
        assert_eq!(places, [0, 2, 4, 1, 3, 5, 6]);
        assert_eq!(at(&shape, 28, 6), (0, 10, 2));
        assert_eq!(at(&shape, 28, 25), (0, 25, 3));
    }

    #[test]
    fn fields_part_and_what_nobody_names_comes_last() {
        let field = |offset, bytes| Field { offset, bytes };
        let shape = Shape::fields(16, &[vec![field(8, 4), field(0, 2)], vec![field(4, 4)]]);
        assert_eq!(shape.parts(35), Some(vec![12, 8, 15]));
        assert_eq!(at(&shape, 35, 16), (0, 10, 2));
        assert_eq!(at(&shape, 35, 8), (0, 0, 4));
        assert_eq!(at(&shape, 35, 21), (1, 5, 3));
        assert_eq!(at(&shape, 35, 2), (2, 0, 2));
        assert_eq!(at(&shape, 35, 29), (2, 9, 3));
        assert_eq!(at(&shape, 35, 33), (2, 13, 2));
    }

    /// Changes come one after the other, and every byte has a place of its own.
    #[test]
    fn images_put_every_byte_somewhere_else() {
        let field = |offset, bytes| Field { offset, bytes };
        let shapes = [
            Shape::Transpose { element: 8, columns: 4 },
            Shape::fields(8, &[vec![field(4, 4)]]),
            Shape::Pad { row: 32, pad: 8 },
            Shape::Separate {
                element: 16,
                stride: 64,
            },
        ];
        for count in 0..=shapes.len() {
            for bytes in [1, 32, 64, 100, 333] {
                let image = Image::new(&shapes[..count], bytes, 64).expect("it is small");
                let mut taken = std::collections::HashSet::new();
                for offset in 0..bytes {
                    let goes = image.goes(offset);
                    assert!(goes.offset < image.parts[goes.part], "{offset} of {bytes}: {goes:?}");
                    assert!(taken.insert((goes.part, goes.offset)), "{offset} of {bytes}: {goes:?}");
                    let next = image.goes(offset + u64::from(goes.run > 1));
                    assert_eq!(next.offset - goes.offset, u64::from(goes.run > 1));
                }
            }
        }
        assert!(Image::new(&[Shape::Pad { row: 1, pad: 1 << 40 }], 1 << 30, 64).is_none());
    }
}
