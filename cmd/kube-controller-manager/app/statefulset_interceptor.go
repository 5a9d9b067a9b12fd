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

package app

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/features"
)

// interceptStatefulSetEvictions makes the StatefulSet controller an interceptor, if its gate
// is on.
func interceptStatefulSetEvictions(controllerContext ControllerContext, controllerName string, ssc *statefulset.StatefulSetController) (runInterceptor, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.StatefulSetEvictionPacing) {
		return nil, nil
	}
	// With a separate client, reports do not delay the creation of pods.
	client, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	return ssc.InterceptEvictions(client, controllerContext.InformerFactory)
}
