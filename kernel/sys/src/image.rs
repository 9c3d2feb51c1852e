//! How this image was built.

use schema::system_info_capnp::ImageProfile;

/// The profile, for programs.
pub const PROFILE: ImageProfile = if cfg!(checked) {
    ImageProfile::Checked
} else if cfg!(measure) {
    ImageProfile::Measure
} else {
    ImageProfile::Release
};

/// Its name, for people.
pub const NAME: &str = match PROFILE {
    ImageProfile::Checked => "checked",
    ImageProfile::Measure => "measure",
    ImageProfile::Release => "release",
};
