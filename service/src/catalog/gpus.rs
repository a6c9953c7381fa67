//! The GPU types of the catalog, with their memory and their prices.
//!
//! The prices are near those of the real service, so that costs can be estimated; nobody is billed.

/// A GPU type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gpu {
    pub(crate) id: &'static str,
    /// The memory in gigabytes.
    pub(crate) memory: i64,
    /// The price in the secure cloud, in cents for an hour.
    secure: u16,
    /// The price in the community cloud, in cents for an hour.
    community: u16,
}

/// The price of a worker with one GPU of a pool, in cents for an hour.
const POOL_PRICES: &[(&str, u16)] = &[
    ("AMPERE_16", 58),
    ("AMPERE_24", 69),
    ("ADA_24", 110),
    ("ADA_32_PRO", 158),
    ("AMPERE_48", 122),
    ("ADA_48_PRO", 190),
    ("AMPERE_80", 272),
    ("ADA_80_PRO", 418),
    ("HOPPER_141", 558),
    ("BLACKWELL_96", 399),
    ("BLACKWELL_180", 864),
];

const fn gpu(id: &'static str, memory: i64, secure: u16, community: u16) -> Gpu {
    Gpu { id, memory, secure, community }
}

/// Every GPU type.
const GPUS: &[Gpu] = &[
    gpu("NVIDIA RTX A4000", 16, 28, 22),
    gpu("NVIDIA RTX A4500", 20, 32, 25),
    gpu("NVIDIA RTX 4000 Ada Generation", 20, 32, 25),
    gpu("NVIDIA RTX 2000 Ada Generation", 16, 28, 22),
    gpu("NVIDIA L4", 24, 46, 34),
    gpu("NVIDIA RTX A5000", 24, 46, 34),
    gpu("NVIDIA GeForce RTX 3090", 24, 46, 34),
    gpu("NVIDIA GeForce RTX 4090", 24, 46, 34),
    gpu("NVIDIA GeForce RTX 5090", 32, 89, 69),
    gpu("NVIDIA RTX A6000", 48, 86, 72),
    gpu("NVIDIA A40", 48, 86, 72),
    gpu("NVIDIA L40", 48, 86, 72),
    gpu("NVIDIA L40S", 48, 86, 72),
    gpu("NVIDIA RTX 6000 Ada Generation", 48, 86, 72),
    gpu("NVIDIA A100 80GB PCIe", 80, 199, 159),
    gpu("NVIDIA A100-SXM4-80GB", 80, 199, 159),
    gpu("NVIDIA H100 PCIe", 80, 199, 159),
    gpu("NVIDIA H100 80GB HBM3", 80, 199, 159),
    gpu("NVIDIA H100 NVL", 94, 279, 259),
    gpu("NVIDIA H200", 141, 359, 329),
    gpu("NVIDIA H200 NVL", 143, 359, 329),
    gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 179, 169),
    gpu("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 179, 169),
    gpu("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, 179, 169),
    gpu("NVIDIA B200", 180, 598, 549),
    gpu("AMD Instinct MI300X OAM", 192, 249, 229),
    gpu("NVIDIA  A30", 24, 46, 34),
    gpu("NVIDIA  RTX A4500", 20, 32, 25),
    gpu("NVIDIA A30", 24, 46, 34),
    gpu("NVIDIA A5000 Ada", 32, 89, 69),
    gpu("NVIDIA GeForce RTX 3070", 8, 14, 13),
    gpu("NVIDIA GeForce RTX 3080", 10, 18, 17),
    gpu("NVIDIA GeForce RTX 3080 Ti", 12, 20, 18),
    gpu("NVIDIA GeForce RTX 3080TI", 12, 20, 18),
    gpu("NVIDIA GeForce RTX 3090 Ti", 24, 46, 34),
    gpu("NVIDIA GeForce RTX 4070 Ti", 12, 20, 18),
    gpu("NVIDIA GeForce RTX 4080", 16, 28, 22),
    gpu("NVIDIA GeForce RTX 4080 SUPER", 16, 28, 22),
    gpu("NVIDIA GeForce RTX 5080", 16, 28, 22),
    gpu("NVIDIA RTX 4000 SFF Ada Generation", 20, 32, 25),
    gpu("NVIDIA RTX 5000 Ada Generation", 32, 89, 69),
    gpu("NVIDIA RTX A2000", 6, 12, 8),
    gpu("NVIDIA RTX A30", 24, 46, 34),
    gpu("Tesla T4", 16, 28, 22),
    gpu("Tesla V100-FHHL-16GB", 16, 28, 22),
    gpu("Tesla V100-PCIE-16GB", 16, 28, 22),
    gpu("Tesla V100-PCIE-32GB", 32, 89, 69),
    gpu("Tesla V100-SXM2-16GB", 16, 28, 22),
    gpu("Tesla V100-SXM2-32GB", 32, 89, 69),
];

/// Returns every GPU type.
pub(crate) fn all() -> &'static [Gpu] {
    GPUS
}

/// Returns the GPU type with this id.
pub(crate) fn find(id: &str) -> Option<&'static Gpu> {
    GPUS.iter().find(|gpu| gpu.id == id)
}

impl Gpu {
    /// Returns the name that people use: the id without the vendor.
    pub(crate) fn name(&self) -> String {
        let words = self.id.split_whitespace();
        let words: Vec<_> =
            words.filter(|word| !["NVIDIA", "AMD", "GeForce"].contains(word)).collect();
        words.join(" ")
    }

    pub(crate) fn manufacturer(&self) -> &'static str {
        if self.id.starts_with("AMD") { "AMD" } else { "NVIDIA" }
    }

    /// Returns the price in the secure cloud, in dollars for an hour.
    pub(crate) fn secure_price(&self) -> f64 {
        f64::from(self.secure) / 100.0
    }

    /// Returns the price in the community cloud, in dollars for an hour.
    pub(crate) fn community_price(&self) -> f64 {
        f64::from(self.community) / 100.0
    }

    /// Returns the pool of the GPU type; `None` if it cannot serve endpoints.
    pub(crate) fn pool(&self) -> Option<&'static str> {
        super::pool_of(self.id)
    }

    /// Returns the price of a worker with one GPU of this type, in dollars for an hour; `None`
    /// without a pool.
    pub(crate) fn serverless_price(&self) -> Option<f64> {
        let pool = self.pool()?;
        let (_, cents) = POOL_PRICES.iter().find(|(known, _)| *known == pool)?;
        Some(f64::from(*cents) / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_and_each_pool_has_a_price() {
        for id in super::super::known_gpu_types() {
            let gpu = find(id).unwrap_or_else(|| panic!("{id}"));
            assert_eq!(gpu.pool().is_some(), gpu.serverless_price().is_some(), "{id}");
        }
        assert_eq!(all().len(), super::super::known_gpu_types().count());
        assert_eq!(find("NVIDIA GeForce RTX 4090").unwrap().name(), "RTX 4090");
    }
}
