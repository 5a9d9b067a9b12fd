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
	"k8s.io/client-go/util/fairshare"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
)

const (
	// maxPerNamespace and maxPerHost are how many pickers are asked at a time, for the ReplicaSets of a
	// namespace. A namespace whose pickers are slow gets fewer, see fairshare.
	maxPerNamespace = 4
	maxPerHost      = 2

	// maxStay is after how long a question counts as slow, does not take the place of others, and gives
	// it up between two attempts. Otherwise, as many namespaces as there are places could keep all of
	// them for minutes, while others use up their time. By default, that is 5.4 seconds.
	maxStay = 3 * time.Second

	// addAfter is how much later a slow question adds a place for others: by then, the namespaces of
	// those that have begun at about the same time count as slow, and do not get it.
	addAfter = 500 * time.Millisecond

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

// maxDuration is how long a scale-down may wait.
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
	// FallbackBusy: the time was over before it was asked, because others are.
	FallbackBusy FallbackReason = "busy"
	// FallbackChanged: the pods or the replicas changed again and again until the time was over.
	FallbackChanged FallbackReason = "changed"
)

// Client asks pickers. The time of a scale-down runs from its first question to Take. If that was not
// all, and more pods are to be deleted for the same replicas, it goes on with the next question. Forget
// ends the scale-down.
type Client struct {
	client   clientset.Interface
	resolver *resolver
	places   *fairshare.Places
	// total is how many places there are, for questions that take less than maxStay.
	total int
	// pauses are those between attempts.
	pauses wait.Backoff
	// ended is called when a question has ended, or is slow.
	ended func(types.NamespacedName)

	lock  sync.Mutex
	asked map[types.NamespacedName]*scaleDown
	hosts map[string]*host
	// slow counts the questions that have had a place for maxStay.
	slow int
}

// host counts those who ask a picker, or wait for that.
type host struct {
	places chan struct{}
	users  int
}

// scaleDown is one of a ReplicaSet.
type scaleDown struct {
	uid types.UID
	// began is the time of the first question, and until the time at which all end.
	began, until time.Time
	identity     string
	picker       *v1.DownscalePodPicker
	cancel       context.CancelFunc
	result       *Result
	// replicas are those of the question, and left is what was left of the time when it ended. taken is
	// whether the result was taken since.
	replicas int32
	left     time.Duration
	taken    bool
	// turn counts the questions. A call that was canceled may end when its question is asked again.
	turn int
	// toldSlow is whether Slow has reported it.
	toldSlow bool
}

// NewClient returns a client that asks at most total pickers at a time, at these addresses. It calls
// ended with the ReplicaSet when a question has ended, and when it is slow.
func NewClient(client clientset.Interface, addresses *Addresses, total int, ended func(types.NamespacedName)) *Client {
	registerMetrics()
	c := &Client{
		client:   client,
		resolver: &resolver{client: client, addresses: addresses, lookup: lookupDNS},
		places:   fairshare.NewPlaces(total, min(total, maxPerNamespace), clock.RealClock{}).SlowAfter(maxStay),
		total:    total,
		pauses:   downscalepodpicker.NewPauses(),
		ended:    ended,
		asked:    map[types.NamespacedName]*scaleDown{},
		hosts:    map[string]*host{},
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
		s.cancel()
		s = nil
	}
	if s == nil {
		s = &scaleDown{uid: q.UID, began: now, until: now.Add(maxDuration(q.Picker)), cancel: func() {}}
		c.asked[q.NamespacedName] = s
	}
	if s.taken {
		s.taken, s.identity, s.began, s.until = false, "", now, now.Add(s.left)
	}
	if s.identity == identity && apiequality.Semantic.DeepEqual(s.picker, q.Picker) {
		return s.result != nil
	}
	s.cancel()
	s.identity, s.picker, s.replicas, s.result = identity, q.Picker, q.Replicas, nil
	s.turn++
	if s.until.Sub(now) <= 0 {
		s.result = newLateResult(now.Sub(s.began))
		return true
	}
	q.key = identity
	asking, cancel := context.WithDeadlineCause(ctx, s.until, fmt.Errorf("no answer within %s", s.until.Sub(s.began)))
	slow := time.AfterFunc(slowAfter-now.Sub(s.began), func() { c.ended(q.NamespacedName) })
	s.cancel = func() { slow.Stop(); cancel() }
	go c.work(asking, s, s.turn, q)
	return false
}

// newLateResult returns the result of a question for which no time is left.
func newLateResult(waited time.Duration) *Result {
	if waited == 0 {
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
	return s.until, true
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
	s.result, s.taken, s.left = nil, true, s.until.Sub(s.began.Add(result.Duration))
	observeScaleDown(result)
	return result, true
}

// Forget ends the scale-down of a ReplicaSet, if there is one.
func (c *Client) Forget(key types.NamespacedName) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s := c.asked[key]; s != nil {
		s.cancel()
		delete(c.asked, key)
	}
}

// work asks until there is an answer, the attempts are used up, or the context ends.
func (c *Client) work(ctx context.Context, s *scaleDown, turn int, q Question) {
	response, reason, err := c.askInTurn(ctx, &q)
	c.lock.Lock()
	current := c.asked[q.NamespacedName] == s && s.turn == turn
	if current {
		s.cancel() // Releases its timers.
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

// askInTurn waits until the host and the namespace have a place, and asks.
func (c *Client) askInTurn(ctx context.Context, q *Question) (downscalepodpicker.Response, FallbackReason, error) {
	const busy = "others are being asked: %w"
	leave, err := c.enterHost(ctx, hostKey(q))
	if err != nil {
		return downscalepodpicker.Response{}, FallbackBusy, fmt.Errorf(busy, err)
	}
	defer leave()
	release, err := c.enterNamespace(ctx, q.Namespace)
	if err != nil {
		return downscalepodpicker.Response{}, FallbackBusy, fmt.Errorf(busy, err)
	}
	defer func() { release() }()
	entered := time.Now()

	retries, timeout := limits(q.Picker)
	pauses := c.pauses
	for attempt := 0; ; attempt++ {
		response, err := c.attemptWithin(ctx, timeout, q)
		if err == nil {
			return response, "", nil
		}
		err = fmt.Errorf("attempt %d of %d: %w", attempt+1, retries+1, err)
		if attempt == retries || ctx.Err() != nil {
			return downscalepodpicker.Response{}, FallbackFailed, err
		}
		stays := time.Since(entered) < maxStay
		if !stays {
			release()
		}
		select {
		case <-ctx.Done():
			return downscalepodpicker.Response{}, FallbackFailed, err
		case <-time.After(pauses.Step()):
		}
		if stays {
			continue
		}
		next, enterErr := c.enterNamespace(ctx, q.Namespace)
		if enterErr != nil {
			return downscalepodpicker.Response{}, FallbackFailed, err
		}
		release, entered = next, time.Now()
	}
}

// enterNamespace waits for a place.
func (c *Client) enterNamespace(ctx context.Context, namespace string) (release func(), err error) {
	place, err := c.places.Acquire(ctx, namespace)
	if err != nil {
		return nil, err
	}
	place.Begin()
	slow := time.AfterFunc(maxStay+addAfter, func() { c.countSlow(1) })
	return sync.OnceFunc(func() {
		place.Release()
		if !slow.Stop() {
			c.countSlow(-1)
		}
	}), nil
}

// countSlow adds a place for each slow question, up to as many as there are without them: attempts that
// hang for half a minute do not keep others from being asked. The namespaces of slow questions get no
// more than their share of these places.
func (c *Client) countSlow(change int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.slow += change
	c.places.Limit(c.total+max(0, min(c.slow, c.total)), min(c.total, maxPerNamespace))
}

func (c *Client) attemptWithin(ctx context.Context, timeout time.Duration, q *Question) (downscalepodpicker.Response, error) {
	attempting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	response, err := c.attempt(attempting, q)
	timedOut := err != nil && attempting.Err() != nil
	if timedOut {
		err = context.Cause(attempting)
		if !errors.Is(err, context.Canceled) {
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

// enterHost waits until fewer than maxPerHost others ask the host.
func (c *Client) enterHost(ctx context.Context, name string) (leave func(), err error) {
	c.lock.Lock()
	h := c.hosts[name]
	if h == nil {
		h = &host{places: make(chan struct{}, maxPerHost)}
		c.hosts[name] = h
	}
	h.users++
	c.lock.Unlock()
	forget := func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		if h.users--; h.users == 0 {
			delete(c.hosts, name)
		}
	}
	select {
	case h.places <- struct{}{}:
		return func() { <-h.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

// String says what a picker decided.
func (r Result) String() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return "chose " + strconv.Itoa(r.Chosen) + " and called " + strconv.Itoa(r.Tied) + " tied"
}
