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
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/utils/ptr"
)

var key = types.NamespacedName{Namespace: "team", Name: "workers"}

// newQuestion asks the server which of the pods a, b and c to remove.
func newQuestion(t *testing.T, url string, pods int) Question {
	t.Helper()
	scheme, address, _ := strings.Cut(url, "://")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return Question{
		NamespacedName: key, UID: "rs-1", Replicas: 3 - int32(pods), Pods: pods, Candidates: []string{"a", "b", "c"}, CandidateUIDs: []types.UID{"1", "2", "3"},
		Picker: &v1.DownscalePodPicker{
			HTTP:       &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt(number), Path: "/pick?x=1", Scheme: v1.URIScheme(strings.ToUpper(scheme))},
			MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](5),
		},
	}
}

type asked struct {
	*Client
	ended chan types.NamespacedName
}

func newAsked(t *testing.T, total int, objects ...runtime.Object) *asked {
	t.Helper()
	a := &asked{ended: make(chan types.NamespacedName, 1000)}
	a.Client = NewClient(fake.NewClientset(objects...), &Addresses{Allowed: mustRanges(t, "127.0.0.1/32")}, total, func(key types.NamespacedName) { a.ended <- key })
	return a
}

// result asks and returns the result.
func (a *asked) result(t *testing.T, q Question) Result {
	t.Helper()
	if a.Ask(t.Context(), q) {
		t.Fatal("a new question has an answer")
	}
	return a.wait(t, q.NamespacedName)
}

func (a *asked) wait(t *testing.T, key types.NamespacedName) Result {
	t.Helper()
	for {
		select {
		case <-a.ended:
		case <-time.After(time.Minute):
			t.Fatal("the question does not end")
		}
		if result, found := a.Take(key); found {
			return result
		}
	}
}

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func TestAnswers(t *testing.T) {
	large := `{"chosen_pods":["a"],"tied_pods":[` + strings.Repeat(`"",`, 400_000)
	for name, test := range map[string]struct {
		answer    http.HandlerFunc
		wantRanks map[string]int
		wantErr   string
	}{
		"chosen and tied": {answering(`{"chosen_pods":["b"],"tied_pods":["c"]}`), map[string]int{"a": RankOther, "b": RankChosen, "c": RankTied}, ""},
		"more than asked": {answering(`{"chosen_pods":["a","b","c"],"tied_pods":[]}`), map[string]int{"a": RankChosen, "b": RankChosen, "c": RankChosen}, ""},
		"tied only":       {answering(`{"tied_pods":["a"]}`), map[string]int{"a": RankTied, "b": RankOther, "c": RankOther}, ""},
		"none":            {answering(`{"chosen_pods":[],"tied_pods":[]}`), nil, ""},
		"empty object":    {answering(`{}`), nil, ""},
		"null":            {answering(`{"chosen_pods":null,"tied_pods":null}`), nil, ""},
		"no candidate":    {answering(`{"chosen_pods":["d"]}`), nil, `names "d", which is not one`},
		"twice":           {answering(`{"chosen_pods":["a","a"]}`), nil, "name a pod once"},
		"in both lists":   {answering(`{"chosen_pods":["a"],"tied_pods":["a"]}`), nil, "name a pod once"},
		"unknown field":   {answering(`{"more":{"chosen_pods":[1]},"chosen_pods":["a"],"none":null}`), map[string]int{"a": RankChosen, "b": RankOther, "c": RankOther}, ""},
		"no JSON":         {answering(`<html>`), nil, "as JSON"},
		"no object":       {answering(`["a"]`), nil, "as JSON"},
		"two objects":     {answering(`{"chosen_pods":["a"]}{}`), nil, "goes on after the end"},
		"nothing":         {answering(``), nil, "as JSON"},
		"cut":             {answering(`{"chosen_pods":["a"`), nil, "as JSON"},
		"too large":       {answering(large), nil, "larger than 1048576 bytes"},
		"a long name":     {answering(`{"chosen_pods":["` + strings.Repeat("x", 1000) + `"]}`), nil, `xxx..."`},
		"status 500":      {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret details", 500) }, nil, "status 500"},
		"status 204":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, nil, "status 204"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, nil, "status 307"},
		"no encoding": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "identity")
			answering(`{"chosen_pods":["a"]}`)(w, r)
		}, map[string]int{"a": RankChosen, "b": RankOther, "c": RankOther}, ""},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte("a"), 10<<20))
			_ = z.Close()
		}, nil, "Content-Encoding"},
		"huge header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, nil, "headers"},
		"large header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 20<<10))
		}, nil, "headers"},
		"closes": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			got := newAsked(t, 1).result(t, newQuestion(t, server.URL, 1))
			if !reflect.DeepEqual(got.Ranks, test.wantRanks) {
				t.Errorf("ranks %v, want %v", got.Ranks, test.wantRanks)
			}
			if test.wantErr == "" && got.Err != nil || test.wantErr != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), test.wantErr)) {
				t.Errorf("error %v, want %q", got.Err, test.wantErr)
			}
			if got.Err != nil && (strings.Contains(got.Err.Error(), "secret details") || strings.Contains(got.Err.Error(), server.URL) || len(got.Err.Error()) > 300) {
				t.Errorf("the error repeats the address or what the picker sends: %v", got.Err)
			}
		})
	}
}

// What the picker is sent.
func TestRequest(t *testing.T) {
	var got *http.Request
	var body downscalepodpicker.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	defer server.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	q := newQuestion(t, server.URL, 2)
	q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{
		{Name: "X-Team", Value: "one"}, {Name: "X-Team", Value: "two"},
		{Name: "Authorization", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "bearer", false)}},
		{Name: "X-Again", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "bearer", false)}},
		{Name: "X-Optional", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("gone", "bearer", true)}},
		{Name: "X-Optional", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "gone", true)}},
		// The API server refuses it. What is stored may be older.
		{Name: "Kubernetes-Namespace", Value: "other"},
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: "team"}, Data: map[string][]byte{"bearer": []byte("Bearer s3cr3t")}}
	a := newAsked(t, 1, secret)
	if result := a.result(t, q); result.Err != nil {
		t.Fatal(result.Err)
	}
	if reads := len(a.client.(*fake.Clientset).Actions()); reads != 2 {
		t.Errorf("two Secrets were read %d times", reads)
	}
	if want := (downscalepodpicker.Request{NumberOfPodsRequested: 2, CandidatePods: []string{"a", "b", "c"}}); !reflect.DeepEqual(body, want) {
		t.Errorf("asked %+v, want %+v", body, want)
	}
	if got.Method != http.MethodPost || got.RequestURI != "/pick?x=1" || got.Host != strings.TrimPrefix(server.URL, "http://") {
		t.Errorf("%s %s at %s", got.Method, got.RequestURI, got.Host)
	}
	for name, want := range map[string][]string{
		"X-Team": {"one", "two"}, "Authorization": {"Bearer s3cr3t"}, "X-Again": {"Bearer s3cr3t"}, "X-Optional": nil,
		"Content-Type": {"application/json"}, "Accept": {"application/json"},
		"Kubernetes-Namespace": {"team"}, "Kubernetes-Replicaset": {"workers"}, "Cookie": nil, "Accept-Encoding": nil,
	} {
		if values := got.Header.Values(name); !reflect.DeepEqual(values, want) {
			t.Errorf("header %s is %q, want %q", name, values, want)
		}
	}
	if !got.Close {
		t.Error("the connection is kept")
	}
	if len(got.Header.Get("Idempotency-Key")) < 16 {
		t.Errorf("the idempotency key is %q", got.Header.Get("Idempotency-Key"))
	}
}

func secretKey(name, key string, optional bool) *v1.SecretKeySelector {
	return &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}
}

func TestSecretErrors(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	const value = "s3cr3t"
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: "team"}, Data: map[string][]byte{"line": []byte(value + "\n")}}
	for _, test := range []struct{ name, key, want string }{
		{"gone", "x", "Secret gone does not exist"},
		{"token", "x", "Secret token has no key x"},
		{"token", "line", "line break"},
		{"refused", "x", "reading Secret refused"},
	} {
		q := newQuestion(t, server.URL, 1)
		q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Key", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey(test.name, test.key, false)}}}
		a := newAsked(t, 1, secret)
		a.client.(*fake.Clientset).PrependReactor("get", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.GetAction).GetName() == "refused" {
				return true, nil, errors.New("no rights")
			}
			return false, nil, nil
		})
		result := a.result(t, q)
		if result.Err == nil || !strings.Contains(result.Err.Error(), test.want) || strings.Contains(result.Err.Error(), value) {
			t.Errorf("%s/%s: %v, want %q and no value", test.name, test.key, result.Err, test.want)
		}
	}
	q := newQuestion(t, server.URL, 1)
	for want, header := range map[string]v1.HTTPDownscalePodPickerHeader{
		"Secret gone does not exist":       {Name: "X-Key", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "gone"}}}},
		"its name or value has characters": {Name: "X Key", Value: value},
	} {
		q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{header}
		if result := newAsked(t, 1).result(t, q); result.Err == nil || !strings.Contains(result.Err.Error(), want) || strings.Contains(result.Err.Error(), value) {
			t.Errorf("%v, want %q and no value", result.Err, want)
		}
	}
	if calls.Load() > 0 {
		t.Error("the picker was asked without the header")
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(answering(`{"chosen_pods":["a"]}`))
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other := httptest.NewUnstartedServer(nil)
	for name, test := range map[string]struct {
		change  func(*Question, *asked)
		wantErr string
	}{
		"trusted":        {func(q *Question, _ *asked) { q.Picker.HTTP.CABundle = bundle }, ""},
		"unknown":        {func(*Question, *asked) {}, "unknown authority"},
		"no certificate": {func(q *Question, _ *asked) { q.Picker.HTTP.CABundle = []byte("x") }, "caBundle has no certificate"},
		"name": {func(q *Question, a *asked) {
			q.Picker.HTTP.CABundle, q.Picker.HTTP.Host = bundle, "other.test"
			a.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
		}, "not other.test"},
		"its name": {func(q *Question, a *asked) {
			q.Picker.HTTP.CABundle, q.Picker.HTTP.Host = bundle, "example.com"
			a.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
		}, ""},
		"HTTP":  {func(q *Question, _ *asked) { q.Picker.HTTP.Scheme = v1.URISchemeHTTP }, "status 400"},
		"https": {func(q *Question, _ *asked) { q.Picker.HTTP.CABundle, q.Picker.HTTP.Scheme = bundle, "https" }, ""},
	} {
		q, a := newQuestion(t, server.URL, 1), newAsked(t, 1)
		test.change(&q, a)
		result := a.result(t, q)
		if test.wantErr == "" && result.Err != nil || test.wantErr != "" && (result.Err == nil || !strings.Contains(result.Err.Error(), test.wantErr)) {
			t.Errorf("%s: %v, want %q", name, result.Err, test.wantErr)
		}
	}
	other.Close()

	old := httptest.NewUnstartedServer(answering(`{}`))
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // What is refused.
	old.StartTLS()
	defer old.Close()
	q := newQuestion(t, old.URL, 1)
	q.Picker.HTTP.CABundle = bundle
	if result := newAsked(t, 1).result(t, q); result.Err == nil || !strings.Contains(result.Err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", result.Err)
	}
}

// Only the address that was checked can be reached: no proxy is asked to resolve the name again.
func TestTransport(t *testing.T) {
	for _, scheme := range []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS} {
		transport, err := newTransport(&v1.HTTPDownscalePodPicker{Scheme: scheme}, target{}, nil)
		if err != nil || transport.Proxy != nil {
			t.Errorf("%s: there is a proxy, %v", scheme, err)
		}
	}
}

// A picker with a protocol of a later version fails like any other.
func TestUnknownProtocol(t *testing.T) {
	q := newQuestion(t, "http://127.0.0.1:1", 1)
	q.Picker = &v1.DownscalePodPicker{MaxRetries: ptr.To[int32](0)}
	if result := newAsked(t, 1).result(t, q); result.Err == nil || !strings.HasSuffix(result.Err.Error(), errNoHTTP.Error()) || result.Reason != FallbackFailed {
		t.Errorf("%v (%s)", result.Err, result.Reason)
	}
}

// An address is looked up once for each attempt, and dialed as it was checked.
func TestRebinding(t *testing.T) {
	server := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer server.Close()
	q, a := newQuestion(t, server.URL, 1), newAsked(t, 1)
	q.Picker.HTTP.Host = "rebinding.test"
	lookups := 0
	a.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
		if lookups++; lookups == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
	}
	if result := a.result(t, q); result.Err != nil || lookups != 1 {
		t.Errorf("%v after %d lookups", result.Err, lookups)
	}
	if result := a.result(t, q); result.Err == nil || !strings.Contains(result.Err.Error(), "is not allowed") {
		t.Errorf("%v, want that the new address is refused", result.Err)
	}
}

// A failed attempt is repeated with the same idempotency key, as often as wanted.
func TestRetries(t *testing.T) {
	var lock sync.Mutex
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) < 3 {
			http.Error(w, "not yet", 500)
			return
		}
		_, _ = io.WriteString(w, `{"chosen_pods":["a"]}`)
	}))
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	q.Picker.MaxRetries = ptr.To[int32](1)
	if result := newAsked(t, 1).result(t, q); result.Err == nil || result.Reason != FallbackFailed || !strings.Contains(result.Err.Error(), "attempt 2 of 2") {
		t.Errorf("%v (%s) with one retry", result.Err, result.Reason)
	}
	if result := newAsked(t, 1).result(t, q); result.Err != nil || len(keys) != 3 {
		t.Errorf("%v after %d attempts", result.Err, len(keys))
	}
	if keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("keys %q of one scale-down", keys)
	}
	before := keys[0]
	q.Replicas++
	newAsked(t, 1).result(t, q)
	if keys[3] == before {
		t.Error("another scale-down has the same key")
	}
}

// hang answers when the test ends.
func hang(t *testing.T) *httptest.Server {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server
}

func TestTimeouts(t *testing.T) {
	q := newQuestion(t, hang(t).URL, 1)
	q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](1), ptr.To[int32](1)
	started := time.Now()
	result := newAsked(t, 1).result(t, q)
	// The last attempt ends with the scale-down, somewhat earlier than its own time, and says its own.
	if said := fmt.Sprint(result.Err); result.Reason != FallbackFailed || !strings.Contains(said, "attempt 2 of 2: no answer within ") || strings.Contains(said, "2.2s") {
		t.Errorf("%v (%s)", result.Err, result.Reason)
	}
	if took := time.Since(started); took < 2*time.Second || result.Duration < 2*time.Second {
		t.Errorf("ended after %s, %s", took, result.Duration)
	}
	for _, test := range []struct {
		picker v1.DownscalePodPicker
		want   time.Duration
	}{
		{*q.Picker, 2*time.Second + 200*time.Millisecond},
		{v1.DownscalePodPicker{}, 4*time.Second + 1400*time.Millisecond},
		// Pauses of 0.2, 0.4, 0.8 and 1.6 seconds, and of two seconds.
		{v1.DownscalePodPicker{MaxRetries: ptr.To[int32](10), TimeoutSeconds: ptr.To[int32](30)}, 11*30*time.Second + 15*time.Second},
	} {
		if got := maxDuration(&test.picker); got != test.want {
			t.Errorf("a scale-down may take %s, want %s", got, test.want)
		}
	}
}

// A scale-down that waits for long says so once, with its end.
func TestSlow(t *testing.T) {
	q := newQuestion(t, hang(t).URL, 1)
	q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](1), ptr.To[int32](10)
	a, began := newAsked(t, 1), time.Now()
	a.Ask(t.Context(), q)
	if _, slow := a.Slow(q.NamespacedName); slow {
		t.Error("it is slow at once")
	}
	q.Replicas++ // Another question belongs to the same scale-down.
	a.Ask(t.Context(), q)
	<-a.ended
	if took := time.Since(began); took < slowAfter {
		t.Errorf("the ReplicaSet is queued after %s", took)
	}
	until, slow := a.Slow(q.NamespacedName)
	if left := until.Sub(began) - maxDuration(q.Picker) - maxWait; !slow || left < -time.Millisecond || left > time.Second {
		t.Errorf("slow: %t, until %s too late", slow, left)
	}
	if _, slow := a.Slow(q.NamespacedName); slow {
		t.Error("it says so twice")
	}
	a.Forget(q.NamespacedName)
	select {
	case <-a.ended:
		t.Error("the ReplicaSet is queued again")
	case <-time.After(100 * time.Millisecond):
	}
}

// Who waits for places ends after the same time.
func TestBusy(t *testing.T) {
	q := newQuestion(t, hang(t).URL, 1)
	q.Picker.TimeoutSeconds = ptr.To[int32](30)
	a := newAsked(t, 100)
	a.maxWait = time.Second
	for i := range firstPerHost {
		other := q
		other.Name = fmt.Sprint("other-", i)
		a.Ask(t.Context(), other)
	}
	q.Picker = q.Picker.DeepCopy()
	q.Picker.TimeoutSeconds = ptr.To[int32](1)
	waitUntil(t, func() bool {
		a.places.lock.Lock()
		defer a.places.lock.Unlock()
		h := a.places.hosts[hostKey(&q)]
		return h != nil && h.asking == firstPerHost
	})
	if result := a.result(t, q); result.Err == nil || result.Reason != FallbackBusy {
		t.Errorf("%v (%s), want busy", result.Err, result.Reason)
	}
	q.Namespace, q.Picker.MaxRetries = "elsewhere", ptr.To[int32](0)
	if result := a.result(t, q); result.Err == nil || result.Reason != FallbackFailed {
		t.Errorf("%v (%s), want that another namespace asks the same host", result.Err, result.Reason)
	}
	a.Forget(q.NamespacedName)
	q.Namespace = key.Namespace
	a.Forget(q.NamespacedName)
	for i := range firstPerHost {
		a.Forget(types.NamespacedName{Namespace: q.Namespace, Name: fmt.Sprint("other-", i)})
	}
	waitUntil(t, func() bool { a.places.lock.Lock(); defer a.places.lock.Unlock(); return len(a.places.hosts) == 0 })
	if len(a.asked) != 0 {
		t.Errorf("%d scale-downs are kept", len(a.asked))
	}
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}

// Another question replaces the one before in what is left of its time, and then there is no answer.
func TestChangedQuestion(t *testing.T) {
	q := newQuestion(t, hang(t).URL, 1)
	q.Picker.TimeoutSeconds = ptr.To[int32](1)
	a := newAsked(t, 1)
	started := time.Now()
	for range 2 {
		if a.Ask(t.Context(), q) {
			t.Fatal("there is an answer")
		}
	}
	for {
		if q.Replicas++; a.Ask(t.Context(), q) {
			break
		}
		if time.Since(started) > 30*time.Second {
			t.Fatal("the time does not end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(started); took < time.Second {
		t.Errorf("given up after %s", took)
	}
	if result, found := a.Take(key); !found || result.Reason != FallbackChanged {
		t.Errorf("%v, %t, want that it changed", result, found)
	}

	// Another ReplicaSet of the name has its own time.
	a.Forget(key)
	other := q
	if a.Ask(t.Context(), q) {
		t.Error("a new scale-down has an answer")
	}
	other.UID = "rs-2"
	if a.Ask(t.Context(), other) {
		t.Error("another ReplicaSet has an answer")
	}
	if result := a.wait(t, key); result.Err == nil {
		t.Error("who hangs has answered")
	}
}

// A call that was canceled because the question changed says nothing of the same question that is asked
// again later, however late it ends.
func TestCanceledCallEndsLate(t *testing.T) {
	server := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer server.Close()
	q, a := newQuestion(t, server.URL, 1), newAsked(t, 100)
	q.Picker.HTTP.Host = "late.test"
	first, third := make(chan struct{}), make(chan struct{})
	var lookups atomic.Int32
	a.resolver.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		switch lookups.Add(1) {
		case 1:
			<-first
			return nil, ctx.Err()
		case 2:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		<-third
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	a.Ask(t.Context(), q)
	waitUntil(t, func() bool { return lookups.Load() == 1 })
	other := q
	other.Replicas++
	a.Ask(t.Context(), other)
	waitUntil(t, func() bool { return lookups.Load() == 2 })
	a.Ask(t.Context(), q)
	waitUntil(t, func() bool { return lookups.Load() == 3 })
	close(first)
	time.Sleep(100 * time.Millisecond)
	close(third)
	if result := a.wait(t, key); result.Err != nil {
		t.Errorf("the canceled call has ended the new one: %v", result.Err)
	}
}

// A picker that is changed while it is asked is not asked any more: its author may have taken back the
// headers.
func TestPickerChanges(t *testing.T) {
	var old atomic.Int32
	leaking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		old.Add(1)
		http.Error(w, "no", 500)
	}))
	defer leaking.Close()
	server := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer server.Close()
	q, a := newQuestion(t, leaking.URL, 1), newAsked(t, 8)
	q.Picker.MaxRetries = ptr.To[int32](4)
	a.Ask(t.Context(), q)
	waitUntil(t, func() bool { return old.Load() == 1 })
	q.Picker = newQuestion(t, server.URL, 1).Picker
	a.Ask(t.Context(), q)
	result := a.wait(t, key)
	if result.Err != nil || old.Load() > 1 {
		t.Errorf("%v: the old picker was asked %d times, want once", result.Err, old.Load())
	}
}

// All questions for the same replicas share one time, without that in which pods are deleted. Other
// replicas have their own.
func TestTimeOfManyPods(t *testing.T) {
	q, a := newQuestion(t, hang(t).URL, 1), newAsked(t, 1)
	q.Picker.TimeoutSeconds = ptr.To[int32](1)
	if result := a.result(t, q); result.Err == nil {
		t.Fatal("who hangs has answered")
	}
	if waits := a.countWaiting(); waits != 0 {
		t.Errorf("%d questions wait", waits)
	}
	q.CandidateUIDs = []types.UID{"4", "5", "6"}
	if !a.Ask(t.Context(), q) {
		t.Error("it is asked again for the same replicas")
	}
	if result, found := a.Take(key); !found || result.Err == nil || result.Reason != FallbackFailed || result.Duration > 0 {
		t.Errorf("%+v, %t, want that no time is left", result, found)
	}
	q.Replicas++
	if a.Ask(t.Context(), q) {
		t.Error("it is not asked for other replicas")
	}
	a.Forget(key)

	server := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer server.Close()
	quick := newQuestion(t, server.URL, 1)
	quick.Picker.TimeoutSeconds = ptr.To[int32](1)
	for i := range 3 {
		quick.CandidateUIDs = []types.UID{types.UID(fmt.Sprint(i)), "x", "y"}
		if result := a.result(t, quick); result.Err != nil {
			t.Errorf("question %d: %v", i, result.Err)
		}
		time.Sleep(400 * time.Millisecond) // Pods are deleted.
	}
}

// A wrong path is the usual mistake, and a query may be secret.
func TestStatusNamesPath(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	q.Picker.HTTP.Path = "/pi%20ck?token=s3cr3t"
	const want = "attempt 1 of 1: the picker answered with status 404, must be 200, at the path /pi%20ck"
	if result := newAsked(t, 1).result(t, q); result.Err == nil || result.Err.Error() != want {
		t.Errorf("%v, want %q", result.Err, want)
	}
}

// The end of the controller ends all calls.
func TestShutdown(t *testing.T) {
	q := newQuestion(t, hang(t).URL, 1)
	q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](30), ptr.To[int32](10)
	a := newAsked(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	a.Ask(ctx, q)
	cancel()
	if result := a.wait(t, key); result.Err == nil {
		t.Error("it has answered")
	}
}

// A Secret that changes, goes and comes back counts at the next attempt.
func TestSecretChanges(t *testing.T) {
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Key"))
		_, _ = io.WriteString(w, `{"chosen_pods":["a"]}`)
	}))
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Key", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "value", false)}}}
	a := newAsked(t, 1)
	secrets := a.client.CoreV1().Secrets("team")
	secret := func(value string) *v1.Secret {
		return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: "team"}, Data: map[string][]byte{"value": []byte(value)}}
	}
	for _, step := range []struct {
		change func() error
		want   string // The value, empty if the attempt fails.
	}{
		{func() error { return nil }, ""},
		{func() error { _, err := secrets.Create(t.Context(), secret("one"), metav1.CreateOptions{}); return err }, "one"},
		{func() error { _, err := secrets.Update(t.Context(), secret("two"), metav1.UpdateOptions{}); return err }, "two"},
		{func() error { return secrets.Delete(t.Context(), "token", metav1.DeleteOptions{}) }, ""},
		{func() error {
			_, err := secrets.Create(t.Context(), secret("three"), metav1.CreateOptions{})
			return err
		}, "three"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		got.Store("")
		if result := a.result(t, q); (result.Err == nil) != (step.want != "") || got.Load() != step.want {
			t.Errorf("the picker got %q, %v, want %q", got.Load(), result.Err, step.want)
		}
	}
}

// The same picker is the same question, whichever copy of it.
func TestSamePicker(t *testing.T) {
	var calls atomic.Int32
	reached := hangCounting(t, &calls)
	a, q := newAsked(t, 2), newQuestion(t, reached.URL, 1)
	for range 3 {
		q.Picker = q.Picker.DeepCopy()
		a.Ask(t.Context(), q)
		waitUntil(t, func() bool { return calls.Load() > 0 })
	}
	a.Forget(q.NamespacedName)
	if got := calls.Load(); got != 1 {
		t.Errorf("asked %d times", got)
	}
}

func hangCounting(t *testing.T, calls *atomic.Int32) *httptest.Server {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		<-end
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server
}
