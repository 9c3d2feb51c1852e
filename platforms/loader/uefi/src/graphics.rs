//! The screen: a linear framebuffer in the mode that was asked for, if there is one.

use arrayvec::ArrayVec;
use loader_core::boot::VideoMode;
use loader_core::config::Resolution;
use uefi::boot::{self, OpenProtocolAttributes, OpenProtocolParams};
use uefi::proto::console::gop::{EdidDiscovered, GraphicsOutput, ModeInfo, PixelFormat};

/// Modes reported; firmware rarely has more than thirty.
const MAX_MODES: usize = 64;

/// An EDID of four blocks.
const MAX_EDID: usize = 512;

/// A framebuffer and what is known about its display.
#[derive(Clone, Debug)]
pub struct Display {
    /// Physical address.
    pub base: u64,
    /// Current mode.
    pub mode: VideoMode,
    /// Every mode with a linear framebuffer.
    pub modes: ArrayVec<VideoMode, MAX_MODES>,
    /// EDID, empty if unknown.
    pub edid: ArrayVec<u8, MAX_EDID>,
}

/// The mode in the protocol's terms, or `None` without a linear framebuffer.
fn video_mode(info: &ModeInfo) -> Option<VideoMode> {
    const BYTES_PER_PIXEL: u64 = 4;
    let masks = match info.pixel_format() {
        PixelFormat::Rgb => [8, 0, 8, 8, 8, 16],
        PixelFormat::Bgr => [8, 16, 8, 8, 8, 0],
        PixelFormat::Bitmask => {
            let bits = info.pixel_bitmask()?;
            let size = |mask: u32| mask.count_ones() as u8;
            let shift = |mask: u32| if mask == 0 { 0 } else { mask.trailing_zeros() as u8 };
            let (red, green, blue) = (bits.red, bits.green, bits.blue);
            [size(red), shift(red), size(green), shift(green), size(blue), shift(blue)]
        }
        PixelFormat::BltOnly => return None,
    };
    let (width, height) = info.resolution();
    Some(VideoMode {
        pitch: info.stride() as u64 * BYTES_PER_PIXEL,
        width: width as u64,
        height: height as u64,
        bpp: 32,
        masks,
    })
}

/// Sets the wanted mode if the display has it, and describes what there is then.
pub fn set_up(wanted: Option<Resolution>) -> Option<Display> {
    let handle = boot::get_handle_for_protocol::<GraphicsOutput>().ok()?;
    let parameters =
        || OpenProtocolParams { handle, agent: boot::image_handle(), controller: None };
    // SAFETY: opened beside the firmware's text console, which shows our messages; it draws
    // only when asked to, and nothing is closed while this is in use.
    let mut output = unsafe {
        boot::open_protocol::<GraphicsOutput>(parameters(), OpenProtocolAttributes::GetProtocol)
            .ok()?
    };
    if let Some(wanted) = wanted {
        let same = |info: &ModeInfo| {
            video_mode(info).is_some_and(|mode| {
                mode.width == u64::from(wanted.width)
                    && mode.height == u64::from(wanted.height)
                    && mode.bpp >= wanted.bpp
            })
        };
        if !same(&output.current_mode_info())
            && let Some(mode) = output.modes().find(|mode| same(mode.info()))
        {
            // A display that refuses keeps its mode, which is what is reported then.
            let _ = output.set_mode(&mode);
        }
    }
    let mode = video_mode(&output.current_mode_info())?;
    let modes = output.modes().filter_map(|mode| video_mode(mode.info())).take(MAX_MODES).collect();
    let base = output.frame_buffer().as_mut_ptr() as u64;
    // SAFETY: as above; the bytes are copied at once.
    let edid = unsafe {
        boot::open_protocol::<EdidDiscovered>(parameters(), OpenProtocolAttributes::GetProtocol)
    };
    let edid = edid.as_ref().ok().and_then(|edid| edid.edid()).unwrap_or(&[]);
    let edid = edid.iter().copied().take(MAX_EDID).collect();
    Some(Display { base, mode, modes, edid })
}
