#![feature(vec_push_within_capacity)]
#![no_std]
#![no_main]
extern crate alloc;
#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
struct A; unsafe impl core::alloc::GlobalAlloc for A { unsafe fn alloc(&self,_:core::alloc::Layout)->*mut u8{core::ptr::null_mut()} unsafe fn dealloc(&self,_:*mut u8,_:core::alloc::Layout){} }
#[global_allocator] static G: A = A;
#[unsafe(no_mangle)] pub extern "C" fn _start(x: u64) -> u64 { let mut v = alloc::vec::Vec::new(); v.try_reserve(x as usize).ok(); let w = v.capacity() as u64; v.push_within_capacity(0u8).ok(); w }
#[unsafe(no_mangle)] pub extern "C" fn efi_main(x: u64) -> u64 { x }
