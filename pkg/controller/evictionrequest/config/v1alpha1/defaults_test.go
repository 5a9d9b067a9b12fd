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
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/config"
)

func TestDefaults(t *testing.T) {
	var got v1alpha1.EvictionRequestControllerConfiguration
	RecommendedDefaultEvictionRequestControllerConfiguration(&got)
	want := v1alpha1.EvictionRequestControllerConfiguration{
		ConcurrentEvictionRequestSyncs:  20,
		ConcurrentEvictions:             30,
		EvictionRequestTTLAfterFinished: metav1.Duration{Duration: time.Hour},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	chosen := v1alpha1.EvictionRequestControllerConfiguration{
		ConcurrentEvictionRequestSyncs:  1,
		ConcurrentEvictions:             2,
		EvictionRequestTTLAfterFinished: metav1.Duration{Duration: time.Second},
	}
	got = chosen
	RecommendedDefaultEvictionRequestControllerConfiguration(&got)
	if got != chosen {
		t.Errorf("got %+v, want what was chosen: %+v", got, chosen)
	}
}

func TestConversion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	versioned := v1alpha1.EvictionRequestControllerConfiguration{
		ConcurrentEvictionRequestSyncs:  1,
		ConcurrentEvictions:             2,
		EvictionRequestTTLAfterFinished: metav1.Duration{Duration: time.Second},
	}
	var internal config.EvictionRequestControllerConfiguration
	if err := Convert_v1alpha1_EvictionRequestControllerConfiguration_To_config_EvictionRequestControllerConfiguration(&versioned, &internal, nil); err != nil {
		t.Fatal(err)
	}
	if want := (config.EvictionRequestControllerConfiguration{
		ConcurrentEvictionRequestSyncs:  1,
		ConcurrentEvictions:             2,
		EvictionRequestTTLAfterFinished: metav1.Duration{Duration: time.Second},
	}); internal != want {
		t.Errorf("got %+v, want %+v", internal, want)
	}
	var back v1alpha1.EvictionRequestControllerConfiguration
	if err := Convert_config_EvictionRequestControllerConfiguration_To_v1alpha1_EvictionRequestControllerConfiguration(&internal, &back, nil); err != nil {
		t.Fatal(err)
	}
	if back != versioned {
		t.Errorf("came back as %+v, want %+v", back, versioned)
	}
}
