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

package requests

import (
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

const (
	// contestWindow is how long a request counts. In that time, contestLimit requests for one pod are made as
	// soon as they are needed, and further ones after contestPause, which doubles up to maxContestPause.
	contestWindow   = 10 * time.Minute
	contestLimit    = 2
	contestPause    = 5 * time.Second
	maxContestPause = time.Minute

	// resumeLimit is the same for requests of which this controller has withdrawn the earlier ones itself,
	// because its maintenances did not want them any more: pausing and resuming a few times is no contest, but a
	// label that flaps is one.
	resumeLimit = 10
)

// contest has the requests for one pod that were successful, the oldest first: if there are several, others have
// withdrawn the earlier ones, or this controller has. Each of them makes interceptors begin anew and, for example,
// a Deployment create another pod.
type contest struct {
	requested []pastRequest
	// since is the time of the first one of those that followed each other within contestWindow.
	since time.Time
	// by is the user who has withdrawn the last one, if known.
	by string
	// ended is whether the pod has ended since then: its kubelet reports that it runs again.
	ended bool
}

// pastRequest is one of them: when it was made, and whether this controller has withdrawn it.
type pastRequest struct {
	at  time.Time
	own bool
}

// Contests has the requests of each node. It only delays writes and explains them: nothing depends on it after a
// restart.
type Contests struct {
	lock  sync.Mutex
	nodes map[string]map[types.UID]*contest
}

func NewContests() *Contests { return &Contests{nodes: map[string]map[types.UID]*contest{}} }

// Wrote records a request. earlier is since when a process before has found that requests are contested; zero if it
// has not.
func (c *Contests) Wrote(node string, pod types.UID, earlier, now time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.nodes[node] == nil {
		c.nodes[node] = map[types.UID]*contest{}
	}
	found := c.nodes[node][pod]
	if found == nil {
		found = &contest{}
		c.nodes[node][pod] = found
	}
	found.requested = recently(found.requested, now)
	if len(found.requested) == 0 {
		found.since = pace.Earliest(now.Truncate(time.Second), earlier)
	}
	found.requested = append(found.requested, pastRequest{at: now})
	found.ended = false
}

// recently returns the requests that count.
func recently(requests []pastRequest, now time.Time) []pastRequest {
	for len(requests) > 0 && now.Sub(requests[0].at) > contestWindow {
		requests = requests[1:]
	}
	return requests
}

// Withdrawn records who has withdrawn the last request, "" if that is unknown.
func (c *Contests) Withdrawn(node string, pod types.UID, by string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if found := c.nodes[node][pod]; found != nil {
		found.by = by
	}
}

// Count returns how often the eviction of the pod was requested and not withdrawn by this controller.
func (c *Contests) Count(node string, pod types.UID, now time.Time) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := c.nodes[node][pod]
	if found == nil {
		return 0
	}
	others, _ := found.counts(now)
	return others
}

// counts returns how many requests count that this controller has not withdrawn, and how many in all.
func (c *contest) counts(now time.Time) (others, all int) {
	requests := recently(c.requested, now)
	for _, r := range requests {
		if !r.own {
			others++
		}
	}
	return others, len(requests)
}

// over returns how many requests count, and the limit that they have reached; none if it is 0.
func (c *contest) over(now time.Time) (count, limit int) {
	switch others, all := c.counts(now); {
	case others >= contestLimit:
		return others, contestLimit
	case all >= resumeLimit:
		return all, resumeLimit
	}
	return 0, 0
}

// Last returns when the eviction of the pod was requested for the last time; zero if this process has not.
func (c *Contests) Last(node string, pod types.UID) time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	if found := c.nodes[node][pod]; found != nil && len(found.requested) > 0 {
		return found.requested[len(found.requested)-1].at
	}
	return time.Time{}
}

// Wait returns the delay before the eviction of the pod may be requested again.
func (c *Contests) Wait(node string, pod types.UID, now time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := c.nodes[node][pod]
	if found == nil {
		return 0
	}
	count, limit := found.over(now)
	if limit == 0 {
		return 0
	}
	pause := contestPause
	for i := limit; i < count && pause < maxContestPause; i++ {
		pause = min(2*pause, maxContestPause)
	}
	return pace.Within(max(0, found.requested[len(found.requested)-1].at.Add(pause).Sub(now)), pause)
}

// Message says that the request for the pod is withdrawn again and again, by whom, and since when, if it is.
func (c *Contests) Message(node string, pod types.UID, now time.Time) (message string, since time.Time, contested bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := c.nodes[node][pod]
	if found == nil {
		return "", time.Time{}, false
	}
	count, limit := found.over(now)
	if limit == 0 {
		return "", time.Time{}, false
	}
	elapsed := now.Sub(recently(found.requested, now)[0].at).Round(time.Second)
	if limit == resumeLimit {
		return fmt.Sprintf("the eviction was requested %d times in %s, and the request withdrawn, because the maintenance did not want it any more: something changes its stage, or the labels of the node or the pod, again and again; it is requested again ever more slowly",
			count, elapsed), found.since, true
	}
	if found.ended {
		return fmt.Sprintf("the eviction was requested %d times in %s, and the kubelet has reported each time that the pod had ended, and then that it runs; it is requested again ever more slowly",
			count, elapsed), found.since, true
	}
	by := "the last one was deleted, and the audit log has by whom"
	if found.by != "" {
		by = fmt.Sprintf("the last one was user %q", found.by)
	}
	return fmt.Sprintf("the eviction was requested %d times in %s, and others have withdrawn the request each time: %s; it is requested again ever more slowly",
		count, elapsed, by), found.since, true
}

// Withdrew records that this controller has withdrawn the last request for a pod.
func (c *Contests) Withdrew(node string, pod types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if found := c.nodes[node][pod]; found != nil && len(found.requested) > 0 {
		found.requested[len(found.requested)-1].own = true
	}
}

// See forgets the requests for pods that are gone from the node. Those of pods that a policy keeps, or that have ended,
// are remembered: labels may flap, and a kubelet may report that a pod runs again.
func (c *Contests) See(node string, left, ended []*v1.Pod) {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.nodes[node]
	if len(known) == 0 {
		return
	}
	present := make(map[types.UID]*contest, len(known))
	for _, pod := range left {
		if found := known[pod.UID]; found != nil {
			present[pod.UID] = found
		}
	}
	for _, pod := range ended {
		if found := known[pod.UID]; found != nil {
			found.ended = true
			present[pod.UID] = found
		}
	}
	c.nodes[node] = present
	if len(present) == 0 {
		delete(c.nodes, node)
	}
}

func (c *Contests) Forget(node string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.nodes, node)
}
