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

package steps

import (
	"errors"
	"testing"
)

func TestAttempt(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		do   func()
		want string
	}{
		"nothing fails": {func() { Check(nil, "step"); Must(1, nil) }, ""},
		"check":         {func() { Check(broken) }, "broken"},
		"with words":    {func() { Check(broken, "step ", 1) }, "step 1: broken"},
		"must":          {func() { Must(1, broken) }, "broken"},
		"in another":    {func() { Check(Attempt(func() { Check(broken) }), "outer") }, "outer: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Attempt(tc.do)
			if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, broken) || err.Error() != tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestMistake: a panic that is no failure of a step remains one.
func TestMistake(t *testing.T) {
	defer func() {
		if r := recover(); r != "a mistake" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = Attempt(func() { panic("a mistake") })
	t.Error("a mistake was taken for a failure")
}
