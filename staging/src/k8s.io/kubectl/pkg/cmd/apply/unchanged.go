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

package apply

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// leftUnchanged reports whether kube-apiserver has stored nothing for a patch of a NodeMaintenance. What it completes
// on creation, such as the drain plan, or keeps at the end, the stage, differs from the manifest for ever: so there is
// a patch at each apply, which the server takes for what is stored. Whether other kinds are printed as configured
// although nothing was stored is upstream's.
func leftUnchanged(strategy cmdutil.DryRunStrategy, before, after runtime.Object) bool {
	if strategy != cmdutil.DryRunNone || before == nil || after == nil {
		return false // A dry run stores nothing, whatever it changes.
	}
	kind := after.GetObjectKind().GroupVersionKind().GroupKind()
	if kind != (schema.GroupKind{Group: "coordination.k8s.io", Kind: "NodeMaintenance"}) {
		return false
	}
	old, oldErr := meta.Accessor(before)
	stored, storedErr := meta.Accessor(after)
	return oldErr == nil && storedErr == nil && stored.GetResourceVersion() != "" &&
		old.GetUID() == stored.GetUID() && old.GetResourceVersion() == stored.GetResourceVersion()
}
