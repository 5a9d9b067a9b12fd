#!/usr/bin/env bash

# Copyright The Kubernetes Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Draws the pictures in docs/images from what programs print: watch.svg from the screen of
# "kubectl maintenance watch" on a local cluster, downtime.svg from what "make test-surge" has
# recorded, and dashboard.svg from what "make monitoring" has.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BIN=${PWD}/_output/bin CLUSTER=pictures IMAGES=docs/images
export KUBECONFIG=${PWD}/_output/clusters/${CLUSTER}.kubeconfig PATH=${BIN}:${PATH}
# Not the server of the user.
TMUX_SOCKET=pictures-$$
readonly TMUX_SOCKET

clean_up() {
  tmux -L "${TMUX_SOCKET}" kill-server 2>/dev/null || true
  cluster down --name "${CLUSTER}"
}

# A budget that allows no disruption blocks the drain of node-1: the one of the tutorial.
create_workloads() {
  kubectl create deployment web --image=registry.k8s.io/pause:3.10 --replicas=24
  kubectl apply --filename=- <<'YAML'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 4
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: registry.k8s.io/pause:3.10}]}
YAML
  kubectl rollout status deployment/web statefulset/db --timeout=1m
  kubectl create poddisruptionbudget db --selector=app=db --min-available=4
}

# Prints the command and the screen that it fills. Other pods than the blocked ones leave in seconds.
capture_watch() {
  local -r command='kubectl maintenance watch'
  tmux -L "${TMUX_SOCKET}" new-session -d -x 90 -y 40 "${command}"
  sleep 15
  echo "${command}"
  tmux -L "${TMUX_SOCKET}" capture-pane -p -t 0
}

main() {
  command -v tmux >/dev/null || { echo 'missing: tmux (Debian: apt-get install tmux)' >&2; exit 1; }
  [[ -e _output/surge.json ]] || { echo 'missing: _output/surge.json, which "make test-surge" writes' >&2; exit 1; }
  [[ -e _output/monitoring.json ]] || { echo 'missing: _output/monitoring.json, which "make monitoring" writes' >&2; exit 1; }
  mkdir -p "${IMAGES}"
  docs dashboard <_output/monitoring.json >"${IMAGES}/dashboard.svg"
  docs downtime <_output/surge.json >"${IMAGES}/downtime.svg"
  trap clean_up EXIT
  cluster up --name "${CLUSTER}" --nodes 4
  create_workloads
  kubectl maintenance start node-1 node-2 --name=kernel-upgrade --reason='kernel upgrade'
  capture_watch >_output/watch.txt
  docs watch <_output/watch.txt >"${IMAGES}/watch.svg"
}

main "$@"
