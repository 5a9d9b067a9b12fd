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

package downscalepodpicker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// victim is a server of the control plane's network, which a tenant wants to reach.
type victim struct {
	listeners []net.Listener
	reached   atomic.Int32
}

// startVictim listens on one port of 127.0.0.1 and, where there is IPv6, of ::1.
func startVictim(t *testing.T) (v *victim, port int) {
	t.Helper()
	v = &victim{}
	for _, address := range []string{"127.0.0.1", "::1"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			if port != 0 {
				continue
			}
			t.Fatal(err)
		}
		port = listener.Addr().(*net.TCPAddr).Port
		v.listeners = append(v.listeners, listener)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				v.reached.Add(1)
				_ = connection.Close()
			}
		}()
		t.Cleanup(func() { _ = listener.Close() })
	}
	return v, port
}

// attempt is a picker by which a tenant tries to reach the victim, or what else is not his.
type attempt struct {
	name   string
	host   string
	port   intstr.IntOrString
	path   string
	header v1.HTTPDownscalePodPickerHeader
	// invalid is what the API server says of it. If it is empty, fails is what the event says.
	invalid, fails string
}

// TestServerSideRequestForgery tries to have kube-controller-manager call what a tenant must not reach.
// All attempts are refused, with a clear error or event, and nothing is dialed.
func TestServerSideRequestForgery(t *testing.T) {
	config := startAPIServer(t, true)
	c := newCluster(t, config)
	other := testcluster.New(t, config, "other")
	v, victimPort := startVictim(t)
	// A client that uses a proxy of the environment would call the victim for every name and address.
	for _, variable := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(variable, fmt.Sprintf("http://127.0.0.1:%d", victimPort))
	}
	hostile, hostilePort := startHostilePicker(t, fmt.Sprintf("http://127.0.0.1:%d/", victimPort))
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	serverPort, err := strconv.Atoi(server.Port())
	if err != nil {
		t.Fatal(err)
	}

	port := intstr.FromInt(victimPort)
	attempts := append(addressAttempts(port), requestAttempts(port)...)
	attempts = append(attempts, c.serviceAttempts(other.Namespace, victimPort)...)
	attempts = append(attempts, attempt{name: "the API server of this test", host: server.Hostname(), port: intstr.FromInt(serverPort), fails: "loopback"})
	for path, fails := range hostile {
		attempts = append(attempts, attempt{name: "answers " + path, host: "127.0.0.1", port: intstr.FromInt(hostilePort), path: "/" + path, fails: fails})
	}
	if len(attempts) < 60 {
		t.Errorf("%d attempts, want 60 at least", len(attempts))
	}

	// The administrator allows the hostile picker, and ranges that may lead back into IPv4.
	allowed, err := podpicker.ParseRanges([]string{
		fmt.Sprintf("127.0.0.1/32:%d", hostilePort), "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96",
	})
	if err != nil {
		t.Fatal(err)
	}
	dialed := c.startReplicaSets(&podpicker.Addresses{Allowed: allowed, APIServers: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.77")} }})
	created := map[string]attempt{}
	for i, a := range attempts {
		name := fmt.Sprintf("attempt-%d", i)
		rs := a.replicaSet(name)
		_, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Create(t.Context(), rs, metav1.CreateOptions{})
		switch {
		case a.invalid == "" && err != nil:
			t.Errorf("%s: %v", a.name, err)
		case a.invalid == "":
			created[name] = a
		case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.downscalePodPicker.http."+a.invalid):
			t.Errorf("%s: got %v, want an invalid %s", a.name, err, a.invalid)
		}
	}
	for name := range created {
		c.awaitReplicas(name, 2)
		if _, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"replicas": 1}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	messages := c.awaitFailures(created)
	for name, a := range created {
		c.awaitReplicas(name, 1)
		if !strings.Contains(messages[name], a.fails) {
			t.Errorf("%s: the event says %q, want %q", a.name, messages[name], a.fails)
		}
	}
	if reached := v.reached.Load(); reached > 0 {
		t.Errorf("the victim was reached %d times", reached)
	}
	// The victim sees what reaches this machine, the trace all else.
	for _, address := range dialed() {
		if address != server.Host && address != net.JoinHostPort("127.0.0.1", strconv.Itoa(hostilePort)) {
			t.Errorf("%s was dialed", address)
		}
	}
	t.Logf("dialed: %q", dialed())
	t.Logf("%d attempts: %d refused by the API server, %d by the controller", len(attempts), len(attempts)-len(created), len(created))
}

// addressAttempts spell addresses of this machine, and of others that nobody allows.
func addressAttempts(port intstr.IntOrString) []attempt {
	var attempts []attempt
	for _, host := range []string{
		"2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "127.0.0.01", "127.0.0.1.", "::ffff:127.0.0.1", "::ffff:7f00:1",
		"0:0:0:0:0:0:0:1", "[::1]", "::1%1", "fe80::1%lo", "user@127.0.0.1", "user:password@127.0.0.1", "127.0.0.1:80", "127.0.0.1#", "127.0.0.1/x", "127.0.0.1?x",
		"LOCALHOST", "127。0。0。1", "①②⑦.⓪.⓪.①", "127.0.0.1\r\nHost: a", " 127.0.0.1", "127.0.0.1\x00", "::127.0.0.1", "",
	} {
		attempts = append(attempts, attempt{name: fmt.Sprintf("host %q", host), host: host, port: port, invalid: "host"})
	}
	for host, fails := range map[string]string{
		"127.0.0.1": "loopback", "127.0.0.2": "loopback", "::1": "loopback", "localhost": "has an address that is not allowed",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"169.254.169.254": "cloud metadata", "169.254.170.2": "cloud metadata", "100.100.100.200": "cloud metadata", "168.63.129.16": "cloud metadata", "fd00:ec2::254": "cloud metadata",
		"metadata.google.internal": "cloud metadata", "metadata": "cloud metadata",
		"169.254.1.1": "link-local", "fe80::1": "link-local",
		"64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "cloud metadata", "64:ff9b:1::7f00:1": "loopback", "2002:7f00:1::": "loopback", "::7f00:1": "loopback", "::ffff:0:7f00:1": "loopback", "2001::80ff:fffe": "loopback",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "255.255.255.255": "broadcast", "240.0.0.1": "reserved",
		"10.0.0.1": "not allowed by --downscale-pod-picker-allowed-cidrs", "192.0.2.1": "not allowed by", "2001:db8::1": "not allowed by",
		"192.0.2.77": "one of the API server", "kubernetes.default.svc": "is the API server", "kubernetes.default.svc.cluster.local": "is the API server",
	} {
		attempts = append(attempts, attempt{name: "host " + host, host: host, port: port, fails: fails})
	}
	return attempts
}

// requestAttempts try to change the request, or to smuggle another one into it.
func requestAttempts(port intstr.IntOrString) []attempt {
	const allowed = "192.0.2.1"
	var attempts []attempt
	for _, path := range []string{"http://127.0.0.1/", "//127.0.0.1/", "/\r\nX: a", "/ HTTP/1.1\r\n", "/a#b", "@127.0.0.1/", "/\x00"} {
		attempts = append(attempts, attempt{name: fmt.Sprintf("path %q", path), host: allowed, port: port, path: path, invalid: "path"})
	}
	for _, port := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(-1), intstr.FromInt32(65536 + 10250), intstr.FromString("http")} {
		attempts = append(attempts, attempt{name: "port " + port.String(), host: allowed, port: port, invalid: "port"})
	}
	for _, header := range []v1.HTTPDownscalePodPickerHeader{
		{Name: "Host", Value: "127.0.0.1"}, {Name: "host", Value: "a"}, {Name: "Transfer-Encoding", Value: "chunked"}, {Name: "Content-Length", Value: "0"}, {Name: "Connection", Value: "close"},
		{Name: "X:", Value: "a"}, {Name: "X\r\nY", Value: "a"}, {Name: "X", Value: "a\r\n\r\nGET / HTTP/1.1"}, {Name: "Kubernetes-Namespace", Value: "kube-system"},
	} {
		attempts = append(attempts, attempt{name: fmt.Sprintf("header %q: %q", header.Name, header.Value), host: allowed, port: port, header: header, invalid: "httpHeaders[0]."})
	}
	return attempts
}

// serviceAttempts lead from Services of the tenant, and to those of others.
func (c *cluster) serviceAttempts(otherNamespace string, victimPort int) []attempt {
	c.T.Helper()
	port := intstr.FromInt32(80)
	host := func(service string) string { return service + "." + c.Namespace + ".svc" }
	c.createService(otherNamespace, "private", v1.ServiceSpec{})
	c.createService(c.Namespace, "external", v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: "localhost"})
	c.createService(c.Namespace, "empty", v1.ServiceSpec{})
	pod := c.createPod("pod", "10.1.2.3", false)
	network := c.createPod("network", "10.1.2.4", true)
	loopback := c.createPod("loopback", "127.0.0.1", false)
	ended := c.createPod("ended", "10.1.2.5", false)
	c.endPod(ended)
	var attempts []attempt
	for _, target := range []struct {
		name, address string
		port          int
		pod           string
		fails         string
	}{
		{"slice", "127.0.0.1", victimPort, "", "loopback"},
		{"slice6", "::1", victimPort, "", "loopback"},
		{"metadata", "169.254.169.254", 80, "", "cloud metadata"},
		{"outside", "10.9.9.9", 80, "", "not allowed by"},
		{"forged", "127.0.0.1", victimPort, pod, "loopback"},
		{"forged-outside", "10.9.9.9", 80, pod, "not allowed by"},
		{"nobody", "10.1.2.3", 80, "nobody", "not allowed by"},
		{"network", "10.1.2.4", 80, network, "not allowed by"},
		{"loopback", "127.0.0.1", victimPort, loopback, "loopback"},
		{"ended", "10.1.2.5", 80, ended, "not allowed by"},
		{"etcd", "10.1.2.3", 2379, pod, "port 2379 is one of the control plane"},
		{"api", "10.1.2.3", 6443, pod, "port 6443 is one of the control plane"},
		{"kubelet", "10.1.2.3", 10250, pod, "port 10250 is one of the control plane"},
		{"manager", "10.1.2.3", 10257, pod, "port 10257 is one of the control plane"},
	} {
		c.createService(c.Namespace, target.name, v1.ServiceSpec{})
		if stored := c.createSlice(target.name, target.address, int32(target.port), target.pod); !stored {
			target.fails = "has no ready endpoint"
		}
		attempts = append(attempts, attempt{name: "Service " + target.name, host: host(target.name), port: port, fails: target.fails})
	}
	return append(attempts,
		attempt{name: "a Service of another namespace", host: "private." + otherNamespace + ".svc", port: port, fails: "does not allow this one"},
		attempt{name: "no Service of another namespace", host: "nothing." + otherNamespace + ".svc", port: port, fails: "does not allow this one"},
		attempt{name: "an ExternalName", host: host("external"), port: port, fails: "of type ExternalName"},
		attempt{name: "a Service without endpoints", host: host("empty"), port: port, fails: "has no ready endpoint"},
		attempt{name: "a port that it does not have", host: host("empty"), port: intstr.FromInt32(10250), fails: "has no TCP port 10250"},
		attempt{name: "no Service", host: host("nothing"), port: port, fails: "not found"},
	)
}

func (c *cluster) createService(namespace, name string, spec v1.ServiceSpec) {
	c.T.Helper()
	spec.Ports = []v1.ServicePort{{Name: "http", Port: 80}}
	if _, err := c.Client.CoreV1().Services(namespace).Create(c.T.Context(), &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating Service %s: %v", name, err)
	}
}

// createSlice writes the endpoint of a Service that has no selector, as a tenant can. The API server
// itself stores no loopback and link-local addresses.
func (c *cluster) createSlice(service, address string, port int32, pod string) (stored bool) {
	c.T.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: &port}},
	}
	if strings.Contains(address, ":") {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	if pod != "" {
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: c.Namespace, Name: pod}
	}
	_, err := c.Client.DiscoveryV1().EndpointSlices(c.Namespace).Create(c.T.Context(), slice, metav1.CreateOptions{})
	if err != nil && !apierrors.IsInvalid(err) {
		c.T.Fatalf("creating EndpointSlice %s: %v", service, err)
	}
	return err == nil
}

// createPod creates a pod with an address, and returns its name.
func (c *cluster) createPod(name, address string, hostNetwork bool) string {
	c.T.Helper()
	pods := c.Client.CoreV1().Pods(c.Namespace)
	if _, err := pods.Create(c.T.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{
		HostNetwork: hostNetwork, NodeName: "node", Containers: []v1.Container{{Name: "main", Image: "image"}},
	}}, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating pod %s: %v", name, err)
	}
	c.changeStatus(name, func(status *v1.PodStatus) {
		status.Phase, status.PodIP, status.PodIPs = v1.PodRunning, address, []v1.PodIP{{IP: address}}
	})
	return name
}

// endPod ends a pod, which keeps its address in its status.
func (c *cluster) endPod(name string) {
	c.T.Helper()
	c.changeStatus(name, func(status *v1.PodStatus) { status.Phase = v1.PodSucceeded })
}

func (c *cluster) changeStatus(name string, change func(*v1.PodStatus)) {
	c.T.Helper()
	pods := c.Client.CoreV1().Pods(c.Namespace)
	c.Eventually("the status of pod "+name, func(ctx context.Context) (bool, string) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			change(&pod.Status)
			_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// startHostilePicker serves an allowed picker, which answers with what should lead elsewhere or break
// something. It returns what the event says, by path.
func startHostilePicker(t *testing.T, elsewhere string) (answers map[string]string, port int) {
	t.Helper()
	answers = map[string]string{
		"gzip": "Content-Encoding", "large-header": "header", "large-body": "larger than", "slow-header": "no answer within 1s", "slow-body": "no answer within 1s", "no-json": "as JSON",
		"switch": "status 101", "html": "as JSON", "stranger": "not one of the candidate_pods",
	}
	for _, status := range []int{201, 204, 300, 301, 302, 303, 305, 307, 308, 401, 407, 500} {
		answers[strconv.Itoa(status)] = fmt.Sprintf("status %d", status)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server does not notice that the client has gone.
		_, _ = io.Copy(io.Discard, r.Body)
		what := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Location", elsewhere)
		w.Header().Set("Refresh", "0; url="+elsewhere)
		if status, err := strconv.Atoi(what); err == nil {
			w.WriteHeader(status)
			return
		}
		switch what {
		case "gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{0x1f, 0x8b})
		case "large-header":
			w.Header().Set("X-Large", strings.Repeat("a", 1<<20))
		case "large-body":
			_, _ = w.Write([]byte(`{"chosen_pods": ["` + strings.Repeat("a", 2<<20)))
		case "slow-header":
			<-r.Context().Done()
		case "slow-body":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		case "switch":
			w.Header().Set("Upgrade", "h2c")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "html":
			_, _ = fmt.Fprintf(w, `<meta http-equiv="refresh" content="0; url=%s">`, elsewhere)
		case "stranger":
			_, _ = w.Write([]byte(`{"chosen_pods": ["stranger"]}`))
		default:
			_, _ = w.Write([]byte("nonsense"))
		}
	}))
	t.Cleanup(server.Close)
	return answers, server.Listener.Addr().(*net.TCPAddr).Port
}

func (a attempt) replicaSet(name string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	picker := &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: a.host, Port: a.port, Path: a.path}, MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](1)}
	if a.header.Name != "" {
		picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{a.header}
	}
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels}, DownscalePodPicker: picker,
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}},
	}}
}

// startReplicaSets starts the controller of ReplicaSets alone, which may call these addresses. It returns
// those that the controller has dialed.
func (c *cluster) startReplicaSets(addresses *podpicker.Addresses) (dialed func() []string) {
	c.T.Helper()
	var lock sync.Mutex
	all := sets.New[string]()
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(c.T.Context(), &httptrace.ClientTrace{ConnectStart: func(_, address string) {
		lock.Lock()
		defer lock.Unlock()
		all.Insert(address)
	}}))
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientOf(managerUser), 0, informers.WithNamespace(c.Namespace))
	replicaSets, client := factory.Apps().V1().ReplicaSets(), c.ClientOf(replicaSetUser)
	rsc := replicaset.NewReplicaSetController(ctx, replicaSets, factory.Core().V1().Pods(), client, replicaset.BurstReplicas)
	if err := rsc.AskPickers(client, replicaSets, addresses, 20); err != nil {
		c.T.Fatal(err)
	}
	c.Run(ctx, cancel, factory, func() { rsc.Run(ctx, 5) })
	return func() []string {
		lock.Lock()
		defer lock.Unlock()
		return sets.List(all)
	}
}

func (c *cluster) awaitReplicas(name string, count int32) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%d ready pods of %s", count, name), func(ctx context.Context) (bool, string) {
		rs, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return rs.Status.ObservedGeneration == rs.Generation && rs.Status.ReadyReplicas == count && rs.Status.Replicas == count, fmt.Sprintf("%+v", rs.Status)
	})
}

// awaitFailures waits for the events of all attempts, and returns their messages.
func (c *cluster) awaitFailures(attempts map[string]attempt) map[string]string {
	c.T.Helper()
	messages := map[string]string{}
	c.Eventually("the events of all attempts", func(ctx context.Context) (bool, string) {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=PodPickerFailed"})
		if err != nil {
			return false, err.Error()
		}
		for _, event := range events.Items {
			messages[event.InvolvedObject.Name] = event.Message
		}
		var missing []string
		for name, a := range attempts {
			if messages[name] == "" {
				missing = append(missing, a.name)
			}
		}
		return len(missing) == 0, fmt.Sprintf("missing: %q", missing)
	})
	return messages
}
