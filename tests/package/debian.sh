#!/usr/bin/env bash
# The Debian packages of a folder, installed, used and removed in a bare Debian: tests/package/debian.sh FOLDER/packages
# [CHROOT]. Needs root, debootstrap and a package server. Without CHROOT one is made, and removed at the end.
set -euo pipefail
packages="$(realpath "$1")"
here="$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
suite="$(. /etc/os-release && echo "$VERSION_CODENAME")"
root="${2:-}"
if [ -z "$root" ]; then
  root="$(mktemp -d)"
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase "$suite" "$root" >/dev/null
fi
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
say() { printf '== %s\n' "$*"; }

mkdir -p "$root/packages"
cp "$packages"/*.deb "$root/packages/"
cp -r "$here/consumer" "$root/packages/"
inside sh -c 'ls /packages'
say "the program alone"
inside apt-get update -qq
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/longetc_*.deb' >/dev/null
inside etc --version
inside etc sample --task wikihop --records 10 --output /sample
inside etc prepare --task wikihop --split dev --input /sample/dev.json --vocab /sample/vocab.txt --splitter icu \
  --output /dev.h5
inside sh -c 'test -s /usr/share/man/man1/etc.1 && test -s /usr/share/bash-completion/completions/etc'
say "the library, its header and a stranger's project"
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/liblongetc*.deb cmake g++ make' >/dev/null
inside cmake -S /packages/consumer -B /consumer -D ETC_KIND=shared >/dev/null
inside cmake --build /consumer >/dev/null
inside /consumer/consumer /sample/vocab.txt "The tower" /nothing
say "removed"
inside sh -c 'apt-get purge -y -qq longetc liblongetc-dev "liblongetc[0-9]*"' >/dev/null
inside sh -c '! command -v etc && ! ls /usr/lib/*/liblongetc* /usr/include/etc /usr/share/longetc 2>/dev/null'
say "nothing is left"
