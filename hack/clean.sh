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

# Removes the built programs, the tree and the base, not the caches of Go.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -e _output/kubernetes ]]; then
  CGO_ENABLED=0 GOWORK=off go run -trimpath -buildvcs=false -gcflags=all=-dwarf=false ./hack/tree verify || {
    echo 'make clean: the tree may hold edits that are not in the repository: run "make refresh" first, or do what verify says' >&2
    exit 1
  }
fi
rm -rf _output/base _output/bin _output/kubernetes _output/predecessor
