#!/bin/sh
# Does nothing until it is told to end.
trap 'exit 0' TERM INT
while :; do
    sleep 3600 &
    wait $!
done
