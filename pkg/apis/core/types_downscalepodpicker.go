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

package core

import "k8s.io/apimachinery/pkg/util/intstr"

// DownscalePodPicker is a server of the application that is asked which pods to remove when a
// ReplicaSet is scaled down (KEP-3189).
type DownscalePodPicker struct {
	// HTTP is how the picker is asked. Required, because there is no other protocol.
	HTTP *HTTPDownscalePodPicker
	// MaxRetries is how often the picker is asked again after an attempt that failed, 0 to 10.
	MaxRetries *int32
	// TimeoutSeconds is how long one attempt may take, 1 to 30.
	TimeoutSeconds *int32
}

// HTTPDownscalePodPicker is a picker that is asked with an HTTP POST.
type HTTPDownscalePodPicker struct {
	// Host is a Service, or a name or IP address that the administrator allows.
	Host string
	// Port is a number or, if Host is a Service, the name of one of its ports.
	Port intstr.IntOrString
	// Path begins with a slash.
	Path string
	// Scheme is HTTP or HTTPS.
	Scheme URIScheme
	// CABundle has the certificates, in PEM, by which that of the picker is verified.
	CABundle []byte
	// HTTPHeaders are further headers of the request.
	HTTPHeaders []HTTPDownscalePodPickerHeader
}

// HTTPDownscalePodPickerHeader is a header with either a value or a source of it.
type HTTPDownscalePodPickerHeader struct {
	Name      string
	Value     string
	ValueFrom *HTTPDownscalePodPickerHeaderSource
}

// HTTPDownscalePodPickerHeaderSource is where the value of a header is read.
type HTTPDownscalePodPickerHeaderSource struct {
	// SecretKeyRef is a key of a Secret in the namespace of the ReplicaSet.
	SecretKeyRef *SecretKeySelector
}
