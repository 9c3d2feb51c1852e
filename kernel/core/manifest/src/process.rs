//! One process.

use abi_types::{START_BYTES, StartFull, StartWriter};
use capnp::struct_list;
use core_ledger::Profile;
use schema::manifest::ResourceProfile;
use schema::manifest_capnp::{self, argument, process, resource_profile, variable};

use crate::profile::{check_profile, in_range};
use crate::{Error, Grant, Name, grant, limits};

/// A process to start.
#[derive(Clone, Copy)]
pub struct Process<'m> {
    /// Its name.
    pub name: &'m str,
    /// The boot module it is loaded from.
    pub binary: &'m str,
    /// Weight of its initial thread.
    pub weight: u16,
    /// Whether the system ends with it.
    pub is_essential: bool,
    /// Whether the kernel starts it; in a manifest of which no process is marked it starts all.
    pub is_boot: bool,
    /// What it may use.
    pub profile: Profile,
    arguments: struct_list::Reader<'m, argument::Owned>,
    environment: struct_list::Reader<'m, variable::Owned>,
    grants: struct_list::Reader<'m, manifest_capnp::grant::Owned>,
}

impl<'m> Process<'m> {
    /// How many grants it has.
    pub fn grant_count(&self) -> u32 {
        self.grants.len()
    }

    /// Its grants, in slot order.
    pub fn grants(&self) -> impl Iterator<Item = Result<Grant<'m>, Error>> + use<'m> {
        let (grants, process) = (self.grants, self.name);
        (0..grants.len()).map(move |index| grant::read(grants.get(index), process, index))
    }

    /// Whether it has arguments or an environment.
    pub fn has_start_page(&self) -> bool {
        !self.arguments.is_empty() || !self.environment.is_empty()
    }

    /// Fills its start page; how many bytes of it say something.
    pub fn write_start_page(&self, page: &mut [u8; START_BYTES]) -> Result<usize, Error> {
        let full = |StartFull| Error::StartPage(Name::new(self.name));
        let (arguments, variables) = (self.arguments.len(), self.environment.len());
        let mut writer =
            StartWriter::new(page, arguments as usize, variables as usize).map_err(full)?;
        for index in 0..arguments {
            writer.add(&[self.arguments.get(index).get_text()?.to_str()?]).map_err(full)?;
        }
        for index in 0..variables {
            let variable = self.environment.get(index);
            let name = variable.get_name()?.to_str()?;
            if !is_variable_name(name) {
                return Err(Error::VariableName(Name::new(self.name), index));
            }
            writer.add(&[name, "=", variable.get_value()?.to_str()?]).map_err(full)?;
        }
        Ok(writer.length())
    }

    /// Reads process number `index`.
    pub(crate) fn read(reader: process::Reader<'m>, index: u32) -> Result<Self, Error> {
        let name = reader.get_name()?.to_str()?;
        if !Name::is_good(name) {
            return Err(Error::ProcessName(index));
        }
        let binary = reader.get_binary()?.to_str()?;
        if !Name::is_good(binary) {
            return Err(Error::BinaryName(Name::new(name)));
        }
        let weight = reader.get_weight();
        in_range("weight", u32::from(weight), limits::WEIGHT)
            .map_err(|error| Error::Profile(Name::new(name), error))?;
        let profile = read_profile(reader.get_profile()?, name)?;
        let grants = reader.get_grants()?;
        let most = profile.cap_slots.min(limits::GRANTS as u32);
        if grants.len() > most {
            return Err(Error::GrantCount(Name::new(name), grants.len(), most));
        }
        let (is_essential, is_boot) = (reader.get_essential(), reader.get_boot());
        let (arguments, environment) = (reader.get_arguments()?, reader.get_environment()?);
        Ok(Self {
            name,
            binary,
            weight,
            is_essential,
            is_boot,
            profile,
            arguments,
            environment,
            grants,
        })
    }
}

/// Whether that can be the name of a variable: what is before the first `=` of its line.
pub fn is_variable_name(name: &str) -> bool {
    Name::is_good(name) && !name.contains('=')
}

/// Reads a profile; every number in its range.
fn read_profile(reader: resource_profile::Reader<'_>, process: &str) -> Result<Profile, Error> {
    let read = ResourceProfile {
        cap_slots: reader.get_cap_slots(),
        threads: reader.get_threads(),
        kernel_stack_pages: reader.get_kernel_stack_pages(),
        frames: reader.get_frames(),
        sleep_waiters: reader.get_sleep_waiters(),
        ring_entries: reader.get_ring_entries(),
        ring_scratch_limit_bytes: reader.get_ring_scratch_limit_bytes(),
        in_flight_call_limit: reader.get_in_flight_call_limit(),
        endpoint_queue_limit: reader.get_endpoint_queue_limit(),
        kernel_bytes: reader.get_kernel_bytes(),
        registered_buffers: reader.get_registered_buffers(),
    };
    check_profile(&read).map_err(|error| Error::Profile(Name::new(process), error))
}
