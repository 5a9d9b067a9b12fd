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

package deployment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

var (
	began = time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC)
	later = began.Add(5 * time.Minute)
)

// pod builds a pod from words: serving, starting or broken; asked, passed, evicting or withdrawn.
func pod(name string, words ...string) surgePod {
	p := surgePod{uid: types.UID(name), created: began.Add(-time.Hour)}
	for _, word := range words {
		switch word {
		case "serving":
			p.available = true
		case "starting":
		case "broken":
			p.broken = true
		case "misplaced":
			p.misplaced = true
		case "asked":
			p.turn, p.since = ourTurn, began
		case "asked-later":
			p.turn, p.since = ourTurn, began.Add(time.Minute)
		case "passed":
			p.turn, p.since = passedOn, began
		case "evicting":
			p.turn, p.since = evicting, began
		case "withdrawn":
			p.turn, p.since = withdrawn, began
		default:
			panic(word)
		}
	}
	return p
}

func recorded(surge int32, leaving ...types.UID) deploymentutil.EvictionSurge {
	return deploymentutil.EvictionSurge{Surge: surge, Leaving: leaving, Since: metav1.NewTime(began)}
}

func begun(surge int32, leaving ...types.UID) deploymentutil.EvictionSurge {
	s := recorded(surge, leaving...)
	s.Since = metav1.NewTime(later)
	return s
}

// of says with which value of spec.replicas a surge was recorded.
func of(replicas int32, s deploymentutil.EvictionSurge) deploymentutil.EvictionSurge {
	s.Of = replicas
	return s
}

func misplaced(s deploymentutil.EvictionSurge, pods ...types.UID) deploymentutil.EvictionSurge {
	s.Misplaced = pods
	return s
}

func TestNextSurge(t *testing.T) {
	none := deploymentutil.EvictionSurge{}
	tests := map[string]struct {
		wanted, room int
		recorded     deploymentutil.EvictionSurge
		pods         []surgePod
		toCreate     int
		want         deploymentutil.EvictionSurge
	}{
		"no pod is asked": {wanted: 1, room: 1, pods: []surgePod{pod("a", "serving")}, want: none},

		// One replica, from the start to the end of the surge.
		"one replica has a request":                  {wanted: 1, room: 1, pods: []surgePod{pod("a", "serving", "asked")}, want: begun(1)},
		"its replacement is not created yet":         {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked")}, want: recorded(1)},
		"its replacement starts":                     {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "starting")}, want: recorded(1)},
		"its replacement serves":                     {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}, want: recorded(0, "a")},
		"another sync changes nothing":               {wanted: 1, room: 1, recorded: recorded(0, "a"), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}, want: recorded(0, "a")},
		"the pod has left":                           {wanted: 1, room: 1, recorded: recorded(0, "a"), pods: []surgePod{pod("b", "serving")}, want: begun(0)},
		"the replacement breaks before the pod goes": {wanted: 1, room: 1, recorded: recorded(0, "a"), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "starting")}, want: recorded(1)},
		"the replacement was deleted instead":        {wanted: 1, room: 1, recorded: recorded(0, "a"), pods: []surgePod{pod("a", "serving", "asked")}, want: recorded(1)},

		// Canceled evictions.
		"canceled while the replacement starts": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving"), pod("b", "starting")}, want: recorded(0)},
		"canceled while the pod is leaving":     {wanted: 1, room: 1, recorded: recorded(0, "a"), pods: []surgePod{pod("a", "serving"), pod("b", "serving")}, want: recorded(0)},
		"one of two is canceled":                {wanted: 2, room: 2, recorded: recorded(2), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving"), pod("c", "starting"), pod("d", "starting")}, want: recorded(1)},
		"one of two is canceled when both replacements serve": {wanted: 2, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving"), pod("c", "serving"), pod("d", "serving")}, want: recorded(0, "a")},

		// Withdrawn requests, which are not canceled yet.
		"withdrawn while the replacement starts":                                 {wanted: 1, room: 1, recorded: of(2, recorded(1)), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "starting")}, want: recorded(1)},
		"withdrawn when the replacement serves":                                  {wanted: 1, room: 1, recorded: of(2, recorded(1)), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "serving")}, want: recorded(1)},
		"withdrawn while the pod is leaving":                                     {wanted: 1, room: 1, recorded: of(1, recorded(0, "a")), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "serving")}, want: recorded(1)},
		"withdrawn while the pod is leaving, and the replacement breaks":         {wanted: 1, room: 1, recorded: of(1, recorded(0, "a")), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "broken")}, want: recorded(1)},
		"no other pod takes its place while its deletion may be in flight":       {wanted: 3, room: 1, recorded: of(3, recorded(0, "a")), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "serving", "asked"), pod("c", "serving"), pod("d", "serving")}, want: recorded(1)},
		"but it does when the ReplicaSet has had another size":                   {wanted: 3, room: 1, recorded: of(4, recorded(1)), pods: []surgePod{pod("a", "serving", "withdrawn"), pod("b", "serving", "asked"), pod("c", "serving"), pod("d", "serving")}, want: recorded(0, "b")},
		"neither does a broken one take the place of one that is asked, at once": {wanted: 3, room: 1, recorded: of(3, recorded(0, "a")), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "broken", "asked"), pod("c", "serving"), pod("d", "starting")}, want: recorded(1)},

		// Several pods.
		"more than there is room for": {wanted: 4, room: 2, pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked"), pod("c", "serving", "asked"), pod("d", "serving")}, want: begun(2)},
		"the pod that was requested first leaves first": {wanted: 3, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "serving", "asked-later"), pod("b", "serving", "asked"), pod("c", "serving"), pod("d", "serving")}, want: recorded(0, "b")},
		"one of two replacements serves: so that one goes, the other does not": {wanted: 2, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked"), pod("c", "serving"), pod("d", "starting")}, want: recorded(1, "a")},
		"one of two replacements serves, the other cannot be created": {wanted: 2, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked"), pod("c", "serving")}, want: recorded(0, "a")},
		"one has gone, the other goes": {wanted: 2, room: 2, recorded: recorded(0, "a", "b"),
			pods: []surgePod{pod("b", "serving", "asked"), pod("c", "serving"), pod("d", "serving")}, want: begun(0, "b")},
		"a replacement that is about to be created stays extra": {wanted: 2, room: 2, recorded: recorded(2), toCreate: 1,
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked"), pod("c", "serving")}, want: recorded(1, "a")},
		"the next one, when the first has gone": {wanted: 2, room: 1, recorded: recorded(0, "a"),
			pods: []surgePod{pod("b", "serving", "asked"), pod("c", "serving")}, want: begun(1)},
		"a pod that starts is among those that are wanted": {wanted: 3, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving"), pod("c", "starting"), pod("d", "serving")}, want: recorded(1)},
		"the replacement is asked, too": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked-later")}, want: recorded(0, "a")},

		// Pods that came to nodes that a maintenance claims.
		"a misplaced replacement is none":            {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "misplaced")}, want: recorded(1)},
		"it makes room for another one when asked":   {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "misplaced", "asked-later")}, want: misplaced(recorded(0, "b"), "b")},
		"that it has left is no progress":            {wanted: 1, room: 1, recorded: misplaced(recorded(0, "b"), "b"), pods: []surgePod{pod("a", "serving", "asked")}, want: recorded(1)},
		"it stays while too few others serve":        {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving"), pod("b", "serving", "misplaced", "asked"), pod("c", "starting")}, want: recorded(1)},
		"it goes when enough others serve":           {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving"), pod("b", "serving", "misplaced", "asked"), pod("c", "serving")}, want: misplaced(recorded(0, "b"), "b")},
		"a better replacement lets the other pod go": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("c", "serving")}, want: recorded(0, "a")},

		// Broken pods.
		"a broken pod goes as soon as there is another": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "broken", "asked"), pod("b", "starting")}, want: recorded(0, "a")},
		"but not before": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "broken", "asked")}, want: recorded(1)},
		"broken ones before briefly unready ones": {wanted: 2, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "asked"), pod("b", "broken", "asked-later"), pod("c", "serving")}, want: recorded(0, "b")},
		"those that do not serve, and as many as are replaced": {wanted: 2, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "asked-later"), pod("c", "serving"), pod("d", "serving")}, want: recorded(0, "a", "b")},
		"broken ones first": {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "broken", "asked-later"), pod("c", "starting")}, want: recorded(0, "b")},
		"a broken one that is not asked blocks the others": {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "broken"), pod("c", "serving")}, want: recorded(1)},
		"briefly unready is not broken":                    {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "asked"), pod("b", "starting")}, want: recorded(1)},
		"one that starts goes when its replacement serves": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "asked"), pod("b", "serving")}, want: recorded(0, "a")},
		"not when another pod does not serve either":       {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "asked"), pod("b", "serving"), pod("c", "starting")}, want: recorded(1)},
		"two of them, and their one replacement serves": {wanted: 3, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "asked-later"), pod("b", "asked"), pod("c", "serving"), pod("d", "serving")}, want: recorded(0, "b")},
		"no pod serves but the replacement": {wanted: 3, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "asked"), pod("b", "asked"), pod("c", "asked"), pod("d", "serving")}, want: recorded(0, "a")},
		"as many as there are replacements that serve": {wanted: 3, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "asked"), pod("b", "asked"), pod("c", "asked"), pod("d", "serving"), pod("e", "starting")}, want: recorded(1, "a")},
		"two of them, and no replacement serves": {wanted: 3, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "asked"), pod("b", "asked"), pod("c", "serving"), pod("d", "starting")}, want: recorded(1)},
		"one whose turn has ended with another interceptor is no replacement": {wanted: 2, room: 1, recorded: recorded(1),
			pods: []surgePod{pod("a", "asked"), pod("b", "passed"), pod("c", "serving")}, want: recorded(1)},
		"not a misplaced one that serves in their place": {wanted: 3, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "asked"), pod("b", "asked"), pod("c", "asked"), pod("d", "serving"), pod("e", "serving", "misplaced", "asked")}, want: recorded(1, "a")},
		"nor more misplaced ones than can be spared": {wanted: 3, room: 3, recorded: recorded(3),
			pods: []surgePod{pod("a", "asked"), pod("b", "asked"), pod("c", "serving"), pod("d", "serving"), pod("e", "serving", "misplaced", "asked"), pod("f", "serving", "misplaced", "asked")}, want: misplaced(recorded(1, "a", "e"), "e")},
		"one that starts before one that serves": {wanted: 2, room: 2, recorded: recorded(2),
			pods: []surgePod{pod("a", "serving", "asked"), pod("b", "asked-later"), pod("c", "serving"), pod("d", "starting")}, want: recorded(1, "b")},

		// Requests that were passed on.
		"a pod that was passed on keeps its replacement":       {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "passed"), pod("b", "starting")}, want: recorded(1)},
		"also when that serves: another interceptor is active": {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "passed"), pod("b", "serving")}, want: recorded(1)},
		"one that waits for its eviction has its replacement":  {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "evicting"), pod("b", "starting")}, want: recorded(1)},
		"and goes when that serves":                            {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "evicting"), pod("b", "serving")}, want: recorded(0, "a")},
		"and goes broken as soon as that exists":               {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "broken", "evicting"), pod("b", "starting")}, want: recorded(0, "a")},
		"before pods that were requested later":                {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked-later"), pod("b", "serving", "evicting"), pod("c", "serving")}, want: recorded(0, "b")},
		"which takes its place when it has gone":               {wanted: 1, room: 1, recorded: recorded(1), pods: []surgePod{pod("b", "starting")}, want: recorded(0)},
		"one that was passed on does not keep others waiting":  {wanted: 2, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "passed"), pod("b", "serving", "asked"), pod("c", "serving")}, want: recorded(0, "b")},

		// The size of the Deployment changes.
		"no more room, the replacement starts": {wanted: 1, room: 0, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "starting")}, want: recorded(0)},
		"no more room, the replacement serves": {wanted: 1, room: 0, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}, want: recorded(0, "a")},
		"scaled down to 0":                     {wanted: 0, room: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}, want: recorded(0)},
		"scaled down: those that are asked go": {wanted: 1, room: 1, pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}, want: kept0("a")},
		"scaled down by more: so do others":    {wanted: 1, room: 5, pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving"), pod("c", "serving")}, want: kept0("a")},
		"not more extra ones than are wanted":  {wanted: 1, room: 5, pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "passed"), pod("c", "starting")}, want: begun(1, "a")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := nextSurge(later, surgeState{wanted: tc.wanted, room: tc.room, recorded: tc.recorded, pods: tc.pods, toCreate: tc.toCreate})
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(deploymentutil.EvictionSurge{}, "Ending")); diff != "" {
				t.Errorf("unexpected surge (-want, +got):\n%s", diff)
			}
			if less := got.Surge < tc.recorded.Surge; got.Ending != less {
				t.Errorf("ending is %v, want %v", got.Ending, less)
			}
		})
	}
}

// Extra replicas are ending until the status no longer counts them. A pod that has left stays in
// the record until the status no longer counts it, and only then counts as progress.
func TestEnding(t *testing.T) {
	ending := func(s deploymentutil.EvictionSurge) deploymentutil.EvictionSurge {
		s.Ending = true
		return s
	}
	left, asked := []surgePod{pod("b", "serving")}, []surgePod{pod("b", "serving", "asked")}
	tests := map[string]struct {
		recorded          deploymentutil.EvictionSurge
		behind, shrinking bool
		pods              []surgePod
		want              deploymentutil.EvictionSurge
	}{
		"reverted":          {recorded: recorded(1), pods: left, want: ending(recorded(0))},
		"still counted":     {recorded: ending(recorded(0)), shrinking: true, pods: left, want: ending(recorded(0))},
		"no longer counted": {recorded: ending(recorded(0)), pods: left, want: recorded(0)},
		"too many are counted for another reason": {recorded: recorded(0), shrinking: true, pods: left, want: recorded(0)},
		"a pod has left, and is counted":          {recorded: ending(recorded(0, "a")), behind: true, shrinking: true, pods: left, want: ending(recorded(0, "a"))},
		"it is no longer counted":                 {recorded: ending(recorded(0, "a")), pods: left, want: begun(0)},
		"it is not counted, another one is":       {recorded: ending(recorded(0, "a")), shrinking: true, pods: left, want: ending(begun(0))},
		"a pod has left, the next one is to":      {recorded: ending(recorded(0, "a")), behind: true, shrinking: true, pods: asked, want: ending(recorded(1, "a"))},
		"it is not counted, the next one is to":   {recorded: ending(recorded(0, "a")), pods: asked, want: begun(1)},
		"counted, and canceled":                   {recorded: ending(recorded(0, "a")), behind: true, shrinking: true, pods: []surgePod{pod("a", "serving"), pod("b", "serving")}, want: ending(recorded(0))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := nextSurge(later, surgeState{wanted: 1, room: 1, recorded: tc.recorded, pods: tc.pods, behind: tc.behind, shrinking: tc.shrinking})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected surge (-want, +got):\n%s", diff)
			}
		})
	}
}

// Pods that have left do not displace leaving pods from the record.
func TestLeftPodsAreBounded(t *testing.T) {
	state := surgeState{wanted: 1, room: 1, behind: true, pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving")}}
	for i := range deploymentutil.MaxLeaving {
		state.recorded.Leaving = append(state.recorded.Leaving, types.UID(fmt.Sprint(i)))
	}
	if got := nextSurge(later, state).Leaving; len(got) != deploymentutil.MaxLeaving || !slices.Contains(got, "a") {
		t.Errorf("%d pods are recorded, want %d including the leaving one", len(got), deploymentutil.MaxLeaving)
	}
}

// kept0 is a record without a start time: no replica was extra.
func kept0(leaving ...types.UID) deploymentutil.EvictionSurge {
	return deploymentutil.EvictionSurge{Leaving: leaving}
}

func TestNextSurgeIsBounded(t *testing.T) {
	state := surgeState{wanted: 2 * deploymentutil.MaxLeaving, room: 2 * deploymentutil.MaxLeaving}
	for range 2 * deploymentutil.MaxLeaving {
		state.pods = append(state.pods, pod("a", "serving", "asked"), pod("b", "serving"))
	}
	if got := len(nextSurge(later, state).Leaving); got != deploymentutil.MaxLeaving {
		t.Errorf("%d pods leave at once, want %d", got, deploymentutil.MaxLeaving)
	}
}

func TestReplaced(t *testing.T) {
	tests := map[string]struct {
		state surgeState
		want  int
	}{
		"none yet":            {surgeState{wanted: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "starting")}}, 0},
		"one of two":          {surgeState{wanted: 2, recorded: recorded(2), pods: []surgePod{pod("a", "serving", "asked"), pod("b", "serving", "asked"), pod("c", "serving")}}, 1},
		"no more than extra":  {surgeState{wanted: 1, recorded: recorded(1), pods: []surgePod{pod("a", "serving"), pod("b", "serving"), pod("c", "serving")}}, 1},
		"not even the wanted": {surgeState{wanted: 3, recorded: recorded(1), pods: []surgePod{pod("a", "serving", "asked")}}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.replaced(); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
