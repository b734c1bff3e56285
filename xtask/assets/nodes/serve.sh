#!/bin/sh
# Serves the version of its image, at /version, until it is told to end.
trap 'exit 0' TERM INT
httpd -f -p "${PORT:-80}" -h /www &
wait $!
