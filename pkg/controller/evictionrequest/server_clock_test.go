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

package evictionrequest

import (
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServerStamp(t *testing.T) {
	at := func(seconds int64) *metav1.Time {
		stamp := metav1.Unix(seconds, 0)
		return &stamp
	}
	status := func(activation *metav1.Time, beats ...*metav1.Time) *coordinationv1alpha1.EvictionRequestStatus {
		status := &coordinationv1alpha1.EvictionRequestStatus{ActivationTime: activation}
		for i, name := range []string{"a.example.com", "imperative-eviction.k8s.io"} {
			if i < len(beats) {
				status.Interceptors = append(status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name, HeartbeatTime: beats[i]})
			}
		}
		return status
	}
	tests := map[string]struct {
		before, written *coordinationv1alpha1.EvictionRequestStatus
		want            int64 // None if zero.
	}{
		"first activation":             {status(nil), status(at(7), nil, nil), 7},
		"next activation":              {status(at(5), nil, nil), status(at(7), nil, nil), 7},
		"nothing":                      {status(at(7), nil, nil), status(at(7), nil, nil), 0},
		"no activation":                {status(nil), status(nil), 0},
		"a report of an interceptor":   {status(at(7), nil, nil), status(at(7), at(8), nil), 0},
		"the first built-in heartbeat": {status(at(7), nil, nil), status(at(7), nil, at(9)), 9},
		"the next built-in heartbeat":  {status(at(7), nil, at(9)), status(at(7), nil, at(70)), 70},
		"the same built-in heartbeat":  {status(at(7), nil, at(9)), status(at(7), nil, at(9)), 0},
	}
	for name, test := range tests {
		got, stamped := serverStamp(test.before, test.written)
		if stamped != (test.want != 0) || stamped && got.Unix() != test.want {
			t.Errorf("%s: %s, %t; want %d", name, got, stamped, test.want)
		}
	}
}
