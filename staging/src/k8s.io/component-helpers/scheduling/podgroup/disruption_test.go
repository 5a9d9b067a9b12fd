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

package podgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

var (
	single    = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
	all       = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	singleSet = &schedulingv1alpha3.CompositeDisruptionMode{Single: &schedulingv1alpha3.SingleCompositeDisruptionMode{}}
	allSet    = &schedulingv1alpha3.CompositeDisruptionMode{All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}
	laterSet  = &schedulingv1alpha3.CompositeDisruptionMode{}
)

func TestModeOf(t *testing.T) {
	errUnreachable := errors.New("unreachable")
	type composite struct {
		mode   *schedulingv1alpha3.CompositeDisruptionMode
		parent string
	}
	for name, test := range map[string]struct {
		mode    *schedulingv1beta1.DisruptionMode
		parent  string
		above   map[string]composite
		err     error
		want    Mode
		wantErr error
		reads   string
	}{
		"no mode":                        {want: Single},
		"a mode of a later release":      {mode: &schedulingv1beta1.DisruptionMode{}, want: Unknown},
		"single":                         {mode: single, want: Single},
		"all":                            {mode: all, want: All},
		"all, which needs no parent":     {mode: all, parent: "a", want: All},
		"the parent has no mode":         {mode: single, parent: "a", above: map[string]composite{"a": {}}, want: Single, reads: "a"},
		"the parent is single":           {parent: "a", above: map[string]composite{"a": {mode: singleSet}}, want: Single, reads: "a"},
		"the parent is all":              {mode: single, parent: "a", above: map[string]composite{"a": {mode: allSet, parent: "b"}}, want: All, reads: "a"},
		"the parent is of a later mode":  {parent: "a", above: map[string]composite{"a": {mode: laterSet}}, want: Unknown, reads: "a"},
		"all ancestors are single":       {parent: "a", above: map[string]composite{"a": {parent: "b"}, "b": {mode: singleSet, parent: "c"}, "c": {}}, want: Single, reads: "a b c"},
		"the root is all":                {parent: "a", above: map[string]composite{"a": {parent: "b"}, "b": {mode: singleSet, parent: "c"}, "c": {mode: allSet}}, want: All, reads: "a b c"},
		"no such parent":                 {parent: "a", want: Unknown, reads: "a"},
		"no such grandparent":            {parent: "a", above: map[string]composite{"a": {mode: singleSet, parent: "b"}}, want: Unknown, reads: "a b"},
		"its own parent":                 {parent: "a", above: map[string]composite{"a": {parent: "a"}}, want: Unknown, reads: "a"},
		"a cycle above":                  {parent: "a", above: map[string]composite{"a": {parent: "b"}, "b": {parent: "c"}, "c": {parent: "b"}}, want: Unknown, reads: "a b c"},
		"the parent cannot be read":      {parent: "a", above: map[string]composite{"a": {}}, err: errUnreachable, want: Unknown, wantErr: errUnreachable, reads: "a"},
		"a parent that is not asked for": {mode: all, parent: "a", err: errUnreachable, want: All},
	} {
		t.Run(name, func(t *testing.T) {
			group := &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: test.mode, ParentCompositePodGroupName: nameOf(test.parent)}}
			var reads []string
			got, err := ModeOf(group, func(name string) (*schedulingv1alpha3.CompositePodGroup, error) {
				reads = append(reads, name)
				found, exists := test.above[name]
				if test.err != nil || !exists {
					return nil, test.err
				}
				return &schedulingv1alpha3.CompositePodGroup{Spec: schedulingv1alpha3.CompositePodGroupSpec{DisruptionMode: found.mode, ParentCompositePodGroupName: nameOf(found.parent)}}, nil
			})
			if got != test.want || !errors.Is(err, test.wantErr) || !slices.Equal(reads, strings.Fields(test.reads)) {
				t.Errorf("got mode %d, error %v and reads %q, want %d, %v and %q", got, err, reads, test.want, test.wantErr, test.reads)
			}
		})
	}
}

func nameOf(parent string) *string {
	if parent == "" {
		return nil
	}
	return &parent
}
