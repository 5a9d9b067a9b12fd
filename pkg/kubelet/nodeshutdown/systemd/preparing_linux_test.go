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

package systemd

import "testing"

func TestPreparingForShutdown(t *testing.T) {
	const property = "org.freedesktop.login1.Manager.PreparingForShutdown"
	for name, test := range map[string]struct {
		properties map[string]any
		want       bool
		wantError  bool
	}{
		"yes":     {properties: map[string]any{property: true}, want: true},
		"no":      {properties: map[string]any{property: false}},
		"unknown": {wantError: true},
		"text":    {properties: map[string]any{property: "yes"}, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			bus := DBusCon{SystemBus: &fakeSystemDBus{fakeDBusObject: &fakeDBusObject{properties: test.properties}}}
			got, err := bus.PreparingForShutdown()
			if got != test.want || (err != nil) != test.wantError {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
