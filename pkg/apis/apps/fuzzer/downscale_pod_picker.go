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

package fuzzer

import (
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// DownscalePodPickerFuncs fill downscale pod pickers, with the defaults that decoding sets.
var DownscalePodPickerFuncs = func(_ runtimeserializer.CodecFactory) []interface{} {
	return []interface{}{
		func(picker *core.DownscalePodPicker, c randfill.Continue) {
			c.FillNoCustom(picker)
			picker.MaxRetries = ptr.To(ptr.Deref(picker.MaxRetries, 3))
			picker.TimeoutSeconds = ptr.To(ptr.Deref(picker.TimeoutSeconds, 1))
		},
		func(picker *core.HTTPDownscalePodPicker, c randfill.Continue) {
			c.FillNoCustom(picker)
			if picker.Path == "" {
				picker.Path = "/"
			}
			if picker.Scheme == "" {
				picker.Scheme = core.URISchemeHTTP
			}
		},
	}
}
