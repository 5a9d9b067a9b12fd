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
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A request that only requesters of lifecycle.k8s.io may want waits until it was compared with their requests: they may
// have withdrawn while nothing ran. Others do not wait.
func TestWaitsForAgreement(t *testing.T) {
	for name, tc := range map[string]struct {
		requesters []string
		waits      bool
	}{
		"one of the group":       {[]string{"example.com/drainer"}, true},
		"several of the group":   {[]string{"example.com/drainer", "example.com/scaler"}, true},
		"one of each group":      {[]string{"example.com/drainer", "drainer.example.com"}, false},
		"one of the other":       {[]string{"drainer.example.com"}, false},
		"one that has come here": {[]string{"nodemaintenance.k8s.io"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(requestedBy(tc.requesters...), having(targets(), active(builtIn, 0)))
			unprocessed := newRequest(requestedBy(tc.requesters...))
			f, decided := newFixture(t, request, newPod()), newFixture(t, unprocessed, newPod(interceptedBy(first)))
			for _, f := range []*fixture{f, decided} {
				if err := f.LetRespondersAct(); err != nil {
					t.Fatal(err)
				}
			}
			for compared := range 2 {
				f.syncEviction(t, requestKeyOfPod)
				if err := decided.Controller.syncRequest(context.Background(), requestKeyOfPod); err != nil {
					t.Fatal(err)
				}
				waits := tc.waits && compared == 0
				if got := len(f.evicted) == 0; got != waits {
					t.Errorf("evicted %d pods, must wait: %t", len(f.evicted), waits)
				}
				if got := len(decided.writes(t)) == 0; got != waits {
					t.Errorf("the first interceptor waits: %t, must wait: %t", got, waits)
				}
				f.compared.Set(requestKeyOfPod, sets.New(tc.requesters...))
				decided.compared.Set(requestKeyOfPod, sets.New(tc.requesters...))
				f.clock.Step(agreementInterval)
			}
		})
	}
}

// With the gate off, nothing is compared, and nothing waits.
func TestWaitsForNoAgreementWithTheGateOff(t *testing.T) {
	f := newFixture(t, newRequest(requestedBy("example.com/drainer"), having(targets(), active(builtIn, 0))), newPod())
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 1 {
		t.Errorf("evicted %d pods", len(f.evicted))
	}
}

// When the pod is gone, nobody waits to be told so.
func TestWaitsForNoAgreementWithoutPod(t *testing.T) {
	f := newFixture(t, newRequest(requestedBy("example.com/drainer"), having(targets(), active(builtIn, 0))))
	if err := f.LetRespondersAct(); err != nil {
		t.Fatal(err)
	}
	if err := f.Controller.syncRequest(context.Background(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	if writes := f.writes(t); len(writes) != 1 {
		t.Errorf("%d writes: %v", len(writes), writes)
	}
}
