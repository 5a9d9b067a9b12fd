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

package podpicker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/component-helpers/plaintext"
)

const (
	// maxWait is how long a scale-down waits for its turn, besides the time in which its picker is asked:
	// that others are asked is not the fault of the picker. A place is free after maxStay at the latest.
	maxWait = 10 * time.Second

	// slowAfter is when a scale-down that waits is worth a message.
	slowAfter = 2 * time.Second

	// DefaultMaxRetries and DefaultTimeoutSeconds are the defaults of the API, for objects that were
	// stored without them.
	DefaultMaxRetries     = 3
	DefaultTimeoutSeconds = 1

	// maxErrorBytes is the maximum length of the error of a result.
	maxErrorBytes = 1 << 10
)

// The ranks of pods, of which lower ones are removed first, as in the KEP.
const (
	RankChosen = 0
	RankTied   = 1
	RankOther  = 3
)

// Question is asked for a scale-down.
type Question struct {
	types.NamespacedName
	UID types.UID
	// Replicas is the wanted number of replicas.
	Replicas int32
	// Pods is how many of the candidates have to be removed.
	Pods int
	// Candidates are the names of the pods to choose from, and CandidateUIDs their UIDs.
	Candidates    []string
	CandidateUIDs []types.UID
	Picker        *v1.DownscalePodPicker

	// key is the same for all attempts, and for the same question after a restart.
	key string
	// tried are the addresses that attempts have had.
	tried tries
}

// identity says what an answer is for.
func (q *Question) identity() string {
	uids := slices.Clone(q.CandidateUIDs)
	slices.Sort(uids)
	hash := sha256.New()
	fmt.Fprintln(hash, q.UID, q.Replicas, q.Pods, uids)
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// maxDuration is how long a picker may be asked for a scale-down.
func maxDuration(picker *v1.DownscalePodPicker) time.Duration {
	return downscalepodpicker.MaxDuration(limits(picker))
}

func limits(picker *v1.DownscalePodPicker) (retries int, timeout time.Duration) {
	retries, timeout = DefaultMaxRetries, DefaultTimeoutSeconds*time.Second
	if picker.MaxRetries != nil {
		retries = int(*picker.MaxRetries)
	}
	if picker.TimeoutSeconds != nil {
		timeout = time.Duration(*picker.TimeoutSeconds) * time.Second
	}
	return retries, timeout
}

// Result is how a question ended.
type Result struct {
	// Ranks has RankChosen, RankTied or RankOther by the name of the candidate. Nil if the picker does
	// not decide.
	Ranks map[string]int
	// Chosen and Tied are how many pods the picker named.
	Chosen, Tied int
	// Duration is from the first question of the scale-down to the end.
	Duration time.Duration
	// Err is why the picker does not decide. Nil if it answered, even if it named no pod.
	Err error
	// Reason is that of Err, for metrics.
	Reason FallbackReason
}

// FallbackReason is why a picker does not decide.
type FallbackReason string

const (
	// FallbackFailed: all attempts failed, the last one with the error, or earlier questions of the
	// scale-down used up the time.
	FallbackFailed FallbackReason = "failed"
	// FallbackBusy: it was not asked in time, because others are, or gave way to them.
	FallbackBusy FallbackReason = "busy"
	// FallbackChanged: the pods or the replicas changed again and again until the time was over.
	FallbackChanged FallbackReason = "changed"
	// FallbackSkipped: it was not asked, because its last attempts failed.
	FallbackSkipped FallbackReason = "skipped"
)

// Client asks pickers. The time of a scale-down runs from its first question to Take: that in which it
// waits for its turn, and that in which its picker is asked. If that was not all, and more pods are to be
// deleted for the same replicas, it goes on with the next question. Forget ends the scale-down.
type Client struct {
	client   clientset.Interface
	resolver *resolver
	places   *places
	rests    *rests
	// maxWait is the constant, but for tests.
	maxWait time.Duration
	// pauses are those between attempts.
	pauses wait.Backoff
	// ended is called when a question has ended, or is slow.
	ended func(types.NamespacedName)

	lock  sync.Mutex
	asked map[types.NamespacedName]*scaleDown
}

// scaleDown is one of a ReplicaSet.
type scaleDown struct {
	uid      types.UID
	began    time.Time // The time of the first question.
	clock    budget
	identity string
	picker   *v1.DownscalePodPicker
	// cancel ends the question, for this reason.
	cancel context.CancelCauseFunc
	// expires ends it when its time is over.
	expires *time.Timer
	result  *Result
	// replicas are those of the question. taken is whether the result was taken since it ended.
	replicas int32
	taken    bool
	// turn counts the questions. A call that was canceled may end when its question is asked again.
	turn int
	// toldSlow is whether Slow has reported it.
	toldSlow bool
}

// budget is what is left of the time of a scale-down. It stands still while pods are deleted.
type budget struct {
	left    [numPhases]time.Duration
	current phase
	since   time.Time
}

// phase is what a question does.
type phase int

const (
	// phaseWaits: it waits for its turn.
	phaseWaits phase = iota
	// phaseAsks: its picker is asked, or it pauses between two attempts.
	phaseAsks
	numPhases
	// phaseEnded: its result was taken, and pods are deleted.
	phaseEnded = numPhases
)

// enter begins a phase, and returns what is left for it.
func (b *budget) enter(next phase, now time.Time) time.Duration {
	if b.current == phaseEnded && next == phaseEnded {
		return 0
	}
	if b.current != phaseEnded {
		b.left[b.current] -= now.Sub(b.since)
	}
	b.current, b.since = next, now
	return b.left[next]
}

// NewClient returns a client that asks at most total pickers at a time, at these addresses. It calls
// ended with the ReplicaSet when a question has ended, and when it is slow.
func NewClient(client clientset.Interface, addresses *Addresses, total int, ended func(types.NamespacedName)) *Client {
	registerMetrics()
	c := &Client{
		client:   client,
		resolver: &resolver{client: client, addresses: addresses, lookup: lookupDNS},
		places:   newPlaces(total),
		rests:    &rests{failing: map[[sha256.Size]byte]*failing{}},
		maxWait:  maxWait,
		pauses:   downscalepodpicker.NewPauses(),
		ended:    ended,
		asked:    map[types.NamespacedName]*scaleDown{},
	}
	waiting.client.Store(c)
	return c
}

// countWaiting returns how many questions have not ended.
func (c *Client) countWaiting() (count int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, s := range c.asked {
		if s.result == nil && !s.taken {
			count++
		}
	}
	return count
}

// Ask reports whether the question has ended, and asks it if it has not been asked. A question about
// other pods or replicas than before, or to another picker, replaces the one before, in what is left
// of its time.
func (c *Client) Ask(ctx context.Context, q Question) (ended bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now, identity := time.Now(), q.identity()
	s := c.asked[q.NamespacedName]
	if s != nil && (s.uid != q.UID || s.taken && s.replicas != q.Replicas) {
		s.end(context.Canceled)
		s = nil
	}
	if s == nil {
		s = &scaleDown{uid: q.UID, began: now, cancel: func(error) {}, expires: time.NewTimer(0)}
		s.clock = budget{left: [numPhases]time.Duration{phaseWaits: c.maxWait, phaseAsks: maxDuration(q.Picker)}, current: phaseEnded}
		c.asked[q.NamespacedName] = s
	}
	if s.taken {
		s.taken, s.identity, s.began = false, "", now
	}
	if s.identity == identity && apiequality.Semantic.DeepEqual(s.picker, q.Picker) {
		return s.result != nil
	}
	s.end(context.Canceled)
	s.identity, s.picker, s.replicas, s.result = identity, q.Picker, q.Replicas, nil
	s.turn++
	s.clock.enter(s.clock.current, now)
	if s.result = s.newLateResult(now, c.maxWait); s.result != nil {
		return true
	}
	q.key = identity
	asking, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(slowAfter-now.Sub(s.began), func() { c.ended(q.NamespacedName) })
	s.cancel = func(cause error) { slow.Stop(); cancel(cause) }
	turn := s.turn
	s.expires = time.AfterFunc(s.clock.enter(phaseWaits, now), func() { c.expire(s, turn) })
	go c.work(asking, s, turn, q)
	return false
}

// end ends the question.
func (s *scaleDown) end(cause error) {
	s.expires.Stop()
	s.cancel(cause)
}

// enter begins a phase of a question, and returns what is left for it.
func (c *Client) enter(s *scaleDown, turn int, next phase) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s.turn != turn || s.result != nil {
		return 0 // It was replaced, or is over.
	}
	left := s.clock.enter(next, time.Now())
	s.expires.Reset(left)
	return left
}

// expire ends a question whose time is over.
func (c *Client) expire(s *scaleDown, turn int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s.turn != turn || s.result != nil {
		return
	}
	if left := s.clock.enter(s.clock.current, time.Now()); left > 0 {
		s.expires.Reset(left) // It has entered another phase at the same time.
		return
	}
	if s.clock.current == phaseWaits {
		s.cancel(fmt.Errorf("no turn within %s", c.maxWait))
	} else {
		s.cancel(errTimeOver)
	}
}

// errTimeOver is why an attempt ends with the time of its scale-down.
var errTimeOver = errors.New("the time of the scale-down is over")

// newLateResult returns the result of a question for which no time is left, and nil if there is some.
func (s *scaleDown) newLateResult(now time.Time, maxWait time.Duration) *Result {
	waited := now.Sub(s.began)
	switch {
	case s.clock.left[phaseAsks] > 0 && s.clock.left[phaseWaits] > 0:
		return nil
	case s.clock.left[phaseWaits] <= 0:
		return &Result{Duration: waited, Err: fmt.Errorf("others are being asked: no turn within %s", maxWait), Reason: FallbackBusy}
	case waited == 0:
		return &Result{Err: errors.New("asking about other pods has used up the time of this scale-down"), Reason: FallbackFailed}
	}
	return &Result{Duration: waited, Err: errors.New("the pods, the replicas or the picker changed while it was asked"), Reason: FallbackChanged}
}

// Slow reports, once for each scale-down, that it has waited for slowAfter, and until when it waits at
// most.
func (c *Client) Slow(key types.NamespacedName) (until time.Time, slow bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	s := c.asked[key]
	if s == nil || s.toldSlow || s.taken || s.result != nil || time.Since(s.began) < slowAfter {
		return time.Time{}, false
	}
	s.toldSlow = true
	now := time.Now()
	s.clock.enter(s.clock.current, now)
	return now.Add(s.clock.left[phaseWaits] + s.clock.left[phaseAsks]), true
}

// Take returns the result of a question that has ended. The pods are deleted next.
func (c *Client) Take(key types.NamespacedName) (Result, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	s := c.asked[key]
	if s == nil || s.result == nil {
		return Result{}, false
	}
	result := *s.result
	s.result, s.taken = nil, true
	s.clock.current = phaseEnded // The time since the result is not used up: the sync is late.
	observeScaleDown(result)
	return result, true
}

// Forget ends the scale-down of a ReplicaSet, if there is one.
func (c *Client) Forget(key types.NamespacedName) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s := c.asked[key]; s != nil {
		s.end(context.Canceled)
		delete(c.asked, key)
	}
}

// work asks until there is an answer, the attempts are used up, or the context ends.
func (c *Client) work(ctx context.Context, s *scaleDown, turn int, q Question) {
	response, reason, err := c.askInTurn(ctx, &q, func(next phase) time.Duration { return c.enter(s, turn, next) })
	c.lock.Lock()
	current := c.asked[q.NamespacedName] == s && s.turn == turn
	if current {
		s.end(nil)
		s.clock.enter(s.clock.current, time.Now())
		s.result = newResult(response, q.Candidates, reason, err)
		s.result.Duration = time.Since(s.began)
	}
	c.lock.Unlock()
	if current {
		c.ended(q.NamespacedName)
	}
}

func newResult(response downscalepodpicker.Response, candidates []string, reason FallbackReason, err error) *Result {
	if err != nil {
		// What a picker sends may be large, and the result is kept until the next sync.
		return &Result{Err: errors.New(plaintext.Truncate(err.Error(), maxErrorBytes)), Reason: reason}
	}
	result := &Result{Chosen: len(response.ChosenPods), Tied: len(response.TiedPods)}
	if result.Chosen+result.Tied == 0 {
		return result // As if there was no picker.
	}
	result.Ranks = make(map[string]int, len(candidates))
	for _, group := range []struct {
		names []string
		rank  int
	}{{candidates, RankOther}, {response.TiedPods, RankTied}, {response.ChosenPods, RankChosen}} {
		for _, name := range group.names {
			result.Ranks[name] = group.rank
		}
	}
	return result
}

// askInTurn waits until the host and the namespace have a place, and asks. It calls enter when it waits
// and when it asks, which returns what is left of the time for that.
func (c *Client) askInTurn(ctx context.Context, q *Question, enter func(phase) time.Duration) (response downscalepodpicker.Response, reason FallbackReason, err error) {
	const busy = "others are being asked: %w"
	picker := pickerKey(q)
	if err := c.rests.check(picker, time.Now()); err != nil {
		return response, FallbackSkipped, err
	}
	leave, err := c.places.enterHost(ctx, hostKey(q))
	if err != nil {
		return response, FallbackBusy, fmt.Errorf(busy, err)
	}
	defer leave()
	if err := c.rests.check(picker, time.Now()); err != nil { // Those before it have failed.
		return response, FallbackSkipped, err
	}
	current, staying, err := c.places.begin(ctx, q.Namespace)
	if err != nil {
		return response, FallbackBusy, fmt.Errorf(busy, err)
	}
	defer func() { current.end() }()
	isTry, err := c.rests.admit(picker, time.Now())
	if err != nil {
		return response, FallbackSkipped, err
	}
	if isTry {
		defer c.rests.withdraw(picker)
	}

	retries, timeout := limits(q.Picker)
	if isTry {
		retries = 0
	}
	left, pauses := enter(phaseAsks), c.pauses
	for attempt := 0; ; attempt++ {
		began := time.Now()
		response, err := c.attemptWithin(staying, timeout, q)
		if err == nil {
			c.rests.succeed(picker)
			c.places.observe(hostKey(q), time.Since(began), false)
			return response, "", nil
		}
		reason, isItsFault := FallbackFailed, true
		switch {
		case ctx.Err() != nil && context.Cause(ctx) != errTimeOver:
			isItsFault = false // Nobody wants to know it any more.
		case errors.Is(err, errGaveWay):
			reason, isItsFault = FallbackBusy, false
		case ctx.Err() != nil && attempt == 0 && left < timeout:
			reason, isItsFault = FallbackChanged, false // Earlier questions have used up the time.
		}
		if isItsFault {
			c.rests.fail(picker, isTry, err, time.Now())
			c.places.observe(hostKey(q), 0, true)
		}
		err = fmt.Errorf("attempt %d of %d: %w", attempt+1, retries+1, err)
		if attempt == retries || ctx.Err() != nil {
			return response, reason, err
		}
		isOver := current.isOver()
		if isOver {
			current.end()
		}
		select {
		case <-ctx.Done():
			return response, reason, err
		case <-time.After(pauses.Step()):
		}
		if !isOver {
			continue
		}
		enter(phaseWaits)
		next, nextStaying, enterErr := c.places.begin(ctx, q.Namespace)
		if enterErr != nil {
			return response, reason, err
		}
		enter(phaseAsks)
		current, staying = next, nextStaying
	}
}

func (c *Client) attemptWithin(ctx context.Context, timeout time.Duration, q *Question) (downscalepodpicker.Response, error) {
	attempting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	response, err := c.attempt(attempting, q)
	timedOut := err != nil && attempting.Err() != nil
	if timedOut {
		err = context.Cause(attempting)
		if !errors.Is(err, context.Canceled) && !errors.Is(err, errGaveWay) {
			// Not the time of the whole scale-down, which ends with that of the last attempt.
			if waited := time.Since(began); waited < timeout-100*time.Millisecond {
				timeout = waited.Round(10 * time.Millisecond)
			}
			err = fmt.Errorf("no answer within %s", timeout)
		}
	}
	if !errors.Is(err, context.Canceled) { // Nobody wants to know it any more.
		observeCall(began, timedOut, err)
	}
	return response, err
}

// hostKey is what questions of a namespace to the same picker have in common. Those of others do not
// count: whoever names a host could keep its places from those whom it answers.
func hostKey(q *Question) string {
	if q.Picker.HTTP == nil {
		return ""
	}
	return q.Namespace + " " + q.Picker.HTTP.Host + " " + q.Picker.HTTP.Port.String()
}

// String says what a picker decided.
func (r Result) String() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return "chose " + strconv.Itoa(r.Chosen) + " and called " + strconv.Itoa(r.Tied) + " tied"
}
