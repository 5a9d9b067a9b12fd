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

package options

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/kubernetes/plugin/pkg/admission/evictionrequest"
	"k8s.io/kubernetes/plugin/pkg/admission/nodemaintenance"
)

// The plugins are on by default; their gates are off. They decide before other
// programs are asked.
func TestCoordinationPlugins(t *testing.T) {
	plugins := admission.NewPlugins()
	RegisterAllAdmissionPlugins(plugins)
	off := DefaultOffAdmissionPlugins()
	for _, name := range []string{evictionrequest.PluginName, nodemaintenance.PluginName} {
		if !slices.Contains(plugins.Registered(), name) {
			t.Errorf("%s is not registered", name)
		}
		if off.Has(name) {
			t.Errorf("%s is off by default", name)
		}
		place := slices.Index(AllOrderedPlugins, name)
		if place < 0 || place > slices.Index(AllOrderedPlugins, validatingwebhook.PluginName) {
			t.Errorf("%s has place %d, want one before the webhooks", name, place)
		}
	}
}
