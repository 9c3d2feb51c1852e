#!/bin/bash
# make_image: same files, same bytes, whatever the clock, time zone, umask and folder say;
# and what is asked for is what is on the medium.
set -euo pipefail
make_image=$PWD/$1
failures=0
check() { # check WHAT COMMAND...: runs the command, counts a failure
  local what=$1; shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
cd "$TEST_TMPDIR"
head -c 300000 /dev/zero | tr '\0' 'k' >kernel; echo 'timeout: 0' >conf; head -c 70000 /dev/zero | tr '\0' 'e' >efi
entries=(boot/kernel.elf=kernel limine.conf=conf)

"$make_image" bundle a.tar "${entries[@]}"
"$make_image" iso a.iso EFI/BOOT/BOOTX64.EFI=efi "${entries[@]}"

# Another folder, umask, time zone and, for everything a file's time could leak into, date.
mkdir other; cp kernel conf efi other/; touch -d '2031-05-06 07:08:09' other/*
(
  cd other; umask 077
  export TZ=Pacific/Auckland
  faketime=(faketime -f '@2037-08-09 10:11:12')
  command -v faketime >/dev/null || { echo "no faketime in the tool chain: the date cannot be changed"; exit 1; }
  "${faketime[@]}" "$make_image" bundle b.tar "${entries[@]}"
  "${faketime[@]}" "$make_image" iso b.iso EFI/BOOT/BOOTX64.EFI=efi "${entries[@]}"
)
check "the bundle is the same bytes" cmp a.tar other/b.tar
check "the image is the same bytes" cmp a.iso other/b.iso

check "the bundle holds the tree" diff <(tar tf a.tar) - <<'LIST'
boot/
boot/kernel.elf
limine.conf
LIST

# The EFI partition: found through the GPT, read back through FAT.
start=$(od -An -t u8 -j $((512 * 2 + 128 + 32)) -N 8 a.iso | tr -d ' ')
esp="a.iso@@$((start * 512))"
check "the loader is in the EFI partition" cmp efi <(mtype -i "$esp" ::EFI/BOOT/BOOTX64.EFI)
check "the kernel is in the EFI partition" cmp kernel <(mtype -i "$esp" ::boot/kernel.elf)
check "the configuration is in the EFI partition" cmp conf <(mtype -i "$esp" ::limine.conf)
# What decides between FAT12 and FAT16 is the count of clusters: mformat made it FAT16, so there are enough.
check "the EFI partition is FAT16" grep -q 'disk type="FAT16' <(minfo -i "$esp" :: 2>/dev/null)
check "the EFI partition is as small as FAT16 can be" test "$(stat -c %s a.iso)" -lt $((4 * 1024 * 1024))
check "the CD has an El Torito entry for UEFI" grep -q 'UEFI' <(xorriso -indev a.iso -report_el_torito plain 2>/dev/null)

# A stock Limine: only its packaging can be tested, with stand-ins for its files.
mkdir limine
for f in limine-bios.sys limine-uefi-cd.bin BOOTX64.EFI; do head -c 65536 /dev/zero | tr '\0' 'l' >"limine/$f"; done
if "$make_image" limine-iso bad.iso limine "${entries[@]}" 2>err; then echo "FAILED: a release without limine-bios-cd.bin was taken"; failures=$((failures + 1)); fi
check "a missing file is named" grep -q 'limine-bios-cd.bin' err
head -c 65536 /dev/zero | tr '\0' 'l' >limine/limine-bios-cd.bin
"$make_image" limine-iso limine.iso limine "${entries[@]}"
report=$(xorriso -indev limine.iso -report_el_torito plain 2>/dev/null)
check "Limine's image boots by BIOS" grep -q 'BIOS.*y.*none' <<<"$report"
check "Limine's image boots by UEFI" grep -q 'UEFI.*y.*none' <<<"$report"
xorriso -osirrox on -indev limine.iso -extract /boot/limine/limine-bios.sys x.sys -extract /limine.conf x.conf >/dev/null 2>&1
check "Limine's own files are there" cmp limine/limine-bios.sys x.sys
check "our configuration is where Limine looks" cmp conf x.conf

if "$make_image" iso bad.iso nonsense 2>err; then echo "FAILED: a malformed entry was taken"; failures=$((failures + 1)); fi
check "a malformed entry is explained" grep -q 'PATH=FILE' err
[[ $failures == 0 ]] || { echo "$failures failed"; exit 1; }
