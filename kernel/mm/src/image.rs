//! Where the kernel's own image lies, from the linker script.

unsafe extern "C" {
    static kernel_text_start: u8;
    static kernel_text_end: u8;
    static kernel_rodata_end: u8;
    static kernel_data_end: u8;
}

/// Boundaries of the image's parts, all multiples of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image {
    pub(crate) text_start: u64,
    pub(crate) text_end: u64,
    pub(crate) rodata_end: u64,
    pub(crate) data_end: u64,
}

pub(crate) fn boundaries() -> Image {
    Image {
        text_start: &raw const kernel_text_start as u64,
        text_end: &raw const kernel_text_end as u64,
        rodata_end: &raw const kernel_rodata_end as u64,
        data_end: &raw const kernel_data_end as u64,
    }
}
