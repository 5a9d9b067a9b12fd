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

# Prints the rules of deploy/monitoring/rules.yaml for the operator of Prometheus. A test compares them.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cat <<HEADER
# "make deploy/monitoring/prometheusrule.yaml" writes this file from rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: graceful-evictions}
spec:
HEADER
sed -e '1,/^groups:/{/^groups:/!d}' -e 's/^./  &/' deploy/monitoring/rules.yaml
