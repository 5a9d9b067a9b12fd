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
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
)

// labelContest is a client that changes a label of a request, or of its pod, whenever the controller has written
// the label, and the events that follow from both.
type labelContest struct {
	*fixture
	t   *testing.T
	pod *v1.Pod
	// failed is whether the last sync was to be tried again.
	failed bool
}

func newLabelContest(t *testing.T) *labelContest {
	// An interceptor is active, so that nothing else is written.
	pod := newPod(interceptedBy(first))
	request := newRequest(deadlineOf(21600), requestLabels(maps.Clone(pod.Labels)), having(targets(first), active(first, 0)))
	return &labelContest{fixture: newFixture(t, request, pod), t: t, pod: pod}
}

func (c *labelContest) stored() *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request, err := c.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(context.Background(), string(podUID), metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading the request: %v", err)
	}
	return request
}

// overwrites sets the label of the request to another value.
func (c *labelContest) overwrites() {
	request := c.stored()
	request.Labels = map[string]string{"app": "mine"}
	if err := c.client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), request, namespace); err != nil {
		c.t.Fatalf("overwriting the label: %v", err)
	}
}

func (c *labelContest) sync() {
	c.t.Helper()
	c.addToCache(c.t, c.stored())
	delete(c.decisions.after, requestKeyOfPod)
	_, ctx := ktesting.NewTestContext(c.t)
	c.failed = c.syncRequest(ctx, requestKeyOfPod) != nil
	c.addToCache(c.t, c.stored())
}

func (c *labelContest) hasLabel() bool { return c.stored().Labels["app"] == c.pod.Labels["app"] }

func (c *labelContest) written() int {
	return countActions(c.client.Actions(), "patch", "evictionrequests")
}

// goesOn lets the client act so often for a time, and returns how often the controller has written.
func (c *labelContest) goesOn(duration, every time.Duration, act func()) int {
	c.t.Helper()
	before := c.written()
	for range duration / every {
		act()
		c.sync()
		if next := c.decisions.after[requestKeyOfPod]; !c.hasLabel() && !c.failed && (next <= 0 || next > time.Minute) {
			c.t.Fatalf("the label is missing, and the next sync is after %s", next)
		}
		c.clock.Step(every)
	}
	return c.written() - before
}

// Who overwrites a label again and again does not make the controller write as often.
func TestOverwrittenLabelsHaveAPace(t *testing.T) {
	acts := map[string]func(*labelContest){
		"of the request": (*labelContest).overwrites,
		"of the pod": func(c *labelContest) {
			c.pod = c.pod.DeepCopy()
			c.pod.Labels["app"] = fmt.Sprint(c.clock.Now().Unix())
			c.addToCache(c.t, c.pod)
		},
		"and webhooks refuse": func(c *labelContest) {
			c.overwrites()
			c.client.PrependReactor("patch", "evictionrequests", answering(errUnreachable))
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			c := newLabelContest(t)
			if got := c.goesOn(10*time.Second, time.Second, func() { act(c) }); got < 1 || got > revertpace.Limit+2 {
				t.Errorf("wrote the labels %d times in 10 seconds, want hardly more than %d", got, revertpace.Limit)
			}
			c.goesOn(5*time.Minute, 5*time.Second, func() { act(c) })
			if got := c.goesOn(5*time.Minute, 5*time.Second, func() { act(c) }); got > 6 {
				t.Errorf("wrote the labels %d times in 5 minutes, want once a minute at most", got)
			}
			// Labels that wait because they were refused are still a failure.
			if refused := c.stored().Labels["app"] == "mine" && name == "and webhooks refuse"; c.failed != refused {
				t.Errorf("the last sync has failed: %t, want %t", c.failed, refused)
			}
		})
	}
}

// A label that was overwritten is set again, at once if that is rare, and a minute after the last write if it was
// contested before.
func TestOverwrittenLabelsAreSetAgain(t *testing.T) {
	c := newLabelContest(t)
	for range 5 {
		c.overwrites()
		c.sync()
		if !c.hasLabel() {
			t.Fatal("it is not set again at once, though nothing has happened for long")
		}
		c.clock.Step(revertpace.Window + time.Second)
	}
	c.goesOn(5*time.Minute, 10*time.Second, c.overwrites)
	c.overwrites()
	c.sync()
	next := c.decisions.after[requestKeyOfPod]
	if c.hasLabel() || next <= 0 || next > time.Minute {
		t.Fatalf("the label is set: %t; the next sync is after %s, want a minute at most", c.hasLabel(), next)
	}
	c.clock.Step(next)
	c.sync()
	if !c.hasLabel() {
		t.Errorf("it is not set again after %s", next)
	}
	var contested []recordedEvent
	for _, event := range c.events {
		if event.Reason == eventLabelsContested {
			contested = append(contested, event)
		}
	}
	if len(contested) != 1 || contested[0].Regarding != "EvictionRequest "+string(podUID) || contested[0].Type != v1.EventTypeWarning {
		t.Errorf("got events %v, want one for the request", c.events)
	}
	if len(c.labelWrites.requests) != 1 {
		t.Errorf("writes of %d requests are remembered, want 1", len(c.labelWrites.requests))
	}
	c.forget(requestKeyOfPod)
	if len(c.labelWrites.requests) != 0 {
		t.Error("they are not forgotten")
	}
}

// The pause before the next write depends on how many count.
func TestLabelPace(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		// tried is how long ago writes were tried.
		tried []time.Duration
		want  time.Duration
	}{
		"none":                               {},
		"two":                                {tried: []time.Duration{2 * second, second}},
		"three":                              {tried: []time.Duration{3 * second, 2 * second, second}, want: 4 * second},
		"three, and the pause is over":       {tried: []time.Duration{7 * second, 6 * second, 5 * second}},
		"four":                               {tried: []time.Duration{4 * second, 3 * second, 2 * second, second}, want: 9 * second},
		"six":                                {tried: []time.Duration{6 * second, 5 * second, 4 * second, 3 * second, 2 * second, second}, want: 39 * second},
		"seven":                              {tried: []time.Duration{7 * second, 6 * second, 5 * second, 4 * second, 3 * second, 2 * second, second}, want: 59 * second},
		"eight":                              {tried: []time.Duration{8 * second, 7 * second, 6 * second, 5 * second, 4 * second, 3 * second, 2 * second, second}, want: 59 * second},
		"three, of which one just counts":    {tried: []time.Duration{revertpace.Window, 2 * second, second}, want: 4 * second},
		"three, of which one counts no more": {tried: []time.Duration{revertpace.Window + 1, 2 * second, second}},
		"four, of which one counts no more":  {tried: []time.Duration{revertpace.Window + 1, 3 * second, 2 * second, second}, want: 4 * second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLabelWrites()
			for _, ago := range test.tried {
				w.tried(requestKeyOfPod, start.Add(-ago), nil)
			}
			if got, err := w.wait(requestKeyOfPod, start); got != test.want || err != nil {
				t.Errorf("waits for %v, error %v, want %v", got, err, test.want)
			}
		})
	}
}

// A request that has changed meanwhile is looked at again. What was not written for that reason does not count.
func TestLabelsOfAChangedRequest(t *testing.T) {
	c := newLabelContest(t)
	c.overwrites()
	c.client.PrependReactor("patch", "evictionrequests", answering(apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), string(podUID), errors.New("another UID"))))
	c.sync()
	if next := c.decisions.after[requestKeyOfPod]; c.failed || next <= 0 || len(c.labelWrites.requests) > 0 {
		t.Errorf("the sync has failed: %t; the next one is after %v; %d requests are remembered", c.failed, next, len(c.labelWrites.requests))
	}
}

// A clock that is set back does not make labels wait.
func TestLabelPaceWithoutClock(t *testing.T) {
	w := newLabelWrites()
	for range revertpace.Limit {
		w.tried(requestKeyOfPod, start.Add(time.Hour), nil)
	}
	if got, _ := w.wait(requestKeyOfPod, start.Add(time.Hour)); got != 5*time.Second {
		t.Errorf("waits for %s, want %s", got, 5*time.Second)
	}
	if got, _ := w.wait(requestKeyOfPod, start); got != 0 {
		t.Errorf("waits for %s after the clock was set back", got)
	}
}
