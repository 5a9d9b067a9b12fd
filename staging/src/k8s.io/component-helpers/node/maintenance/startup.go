/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package maintenance

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// startupTaints are on nodes that cannot run pods yet. Those of cloud providers and autoscalers have
// prefixes.
var (
	startupTaints = []string{
		v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService,
		"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
	}
	startupTaintPrefixes = []string{"startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"}
)

// IsStartupTaint reports whether a taint says that its node cannot run pods yet. A maintenance with a
// rollout does not give the node back before. Others, as those of pools for some pods, stay for good.
func IsStartupTaint(taint v1.Taint) bool {
	return slices.Contains(startupTaints, taint.Key) ||
		slices.ContainsFunc(startupTaintPrefixes, func(prefix string) bool { return strings.HasPrefix(taint.Key, prefix) })
}
