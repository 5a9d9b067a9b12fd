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

package v1

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// SetDefaults_DownscalePodPicker sets the defaults of KEP-3189.
func SetDefaults_DownscalePodPicker(picker *v1.DownscalePodPicker) {
	if picker.MaxRetries == nil {
		picker.MaxRetries = ptr.To[int32](3)
	}
	if picker.TimeoutSeconds == nil {
		picker.TimeoutSeconds = ptr.To[int32](1)
	}
}

// SetDefaults_HTTPDownscalePodPicker sets the defaults of KEP-3189.
func SetDefaults_HTTPDownscalePodPicker(picker *v1.HTTPDownscalePodPicker) {
	if picker.Path == "" {
		picker.Path = "/"
	}
	switch picker.Scheme {
	case "", "http":
		picker.Scheme = v1.URISchemeHTTP
	case "https": // The KEP's example has it. Stored is what all versions of the controller read.
		picker.Scheme = v1.URISchemeHTTPS
	}
}
