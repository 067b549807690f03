#!/usr/bin/env bash
# The Debian packages of a folder, installed into an empty tree with a package database of its own, used and removed:
# tests/package/debian.sh build/package/packages. The libraries they depend on are this machine's, and are asked for.
set -euo pipefail
packages="$(realpath "$1")"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/triggers"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
own_dpkg() {
  dpkg --log="$root/dpkg.log" --instdir="$root" --admindir="$root/var/lib/dpkg" --force-script-chrootless \
    --force-depends "$@" >"$root/dpkg.txt" 2>&1 || { cat "$root/dpkg.txt"; exit 1; }
}
# none WHAT LIST: the list is empty.
none() { [ -z "$2" ] || { printf 'expected no %s, got:\n%s\n' "$1" "$2"; exit 1; }; }
say() { printf '== %s\n' "$*"; }

say "what they depend on can be had"
for package in "$packages"/longetc_*.deb "$packages"/liblongetc[0-9]*.deb; do
  apt-get satisfy -s -qq "$(dpkg-deb -f "$package" Depends)" >/dev/null
done
say "installed"
own_dpkg -i "$packages"/longetc_*.deb "$packages"/liblongetc*.deb
etc="$root/usr/bin/etc"
"$etc" --version
"$etc" sample --task wikihop --records 10 --output "$root/sample"
"$etc" prepare --task wikihop --split dev --input "$root/sample/dev.json" --vocab "$root/sample/vocab.txt" \
  --splitter icu --output "$root/dev.h5"
for file in man/man1/etc.1 bash-completion/completions/etc zsh/vendor-completions/_etc fish/vendor_completions.d/etc.fish; do
  test -s "$root/usr/share/$file"
done
test -s "$root/usr/include/etc/longetc.h"
library="$(find "$root/usr/lib" -name 'liblongetc.so.*.*.*')"
none "libraries that are not found" "$(ldd "$library" | grep 'not found' || true)"
say "removed"
own_dpkg --purge longetc liblongetc-dev "$(dpkg-deb -f "$packages"/liblongetc[0-9]*.deb Package)"
none "files left behind" "$(find "$root" -path '*/usr/*' -type f)"
say "nothing is left"
