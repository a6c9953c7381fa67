//! The names of attributes on the wire, if the descriptor gives none.

/// The rule that makes a wire name from an attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The attribute's own name.
    Same,
    /// `data_center_id` becomes `dataCenterId`.
    Camel,
}

impl Naming {
    /// Returns the wire name of an attribute.
    pub(crate) fn wire(self, name: &str) -> String {
        if self == Self::Same {
            return name.to_owned();
        }
        let mut wire = String::with_capacity(name.len());
        let mut upper = false;
        for letter in name.chars() {
            match letter {
                '_' => upper = true,
                _ if upper => {
                    wire.extend(letter.to_uppercase());
                    upper = false;
                }
                _ => wire.push(letter),
            }
        }
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn camel_names() {
        for (name, wire) in [
            ("data_center_id", "dataCenterId"),
            ("id", "id"),
            ("is_x_2", "isX2"),
            ("gpu_ids", "gpuIds"),
        ] {
            assert_eq!(Naming::Camel.wire(name), wire);
            assert_eq!(Naming::Same.wire(name), name);
        }
    }
}
