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
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/nodemaintenance"
)

// KubeletFeature is what a kubelet declares in status.declaredFeatures of its node if it stops static pods for
// maintenances. It is the name of its feature gate.
const KubeletFeature = nodemaintenance.AwareKubelet

// forkMetadata begins the build metadata of the versions of this fork.
const forkMetadata = "+graceful"

// firstDeclaringKubelet is the first version of the base on which kubelets of this fork declare KubeletFeature.
var firstDeclaringKubelet = version.MajorMinor(1, 37)

// StopsStaticPods reports whether the kubelet of a node stops static pods for maintenances. Kubelets of this fork
// on an earlier base do not say whether they do: they may.
func StopsStaticPods(node *v1.Node) bool {
	if slices.Contains(node.Status.DeclaredFeatures, KubeletFeature) {
		return true
	}
	if !strings.Contains(node.Status.NodeInfo.KubeletVersion, forkMetadata) {
		return false
	}
	kubelet, err := version.ParseSemantic(node.Status.NodeInfo.KubeletVersion)
	return err == nil && kubelet.LessThan(firstDeclaringKubelet)
}

// unstopped stands between the pods that stay because their own controller takes no part in maintenances, and why
// it does not.
const unstopped = ", which nobody stops: "

// UnstoppedSentence is the sentence of the condition Drained about pods of a type that stay because their own
// controller takes no part in maintenances. why says what is off, and where.
func UnstoppedSentence(pods int, podType v1.PodType, why string) string {
	kind := "DaemonSet"
	if podType == v1.PodTypeStatic {
		kind = "static"
	}
	return counted(pods, kind+" pod stays", kind+" pods stay") + unstopped + why + "."
}

// UnstoppedSentences returns the sentences of that kind in the message of a condition, without their full stops,
// and how many pods they count.
func UnstoppedSentences(message string) (sentences []string, pods int) {
	for sentence := range strings.SplitSeq(strings.TrimSuffix(message, "."), ". ") {
		counted, _, found := strings.Cut(sentence, " ")
		if n, err := strconv.Atoi(counted); found && err == nil && strings.Contains(sentence, unstopped) {
			sentences, pods = append(sentences, sentence), pods+n
		}
	}
	return sentences, pods
}
