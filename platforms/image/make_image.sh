#!/bin/bash
# Packs a boot medium: the same files always give the same bytes.
#
#   make_image bundle OUT       PATH=FILE...   an uncompressed ustar archive
#   make_image iso OUT          PATH=FILE...   a hybrid image with an EFI system partition
#   make_image limine-iso OUT DIR PATH=FILE... the same tree under a stock Limine from DIR (BIOS and UEFI)
#
# PATH is the place on the medium. Times, owners, serial numbers and identifiers are fixed
# here; nothing of the building machine enters the image.
set -euo pipefail
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=1704067200 # 2024-01-01; FAT cannot say 1970
umask 022

readonly VOLUME=CAPOS
readonly FAT_SERIAL=ca905001
readonly DISK_GUID=ca905000000040008000ca9050000000
readonly ESP_TYPE=C12A7328-F81F-11D2-BA4B-00A0C93EC93B

die() { echo "make_image: $*" >&2; exit 2; }

# lay_tree ROOT PATH=FILE...: copies the files to their places, all with the fixed time.
lay_tree() {
  local root=$1 entry; shift
  for entry; do
    [[ $entry == ?*=?* ]] || die "'$entry' is not of the form PATH=FILE"
    mkdir -p "$root/$(dirname "${entry%%=*}")"
    cp -L "${entry#*=}" "$root/${entry%%=*}"
  done
  find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# make_esp IMAGE ROOT: a FAT file system that holds the tree and little more.
make_esp() {
  local image=$1 root=$2 bytes sectors
  bytes=$(find "$root" -type f -printf '%s\n' | awk '{ s += int(($1 + 8191) / 8192) * 8192 } END { print s + 0 }')
  # Room for the tables and directories; never below 2.25 MiB, so that FAT16 is legal: it has 4,085 clusters or more.
  # A cluster is a sector up to 16 MiB, and larger as mformat finds it beyond.
  sectors=$(((bytes + bytes / 32 + 256 * 1024) / 512 / 64 * 64))
  if ((sectors < 4608)); then sectors=4608; fi
  local cluster=()
  if ((sectors <= 32768)); then cluster=(-c 1); fi
  truncate -s $((sectors * 512)) "$image"
  MTOOLS_SKIP_CHECK=1 mformat -i "$image" -T "$sectors" -h 64 -s 32 "${cluster[@]}" -N "$FAT_SERIAL" -v "$VOLUME" ::
  (cd "$root" && find . -mindepth 1 -type d -printf '%P\n' | sort) | while read -r d; do mmd -i "$image" "::$d"; done
  (cd "$root" && find . -type f -printf '%P\n' | sort) | while read -r f; do mcopy -i "$image" "$root/$f" "::$f"; done
}

# run_xorriso OUT ARGUMENT...: an ISO 9660 image with fixed identifiers and dates.
run_xorriso() {
  local out=$1; shift
  xorriso -as mkisofs -quiet -r -J -V "$VOLUME" \
    --modification-date=2024010100000000 --set_all_file_dates 2024010100000000 --gpt_disk_guid "$DISK_GUID" \
    "$@" -o "$out" 2>"$work/xorriso.log" || { cat "$work/xorriso.log" >&2; die "xorriso failed"; }
}

[[ $# -ge 2 ]] || die "usage: bundle OUT PATH=FILE... | iso OUT PATH=FILE... | limine-iso OUT DIR PATH=FILE..."
kind=$1 out=$2; shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

case $kind in
  bundle)
    lay_tree "$work/tree" "$@"
    tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
      -C "$work/tree" -cf "$out" $(cd "$work/tree" && find . -mindepth 1 -maxdepth 1 -printf '%P\n' | sort)
    ;;
  iso)
    lay_tree "$work/tree" "$@"
    make_esp "$work/esp.img" "$work/tree"
    run_xorriso "$out" -append_partition 2 "$ESP_TYPE" "$work/esp.img" -appended_part_as_gpt -partition_offset 16 \
      -e --interval:appended_partition_2:all:: -no-emul-boot "$work/tree"
    ;;
  limine-iso)
    limine=$1; shift
    for f in limine-bios.sys limine-bios-cd.bin limine-uefi-cd.bin BOOTX64.EFI; do
      [[ -f $limine/$f ]] || die "$limine has no $f: --//platforms:limine wants the folder of a binary Limine release, inside the workspace or the cache"
    done
    lay_tree "$work/tree" "$@" boot/limine/limine-bios.sys="$limine/limine-bios.sys" \
      boot/limine/limine-bios-cd.bin="$limine/limine-bios-cd.bin" boot/limine/limine-uefi-cd.bin="$limine/limine-uefi-cd.bin" \
      EFI/BOOT/BOOTX64.EFI="$limine/BOOTX64.EFI"
    run_xorriso "$out" -b boot/limine/limine-bios-cd.bin -no-emul-boot -boot-load-size 4 -boot-info-table \
      --efi-boot boot/limine/limine-uefi-cd.bin -efi-boot-part --efi-boot-image --protective-msdos-label "$work/tree"
    # Limine's own tool writes its first stage into the MBR, for BIOS boot from a disk.
    if [[ -x $limine/limine ]]; then "$limine/limine" bios-install "$out" >&2; fi
    ;;
  *) die "unknown kind '$kind': bundle, iso or limine-iso" ;;
esac
