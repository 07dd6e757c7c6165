#!/usr/bin/env bash
# Makes the Dockerfile's base image (debian:12-slim) from Debian's packages, for buildah where images cannot be pulled.
# Needs root, buildah and debootstrap. The image is a minimal Debian 12 without what Debian's own slim image lacks (manuals,
# translations, documents but licences); nothing else is put into it.
set -euo pipefail
image=debian:12-slim
read -r -a mirror <<<"${DEBIAN_MIRROR:-}" # none: debootstrap's default
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}

if buildah inspect --type image "$image" >/dev/null 2>&1; then
    echo "container_base: $image is there already"
    exit 0
fi
for program in buildah debootstrap; do
    command -v "$program" >/dev/null || { echo "container_base: $program is not there: apt-get install $program" >&2; exit 1; }
done
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root/fs" "${mirror[@]}"
echo 'deb http://deb.debian.org/debian-security bookworm-security main' >>"$root/fs/etc/apt/sources.list"
unneeded=(/usr/share/doc /usr/share/info /usr/share/lintian /usr/share/linda /usr/share/locale /usr/share/man)
# As in Debian's slim image: packages that are installed later leave these out too.
{
    printf 'path-exclude %s/*\n' "${unneeded[@]}"
    printf 'path-include /usr/share/doc/*/copyright\n'
} >"$root/fs/etc/dpkg/dpkg.cfg.d/slim"
echo 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };' >"$root/fs/etc/apt/apt.conf.d/docker-clean"
for folder in "${unneeded[@]}"; do
    [ ! -d "$root/fs$folder" ] || find "$root/fs$folder" \( -type f -o -type l \) ! -name copyright -delete
done
rm -rf "$root"/fs/var/cache/apt/* "$root"/fs/var/lib/apt/lists/* "$root"/fs/var/log/*
container=$(buildah from scratch)
buildah add --quiet "$container" "$root/fs" /
buildah config --cmd /bin/bash "$container"
buildah commit --quiet "$container" "$image"
buildah rm "$container" >/dev/null
echo "container_base: made $image"
