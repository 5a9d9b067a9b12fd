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

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvictionRequestControllerConfiguration configures the evictionrequest-controller.
type EvictionRequestControllerConfiguration struct {
	// concurrentEvictionRequestSyncs is the number of eviction requests that are synced at a time.
	// Positive; default 20.
	ConcurrentEvictionRequestSyncs int32
	// concurrentEvictions is the number of concurrent calls of the pods/eviction subresource.
	// Positive; default 30.
	ConcurrentEvictions int32
	// evictionRequestTTLAfterFinished is how long a finished eviction request is kept before it is
	// deleted, so that users can read it. Not negative; default one hour. Zero on the command line
	// keeps finished requests.
	EvictionRequestTTLAfterFinished metav1.Duration
}
