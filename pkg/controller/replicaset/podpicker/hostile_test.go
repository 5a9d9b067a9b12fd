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
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// A pod that has ended keeps its address in its status while others get the address.
func TestAddressOfEndedPod(t *testing.T) {
	for _, phase := range []v1.PodPhase{v1.PodSucceeded, v1.PodFailed, v1.PodPending, v1.PodUnknown} {
		pod := podAt("ended", "team", "10.4.0.9", false)
		pod.Spec.NodeName, pod.Status.Phase = "node", phase
		r := &resolver{addresses: &Addresses{}, client: fake.NewClientset(
			service("picker", "team", nil), endpointsOf("picker", "team", "10.4.0.9", "ended", true), pod)}
		got, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: "picker.team.svc", Port: intstr.FromInt32(80)}, nil)
		if err == nil {
			t.Errorf("%s: would dial %s, the address of nobody or of somebody else", phase, got)
		}
	}
}

// A kubelet may say of a pod that it has an address of the node.
func TestAddressOfNode(t *testing.T) {
	pod := podAt("pod", "team", "192.168.0.7", false)
	pod.Spec.NodeName, pod.Status.Phase = "node", v1.PodRunning
	pod.Status.HostIP, pod.Status.HostIPs = "192.168.0.7", []v1.HostIP{{IP: "192.168.0.7"}}
	r := &resolver{addresses: &Addresses{}, client: fake.NewClientset(
		service("picker", "team", nil), endpointsOf("picker", "team", "192.168.0.7", "pod", true), pod)}
	if got, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: "picker.team.svc", Port: intstr.FromInt32(80)}, nil); err == nil {
		t.Errorf("would dial %s, a node", got)
	}
}

// NAT64 prefixes may be shorter than 96 bits, see RFC 6052.
func TestLocalNAT64(t *testing.T) {
	wide := &Addresses{Allowed: mustRanges(t, "::/0", "0.0.0.0/0")}
	for _, target := range []string{
		"[64:ff9b:1:a9fe:a9:fe00:808:808]:80", // 48 bits: 169.254.169.254
		"[64:ff9b:1:a9:fe:a9fe:808:808]:80",   // 56 bits
		"[64:ff9b:1:0:a9:fea9:fe08:808]:80",   // 64 bits
		"[fd00:c1::a9fe:a9fe]:80",             // Oracle
		"[fd00:a9fe:a9fe::1]:80",              // Linode
		"[fd00:42::42]:80",                    // Scaleway
	} {
		if err := wide.check(netip.MustParseAddrPort(target), false); err == nil {
			t.Errorf("%s may be called", target)
		}
	}
}

// What the control plane's DNS knows is not for tenants.
func TestNamesOfControlPlane(t *testing.T) {
	for name, allowed := range map[string][]Range{"nothing allowed": nil, "something allowed": mustRanges(t, "10.6.0.0/24")} {
		lookups := 0
		r := &resolver{addresses: &Addresses{Allowed: allowed}, lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			lookups++
			if host == "gone.corp" {
				return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.77.0.2:53", IsNotFound: true}
			}
			return []netip.Addr{netip.MustParseAddr("10.77.1.2")}, nil
		}}
		for _, host := range []string{"database.corp", "gone.corp"} {
			_, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt32(80)}, nil)
			if err == nil || strings.Contains(err.Error(), "10.77.") {
				t.Errorf("%s, %s: the error tells the address: %v", name, host, err)
			}
		}
		if allowed == nil && lookups > 0 {
			t.Errorf("%s: %d lookups for tenants", name, lookups)
		}
	}
}

// A picker's error is kept until the ReplicaSet is synced again, which may be never.
func TestErrorsAreShort(t *testing.T) {
	for name, body := range map[string]string{
		"name":   `{"chosen_pods": ["` + strings.Repeat("\u202e", 300_000) + `"]}`,
		"number": `{"chosen_pods": ` + strings.Repeat("1", 1_000_000) + `}`,
	} {
		server := httptest.NewServer(answering(body))
		result := newAsked(t, 1).result(t, newQuestion(t, server.URL, 1))
		server.Close()
		if result.Err == nil || len(result.Err.Error()) > 1024 {
			t.Errorf("%s: an error of %d bytes", name, len(fmt.Sprint(result.Err)))
		}
	}
}

func TestPathWithBlank(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	lines := make(chan string, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(connection).ReadString('\n')
		lines <- line
		_ = connection.Close()
	}()
	q := newQuestion(t, "http://"+listener.Addr().String(), 1)
	q.Picker.HTTP.Path = "/admin?x HTTP/1.0"
	result := newAsked(t, 1).result(t, q)
	select {
	case line := <-lines:
		t.Errorf("sent %q (%v)", line, result.Err)
	default:
	}
}

// The memory of a question does not depend on the size of Secrets.
func TestLargeSecrets(t *testing.T) {
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "team"}, Data: map[string][]byte{"value": []byte(strings.Repeat("x", 1<<20-1000))}}
	received := make(chan int, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := 0
		for _, values := range r.Header {
			for _, value := range values {
				size += len(value)
			}
		}
		received <- size
		_, _ = io.WriteString(w, "{}")
	}))
	server.Config.MaxHeaderBytes = 64 << 20
	server.Start()
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	for i := range 32 {
		q.Picker.HTTP.HTTPHeaders = append(q.Picker.HTTP.HTTPHeaders, v1.HTTPDownscalePodPickerHeader{Name: fmt.Sprint("X-", i),
			ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("large", "value", false)}})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result := newAsked(t, 1, secret).result(t, q)
	runtime.ReadMemStats(&after)
	if result.Err == nil || !strings.Contains(result.Err.Error(), "bytes") {
		t.Errorf("sent %d bytes of headers, allocated %d MiB in one attempt: %v", <-received, (after.TotalAlloc-before.TotalAlloc)>>20, result.Err)
	}
}

// A picker that sends the Secret back does not bring it into an event.
func TestSecretSentBack(t *testing.T) {
	for name, body := range map[string]string{"name": `{"chosen_pods":[%q]}`, "chosen twice": `{"chosen_pods":["a"],"tied_pods":["a",%q]}`} {
		const value = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
		secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: "team"}, Data: map[string][]byte{"value": []byte(value)}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, body, r.Header.Get("X-Token")) }))
		q := newQuestion(t, server.URL, 1)
		q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "value", false)}}}
		result := newAsked(t, 1, secret).result(t, q)
		server.Close()
		if result.Err == nil || strings.Contains(result.Err.Error(), value) {
			t.Errorf("%s: %v", name, result.Err)
		}
	}
}

// A short value of a header, from a Secret or not, hides what a server has sent with it, and no other
// error.
func TestShortSecrets(t *testing.T) {
	const names = `chosen_pods names %s, which is not one of the candidate_pods`
	for _, value := range []string{"a", "e", "ed", "pod", "names", "no", `a"b`} {
		for answer, want := range map[string]string{
			`{"chosen_pods":[` + strconv.Quote(value) + `]}`: fmt.Sprintf(names, "(left out, as it repeats the value of a header)"),
			`{"chosen_pods":["zzz"]}`:                        fmt.Sprintf(names, `"zzz"`),
			"status":                                         "the picker answered with status 500, must be 200, at the path /pick",
			"header":                                         "(left out, as it repeats the value of a header)",
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch answer {
				case "status":
					http.Error(w, value, http.StatusInternalServerError)
				case "header":
					repeat(t, w, "HTTP/1.1 200 OK\r\n"+r.Header.Get("X-Token")+"\r\n\r\n")
				default:
					_, _ = io.WriteString(w, answer)
				}
			}))
			secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: "team"}, Data: map[string][]byte{"value": []byte(value)}}
			for from, header := range map[string]v1.HTTPDownscalePodPickerHeader{
				"a Secret": {Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "value", false)}},
				"itself":   {Name: "X-Token", Value: value},
			} {
				q := newQuestion(t, server.URL, 1)
				q.Candidates = []string{"xxx", "yyy"}
				q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{header}
				if result := newAsked(t, 1, secret).result(t, q); !errorHas(result.Err, want) {
					t.Errorf("value %q from %s, answer %s: %v, want %q", value, from, answer, result.Err, want)
				}
			}
			server.Close()
		}
	}
}

// A value that is not from a Secret is not repeated either.
func TestHeaderSentBack(t *testing.T) {
	const value = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	server := httptest.NewServer(answering(`{"chosen_pods":["` + value + `"]}`))
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Token", Value: value}}
	if result := newAsked(t, 1).result(t, q); !errorHas(result.Err, "repeats the value") || errorHas(result.Err, value) {
		t.Errorf("%v", result.Err)
	}
}

// Questions that change and pickers that hang in TLS, in the header or in the body leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection // It is accepted, and that is all.
		}
	}()
	a := newAsked(t, 20)
	before := runtime.NumGoroutine()
	for _, scheme := range []string{"HTTP", "HTTPS"} {
		for i := range 300 {
			q := newQuestion(t, scheme+"://"+listener.Addr().String(), 1)
			q.Name, q.Replicas = fmt.Sprint("rs-", scheme, i%3), int32(i)
			q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](1), ptr.To[int32](1)
			a.Ask(t.Context(), q)
			time.Sleep(time.Millisecond)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	kept := func() int {
		a.places.lock.Lock()
		defer a.places.lock.Unlock()
		return len(a.places.hosts) + len(a.places.slow)
	}
	for (runtime.NumGoroutine() > before+3 || kept() > 0) && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before+3 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	if count := kept(); count > 0 {
		t.Errorf("%d hosts and slow questions are kept", count)
	}
}

// Namespaces that were quick can have all places. If their pickers hang then, they do not keep them for
// all attempts.
func TestHangingNamespaces(t *testing.T) {
	quick := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer quick.Close()
	const total = 8
	a := newAsked(t, total)
	for i := range total {
		q := newQuestion(t, quick.URL, 1)
		q.Namespace = fmt.Sprint("hostile-", i)
		if result := a.result(t, q); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	hanging := hang(t).URL
	for i := range total {
		q := newQuestion(t, hanging, 1)
		q.Namespace = fmt.Sprint("hostile-", i)
		q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](1), ptr.To[int32](10)
		a.Ask(t.Context(), q)
	}
	time.Sleep(100 * time.Millisecond)
	q := newQuestion(t, quick.URL, 1)
	q.Picker.TimeoutSeconds = ptr.To[int32](10)
	a.Ask(t.Context(), q)
	if result := a.wait(t, key); result.Err != nil {
		t.Errorf("%v (%s after %s)", result.Err, result.Reason, result.Duration)
	}
}

// New namespaces can have three quarters of the places. If their pickers hang for half a minute in each
// attempt, other new namespaces get an answer all the same, then and later.
func TestHangingAttempts(t *testing.T) {
	quick := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
	defer quick.Close()
	const total = 20
	a, hanging := newAsked(t, total), hang(t).URL
	for i := range total * 3 / 4 {
		for name := range 4 {
			q := newQuestion(t, hanging, 1)
			q.Namespace, q.Name = fmt.Sprint("hostile-", i), fmt.Sprint("rs-", name)
			q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](30), ptr.To[int32](10)
			a.Ask(t.Context(), q)
		}
	}
	time.Sleep(100 * time.Millisecond)
	for i := range 3 {
		began := time.Now()
		q := newQuestion(t, quick.URL, 1)
		q.Namespace, q.Picker.TimeoutSeconds, q.Picker.MaxRetries = fmt.Sprint("healthy-", i), ptr.To[int32](4), nil
		a.Ask(t.Context(), q)
		if result := a.wait(t, q.NamespacedName); result.Err != nil {
			t.Errorf("%d: %v (%s after %s)", i, result.Err, result.Reason, result.Duration)
		} else {
			t.Logf("%d: after %s", i, time.Since(began))
		}
		time.Sleep(3500 * time.Millisecond)
	}
}

// Whoever can write EndpointSlices can write many.
func TestManyEndpointSlices(t *testing.T) {
	client := fake.NewClientset(service("picker", "team", nil), endpointsOf("picker", "team", "10.4.0.1", "picker-1", true), podAt("picker-1", "team", "10.4.0.1", false))
	r := &resolver{addresses: &Addresses{}, client: client}
	if _, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: "picker.team.svc", Port: intstr.FromInt32(80)}, nil); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		list, isList := action.(clienttesting.ListActionImpl)
		if isList && (list.ListOptions.Limit == 0 || list.ListOptions.Limit > 100) {
			t.Errorf("lists %d EndpointSlices of up to 1,000 endpoints at a time, for each attempt", list.ListOptions.Limit)
		}
	}
	if testing.Verbose() {
		all := &discoveryv1.EndpointSliceList{}
		for i := range 200 {
			slice := endpointsOf(fmt.Sprint("picker-", i), "team", "10.4.0.1", "picker-1", true)
			for range 999 {
				slice.Endpoints = append(slice.Endpoints, *slice.Endpoints[0].DeepCopy())
			}
			all.Items = append(all.Items, *slice)
		}
		data, err := all.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		read := &discoveryv1.EndpointSliceList{}
		if err := read.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("200 EndpointSlices are %d MiB encoded, and %d MiB in memory", len(data)>>20, (after.HeapAlloc-before.HeapAlloc)>>20)
		runtime.KeepAlive(read)
		runtime.KeepAlive(data)
	}
}
