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

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubectrlmgrconfigv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"
)

// RecommendedDefaultEvictionRequestControllerConfiguration sets the defaults of unset fields. The
// defaulting of the whole controller manager configuration calls it. It is not registered in the
// scheme: components that embed the type may choose other defaults.
func RecommendedDefaultEvictionRequestControllerConfiguration(obj *kubectrlmgrconfigv1alpha1.EvictionRequestControllerConfiguration) {
	if obj.ConcurrentEvictionRequestSyncs == 0 {
		// Each pod takes one eviction and one status, which is quicker. With fewer of these in flight,
		// the ends of pods are recorded late while the API server is busy.
		obj.ConcurrentEvictionRequestSyncs = 20
	}
	if obj.ConcurrentEvictions == 0 {
		// Each call takes about 100 ms in the API server, most of it waiting, so this number of
		// calls uses up the rate limit of the client.
		obj.ConcurrentEvictions = 30
	}
	if obj.EvictionRequestTTLAfterFinished == (metav1.Duration{}) {
		obj.EvictionRequestTTLAfterFinished = metav1.Duration{Duration: time.Hour}
	}
}
