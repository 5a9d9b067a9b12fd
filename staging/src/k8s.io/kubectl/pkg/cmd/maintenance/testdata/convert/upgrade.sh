#!/bin/bash
# Nodes are drained one after the other: kubectl drain would not do more.
set -eu
kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data \
  --force --timeout=10m   # the whole node
ssh node-1 'reboot now'
kubectl wait --for=condition=Ready node/node-1 && kubectl uncordon node-1

if ! sudo kubectl --context=prod drain "node-2" 'node-3' --ignore-daemonsets 2>/dev/null; then
  echo "kubectl drain node-2 has failed" >&2
  exit 1
fi
kubectl drain --selector='pool=batch,gpu' --pod-selector='app=training' --grace-period=30 --disable-eviction --skip-wait-for-delete-timeout=20 --chunk-size=100
kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data --force --timeout=10m
kubectl drain node-4 --dry-run=server
cat <<END
kubectl drain node-5
END
k drain node-6
