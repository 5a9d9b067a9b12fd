/*
Copyright The Kubernetes Authors.

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

package controller

import (
	"fmt"
	"hash"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
)

// noInterceptors is how a dump of a pod template ends whose pods have no eviction interceptors: they
// are the last field of the last field.
const noInterceptors = " EvictionInterceptors:([]v1.EvictionInterceptor)<nil>}}"

// hashTemplate writes a pod template to a hash. A dump names all fields, also those that are not set.
// Without interceptors, the template has the hash that it has upstream, so that ReplicaSets and the
// label pod-template-hash have the same names.
func hashTemplate(hasher hash.Hash, template *v1.PodTemplateSpec) {
	hasher.Reset()
	text := dump.ForHash(*template)
	if without, ok := strings.CutSuffix(text, noInterceptors); ok {
		text = without + "}}"
	}
	fmt.Fprint(hasher, text)
}
