//! The lists of values that the service knows: GPU pools and types, data centres, CUDA versions.
//!
//! The lists contain the values of the interface document, and those that the real service has been
//! seen to take. They are data without behaviour; the rules that use them are in the modules of the
//! resources.

pub(crate) mod gpus;

/// GPU pools with the ids of the GPU types in them.
pub(crate) const POOLS: &[(&str, &[&str])] = &[
    (
        "AMPERE_16",
        &[
            "NVIDIA RTX A4000",
            "NVIDIA RTX A4500",
            "NVIDIA RTX 4000 Ada Generation",
            "NVIDIA RTX 2000 Ada Generation",
        ],
    ),
    ("AMPERE_24", &["NVIDIA L4", "NVIDIA RTX A5000", "NVIDIA GeForce RTX 3090"]),
    ("ADA_24", &["NVIDIA GeForce RTX 4090"]),
    ("ADA_32_PRO", &["NVIDIA GeForce RTX 5090"]),
    ("AMPERE_48", &["NVIDIA RTX A6000", "NVIDIA A40"]),
    ("ADA_48_PRO", &["NVIDIA L40", "NVIDIA L40S", "NVIDIA RTX 6000 Ada Generation"]),
    ("AMPERE_80", &["NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"]),
    ("ADA_80_PRO", &["NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL"]),
    ("HOPPER_141", &["NVIDIA H200", "NVIDIA H200 NVL"]),
    (
        "BLACKWELL_96",
        &[
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        ],
    ),
    ("BLACKWELL_180", &["NVIDIA B200"]),
];

/// The GPU types that belong to no pool.
const OTHER_GPU_TYPES: &[&str] = &[
    "AMD Instinct MI300X OAM",
    "NVIDIA  A30",
    "NVIDIA  RTX A4500",
    "NVIDIA A30",
    "NVIDIA A5000 Ada",
    "NVIDIA GeForce RTX 3070",
    "NVIDIA GeForce RTX 3080",
    "NVIDIA GeForce RTX 3080 Ti",
    "NVIDIA GeForce RTX 3080TI",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 4070 Ti",
    "NVIDIA GeForce RTX 4080",
    "NVIDIA GeForce RTX 4080 SUPER",
    "NVIDIA GeForce RTX 5080",
    "NVIDIA RTX 4000 SFF Ada Generation",
    "NVIDIA RTX 5000 Ada Generation",
    "NVIDIA RTX A2000",
    "NVIDIA RTX A30",
    "Tesla T4",
    "Tesla V100-FHHL-16GB",
    "Tesla V100-PCIE-16GB",
    "Tesla V100-PCIE-32GB",
    "Tesla V100-SXM2-16GB",
    "Tesla V100-SXM2-32GB",
];

/// Regions of the interface document.
pub(crate) const REGIONS: &[&str] = &["CZ", "FR", "GB", "NO", "RO", "US"];

/// Data centres.
pub(crate) const DATA_CENTERS: &[&str] = &[
    "EU-RO-1", "CA-MTL-1", "EU-SE-1", "US-IL-1", "EUR-IS-1", "EU-CZ-1", "US-TX-3", "EUR-IS-2",
    "US-KS-2", "US-GA-2", "US-WA-1", "US-TX-1", "CA-MTL-3", "EU-NL-1", "US-TX-4", "US-CA-2",
    "US-NC-1", "OC-AU-1", "US-DE-1", "EUR-IS-3", "CA-MTL-2", "AP-JP-1", "EUR-NO-1", "EU-FR-1",
    "US-KS-3", "US-GA-1", "US-MO-1", "US-MO-2", "US-NC-2", "US-NE-1", "US-MD-1",
];

/// CUDA versions.
pub(crate) const CUDA_VERSIONS: &[&str] = &[
    "13.0", "12.9", "12.8", "12.7", "12.6", "12.5", "12.4", "12.3", "12.2", "12.1", "12.0", "11.8",
];

/// CPU flavours that an endpoint can have.
pub(crate) const CPU_FLAVORS: &[&str] = &["cpu3c", "cpu3g", "cpu5c", "cpu5g"];

/// CPU flavours that a pod can have.
pub(crate) const POD_CPU_FLAVORS: &[&str] = &["cpu3c", "cpu3g", "cpu3m", "cpu5c", "cpu5g", "cpu5m"];

/// The most GPUs of one machine.
pub(crate) const GPUS_MAX: i64 = 8;

/// The price of one CPU, in dollars for an hour.
pub(crate) const VCPU_PRICE: f64 = 0.03;

/// Returns the gigabytes of memory for each CPU of a flavour.
pub(crate) fn memory_per_vcpu(flavor: &str) -> i64 {
    match flavor.as_bytes().last() {
        Some(b'm') => 8,
        Some(b'g') => 4,
        _ => 2,
    }
}

/// Returns the ids of all pools.
pub(crate) fn pools() -> Vec<&'static str> {
    POOLS.iter().map(|(pool, _)| *pool).collect()
}

/// Template categories.
pub(crate) const CATEGORIES: &[&str] = &["NVIDIA", "AMD", "CPU"];

/// Scaler types.
pub(crate) const SCALER_TYPES: &[&str] = &["QUEUE_DELAY", "REQUEST_COUNT"];

/// Endpoint types.
pub(crate) const ENDPOINT_TYPES: &[&str] = &["QB", "LB"];

/// Returns true if the text is the id of a GPU pool.
pub(crate) fn is_pool(id: &str) -> bool {
    POOLS.iter().any(|(pool, _)| *pool == id)
}

/// Returns true if the text is the id of a GPU type.
pub(crate) fn is_gpu_type(id: &str) -> bool {
    pool_of(id).is_some() || OTHER_GPU_TYPES.contains(&id)
}

/// Returns the pool of a GPU type; `None` if it belongs to no pool.
pub(crate) fn pool_of(gpu_type: &str) -> Option<&'static str> {
    POOLS.iter().find(|(_, members)| members.contains(&gpu_type)).map(|(pool, _)| *pool)
}

/// Returns the ids of all GPU types, those in pools first.
pub(crate) fn gpu_types() -> Vec<String> {
    known_gpu_types().map(str::to_owned).collect()
}

/// Iterates over the ids of all GPU types, those in pools first.
pub(crate) fn known_gpu_types() -> impl Iterator<Item = &'static str> {
    let pooled = POOLS.iter().flat_map(|(_, members)| members.iter());
    pooled.chain(OTHER_GPU_TYPES).copied()
}

/// Returns the regions and the data centres.
pub(crate) fn locations() -> Vec<&'static str> {
    [REGIONS, DATA_CENTERS].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gpu_type_is_listed_once() {
        let mut types = gpu_types();
        types.sort();
        let count = types.len();
        types.dedup();
        assert_eq!((count, types.len()), (49, 49));
        assert_eq!(pool_of("NVIDIA L4"), Some("AMPERE_24"));
        assert_eq!(pool_of("Tesla T4"), None);
    }
}
