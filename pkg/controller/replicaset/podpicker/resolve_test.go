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
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{
		"10.0.0.0/8":               {Prefix: netip.MustParsePrefix("10.0.0.0/8")},
		"127.0.0.1/32:30000-30010": {netip.MustParsePrefix("127.0.0.1/32"), 30000, 30010},
		"fd00::/64:8080":           {netip.MustParsePrefix("fd00::/64"), 8080, 8080},
	} {
		if got, err := ParseRange(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.1":          "is no CIDR",
		"10.0.0.0/33":       "is no CIDR",
		"10.0.0.1/8":        "write 10.0.0.0/8",
		"::ffff:a00:0/104":  "in the form of IPv4",
		"10.0.0.0/8:":       "must be 1 to 65535",
		"10.0.0.0/8:0":      "must be 1 to 65535",
		"10.0.0.0/8:65536":  "must be 1 to 65535",
		"10.0.0.0/8:20-10":  "end before they begin",
		"10.0.0.0/8:10-x":   "must be 1 to 65535",
		"example.com/24:80": "is no CIDR",
	} {
		if got, err := ParseRange(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, %v, want an error with %q", text, got, err, want)
		}
	}
	if _, err := ParseRanges([]string{"10.0.0.0/8", "x", "y"}); err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("%v does not name both errors", err)
	}
}

func mustRanges(t *testing.T, texts ...string) []Range {
	t.Helper()
	ranges, err := ParseRanges(texts)
	if err != nil {
		t.Fatal(err)
	}
	return ranges
}

// What an administrator who allows very much allows, and what not.
func TestAddressesCheck(t *testing.T) {
	api := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("10.96.0.1")}
	wide := &Addresses{Allowed: mustRanges(t, "0.0.0.0/0", "::/0"), Denied: mustRanges(t, "10.9.0.0/16", "10.8.0.0/16:8080"), APIServers: func() []netip.Addr { return api }}
	exact := &Addresses{Allowed: mustRanges(t, "127.0.0.1/32:30000-30010", "169.254.0.0/16", "10.1.2.3/32", "10.2.0.0/16:10250", "::1/128"), APIServers: func() []netip.Addr { return api }}
	// Ranges that an administrator should not list, or that say less than it seems.
	odd := &Addresses{Allowed: mustRanges(t, "169.254.169.254/32", "168.63.129.16/32", "fd20:ce::254/128", "0.0.0.0/32", "::/128", "224.0.0.1/32", "ff02::1/128", "240.0.0.1/32",
		"169.254.0.0/15", "fe80::/9", "10.2.0.0/16:10000-11000", "10.3.0.0/16", "10.5.0.0/16:2379", "64:ff9b::/96")}
	for _, test := range []struct {
		addresses *Addresses
		target    string
		isPod     bool
		want      string // Part of the error, empty if it may be called.
	}{
		{wide, "10.0.0.1:80", false, ""},
		{wide, "93.184.216.34:443", false, ""},
		{wide, "[2606:4700::1]:443", false, ""},
		{wide, "10.9.1.1:80", true, "denied"},
		{wide, "10.8.1.1:8080", false, "denied"},
		{wide, "10.8.1.1:8081", false, ""},
		{wide, "127.0.0.1:80", false, "loopback"},
		{wide, "127.1.2.3:80", true, "loopback"},
		{wide, "[::1]:80", false, "loopback"},
		{wide, "169.254.1.1:80", false, "link-local"},
		{wide, "[fe80::1]:80", false, "link-local"},
		{wide, "[fe80::1%eth0]:80", false, "zone"},
		{wide, "10.1.2.3:8080", false, "API server"},
		{wide, "10.96.0.1:443", true, "API server"},
		{wide, "169.254.169.254:80", false, "metadata"},
		{wide, "169.254.170.2:80", false, "metadata"},
		{wide, "100.100.100.200:80", false, "metadata"},
		{wide, "168.63.129.16:80", false, "metadata"},
		{wide, "192.0.0.192:80", false, "metadata"},
		{wide, "169.254.170.23:80", false, "metadata"},
		{wide, "[fd20:ce::254]:80", false, "metadata"},
		{wide, "[fd00:ec2::254]:80", false, "metadata"},
		{wide, "0.0.0.0:80", false, "unspecified"},
		{wide, "0.1.2.3:80", false, "unspecified"},
		{wide, "[::]:80", false, "unspecified"},
		{wide, "224.0.0.1:80", false, "multicast"},
		{wide, "[ff02::1]:80", false, "multicast"},
		{wide, "255.255.255.255:80", false, "broadcast"},
		{wide, "240.0.0.1:80", false, "reserved"},
		{wide, "[::ffff:127.0.0.1]:80", false, "loopback"},
		{wide, "[::ffff:169.254.169.254]:80", false, "metadata"},
		{wide, "[::ffff:0:127.0.0.1]:80", false, "loopback"},
		{wide, "[::127.0.0.1]:80", false, "loopback"},
		{wide, "[64:ff9b::7f00:1]:80", false, "loopback"},
		{wide, "[64:ff9b::a9fe:a9fe]:80", false, "metadata"},
		{wide, "[64:ff9b:1::a9fe:a9fe]:80", false, "metadata"},
		{wide, "[64:ff9b:1::808:808]:80", false, ""},
		{wide, "[64:ff9b::a01:203]:80", false, "API server"},
		{wide, "[2002:7f00:1::]:80", false, "loopback"},
		{wide, "[2002:a9fe:a9fe::1]:80", false, "metadata"},
		{wide, "[2001::5601:5601]:80", false, "metadata"}, // Teredo: 169.254.169.254, inverted.
		{wide, "[64:ff9b::808:808]:80", false, ""},
		{wide, "10.0.0.1:2379", false, "port 2379"},
		{wide, "10.0.0.1:2380", true, "port 2380"},
		{wide, "10.0.0.1:10250", false, "port 10250"},
		{wide, "10.0.0.1:10255", false, "port 10255"},
		{wide, "10.0.0.1:6443", false, "port 6443"},
		{wide, "10.0.0.1:10258", false, "port 10258"},
		{wide, "10.0.0.1:10260", false, "port 10260"},
		{wide, "10.0.0.1:0", false, "port 0"},
		{exact, "127.0.0.1:30000", false, ""},
		{exact, "127.0.0.1:30010", false, ""},
		{exact, "127.0.0.1:29999", false, "loopback"},
		{exact, "127.0.0.1:30011", false, "loopback"},
		{exact, "127.0.0.2:30000", false, "loopback"},
		{exact, "[::ffff:127.0.0.1]:30000", false, ""},
		{exact, "[::1]:80", false, ""},
		{exact, "[::1]:2379", false, "port 2379"},
		{exact, "169.254.1.1:80", false, ""},
		{exact, "169.254.169.254:80", false, "metadata"},
		{exact, "10.1.2.3:8080", false, ""},
		{exact, "10.1.2.3:6443", false, "port 6443"},
		{exact, "10.2.0.1:10250", false, ""},
		{exact, "10.2.0.1:80", false, "not allowed"},
		{exact, "10.3.0.1:80", false, "not allowed"},
		{exact, "10.3.0.1:80", true, ""},
		{exact, "10.3.0.1:10250", true, "port 10250"},
		{&Addresses{Allowed: wide.Allowed, APIServers: func() []netip.Addr { return nil }}, "10.96.0.1:443", false, "not known yet"},
		{&Addresses{}, "10.0.0.1:80", false, "not allowed"},
		{&Addresses{}, "10.0.0.1:80", true, ""},
		{&Addresses{}, "127.0.0.1:80", true, "loopback"},
		{&Addresses{}, "[::ffff:10.0.0.1]:80", true, ""},
		{&Addresses{}, "[64:ff9b::a00:1]:80", true, "not allowed"}, // The pod is not at 10.0.0.1.
		{odd, "169.254.169.254:80", false, "metadata"},
		{odd, "168.63.129.16:80", false, "metadata"},
		{odd, "[fd20:ce::254]:80", false, "metadata"},
		{odd, "0.0.0.0:80", false, "unspecified"},
		{odd, "[::]:80", false, "unspecified"},
		{odd, "224.0.0.1:80", false, "multicast"},
		{odd, "[ff02::1]:80", false, "multicast"},
		{odd, "240.0.0.1:80", false, "reserved"},
		{odd, "169.254.1.1:80", false, "link-local"},
		{odd, "[fe80::1]:80", false, "link-local"},
		{odd, "10.2.0.1:10249", false, "port 10249"},
		{odd, "10.3.0.1:2379", false, "port 2379"}, // Another range has this port.
		{odd, "10.5.0.1:2379", false, ""},
		{odd, "[64:ff9b::a05:1]:80", false, "not allowed"},
	} {
		err := test.addresses.check(netip.MustParseAddrPort(test.target), test.isPod)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s, pod %t: %v, want %q", test.target, test.isPod, err, test.want)
		}
	}
	for _, port := range []uint16{2379, 2380, 2381, 4001, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10259} {
		if err := wide.check(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port), true); err == nil || !strings.Contains(err.Error(), "control plane") {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if err := wide.check(netip.AddrPort{}, false); err == nil {
		t.Error("no address may be called")
	}
}

func service(name, namespace string, change func(*v1.Service)) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "dns", Port: 53, Protocol: v1.ProtocolUDP},
	}}}
	if change != nil {
		change(s)
	}
	return s
}

// endpointsOf is the EndpointSlice of a Service with one address on port 8080.
func endpointsOf(name, namespace, address, pod string, ready bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + strings.ReplaceAll(address, ":", "-"), Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(v1.ProtocolTCP)}},
	}
	if pod != "" {
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Name: pod}
	}
	return slice
}

func changed[T any](object *T, change func(*T)) *T {
	change(object)
	return object
}

func podAt(name, namespace, address string, hostNetwork bool) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: v1.PodSpec{HostNetwork: hostNetwork}, Status: v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: address}}}}
}

func TestResolve(t *testing.T) {
	objects := []runtime.Object{
		service("picker", "team", nil), endpointsOf("picker", "team", "10.4.0.1", "picker-1", true), endpointsOf("picker", "team", "10.4.0.2", "picker-2", false),
		podAt("picker-1", "team", "10.4.0.1", false), podAt("picker-2", "team", "10.4.0.2", false),
		service("unready", "team", nil), endpointsOf("unready", "team", "10.4.0.2", "picker-2", false),
		service("forged", "team", nil), endpointsOf("forged", "team", "10.5.0.1", "picker-1", true),
		service("manual", "team", nil), endpointsOf("manual", "team", "10.5.0.1", "", true),
		service("missing", "team", nil), endpointsOf("missing", "team", "10.5.0.1", "gone", true),
		service("host", "team", nil), endpointsOf("host", "team", "10.0.0.7", "host-1", true), podAt("host-1", "team", "10.0.0.7", true),
		service("loop", "team", nil), endpointsOf("loop", "team", "127.0.0.1", "loop-1", true), podAt("loop-1", "team", "127.0.0.1", false),
		service("external", "team", func(s *v1.Service) {
			s.Spec.Type, s.Spec.ExternalName = v1.ServiceTypeExternalName, "metadata.google.internal"
		}),
		service("listed", "team", nil), endpointsOf("listed", "team", "10.6.0.1", "", true),
		service("closed", "other", nil), endpointsOf("closed", "other", "10.4.1.1", "o-1", true), podAt("o-1", "other", "10.4.1.1", false),
		service("open", "other", func(s *v1.Service) {
			s.Annotations = map[string]string{AllowedNamespacesAnnotation: "first, team"}
		}), endpointsOf("open", "other", "10.4.1.1", "o-1", true),
		service("kubernetes", "default", nil), service("picker", "default", nil), service("kubernetes", "team", nil),
		service("quiet", "team", nil), changed(endpointsOf("quiet", "team", "10.4.0.1", "picker-1", true), func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = nil }),
		service("node", "team", nil), changed(endpointsOf("node", "team", "10.4.0.1", "picker-1", true), func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef.Kind = "Node" }),
		service("names", "team", nil), changed(endpointsOf("names", "team", "10.4.0.1", "picker-1", true), func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = append([]discoveryv1.Endpoint{{Addresses: []string{"a.example.com"}}, {}}, s.Endpoints...)
		}),
		service("udp", "team", nil), changed(endpointsOf("udp", "team", "10.4.0.1", "picker-1", true), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = ptr.To(v1.ProtocolUDP) }),
		service("plain", "team", func(s *v1.Service) { s.Spec.Ports = []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}} }),
		changed(endpointsOf("plain", "team", "10.4.0.1", "picker-1", true), func(s *discoveryv1.EndpointSlice) {
			s.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](9)}, {}, {Port: ptr.To[int32](8080)}}
		}),
		service("mapped", "team", nil), endpointsOf("mapped", "team", "::ffff:10.4.0.1", "picker-1", true),
		service("broken", "team", nil), endpointsOf("broken", "team", "10.6.0.1", "broken", true),
	}
	names := map[string][]netip.Addr{
		"good.example.com":   {netip.MustParseAddr("10.6.0.1")},
		"bad.example.com":    {netip.MustParseAddr("10.7.0.1")},
		"mixed.example.com":  {netip.MustParseAddr("10.6.0.1"), netip.MustParseAddr("127.0.0.1")},
		"localhost":          {netip.MustParseAddr("127.0.0.1")},
		"empty.example.com":  {},
		"mapped.example.com": {netip.MustParseAddr("::ffff:169.254.169.254")},
	}
	r := &resolver{
		client:    fake.NewClientset(objects...),
		addresses: &Addresses{Allowed: mustRanges(t, "10.6.0.0/24")},
		lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "broken.example.com" {
				return nil, errors.New("no such host")
			}
			return names[host], nil
		},
	}
	r.client.(*fake.Clientset).PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.(clienttesting.GetAction).GetName() == "broken", nil, errors.New("etcd is unavailable")
	})
	number, name := intstr.FromInt32(80), intstr.FromString("http")
	for _, test := range []struct {
		host string
		port intstr.IntOrString
		want string // The address, or part of the error.
	}{
		{"picker.team.svc", number, "10.4.0.1:8080"},
		{"picker.team.svc.cluster.local", name, "10.4.0.1:8080"},
		{"picker.team.svc", intstr.FromInt32(8080), "has no TCP port 8080"},
		{"picker.team.svc", intstr.FromString("dns"), "has no TCP port dns"},
		{"unready.team.svc", number, "no ready endpoint"},
		{"forged.team.svc", number, "not allowed"},
		{"manual.team.svc", number, "not allowed"},
		{"missing.team.svc", number, "not allowed"},
		{"host.team.svc", number, "not allowed"},
		{"loop.team.svc", number, "loopback"},
		{"external.team.svc", number, "ExternalName"},
		{"listed.team.svc", number, "10.6.0.1:8080"},
		{"gone.team.svc", number, "not found"},
		{"closed.other.svc", number, "does not allow this one"},
		{"gone.other.svc", number, "does not allow this one"},
		{"open.other.svc", number, "10.4.1.1:8080"},
		{"kubernetes.default.svc", intstr.FromInt32(443), "is the API server"},
		{"kubernetes.default.svc.cluster.local", intstr.FromInt32(443), "is the API server"},
		{"good.example.com", number, "10.6.0.1:80"},
		{"good.example.com", name, "is a name"},
		{"bad.example.com", number, "has an address that is not allowed"},
		{"mixed.example.com", number, "has an address that is not allowed"},
		{"mapped.example.com", number, "has an address that is not allowed"},
		{"localhost", number, "has an address that is not allowed"},
		{"empty.example.com", number, "has no address"},
		{"10.6.0.1", number, "10.6.0.1:80"},
		{"10.4.0.1", number, "not allowed"}, // A pod, but whose?
		{"2130706433", number, "neither a name nor an address"},
		{"0x7f000001", number, "neither a name nor an address"},
		{"0177.0.0.1", number, "neither a name nor an address"},
		{"127.1", number, "neither a name nor an address"},
		{"0x7f.0.0.0x1", number, "neither a name nor an address"},
		{"metadata.google.internal", number, "metadata"},
		{"metadata.google.internal.", number, "metadata"},
		{"fe80::1%eth0", number, "zone"},
		{"METADATA.google.internal", number, "metadata"},
		{"broken.example.com", number, "no such host"},
		{"picker.default.svc", number, "does not allow this one"},
		{"kubernetes.team.svc", number, "no ready endpoint"},
		{"picker.team.svc.example.com", number, "has no address"},
		{"quiet.team.svc", number, "10.4.0.1:8080"},
		{"node.team.svc", number, "not allowed"},
		{"names.team.svc", number, "10.4.0.1:8080"},
		{"udp.team.svc", number, "no ready endpoint"},
		{"plain.team.svc", number, "10.4.0.1:8080"},
		{"mapped.team.svc", number, "[::ffff:10.4.0.1]:8080"},
		{"broken.team.svc", number, "reading pod broken: etcd is unavailable"},
	} {
		got, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: test.host, Port: test.port}, nil)
		if err == nil && got.AddrPort.String() != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s port %s: %v, %v, want %s", test.host, test.port.String(), got, err, test.want)
		}
	}
}

// Names are resolved only where an address could be called, and errors do not name the DNS server.
func TestNames(t *testing.T) {
	lookups := 0
	dnsError := &net.DNSError{Err: "no such host", Name: "picker", Server: "192.0.2.53:53", IsNotFound: true}
	r := &resolver{client: fake.NewClientset(), addresses: &Addresses{}, lookup: func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		return nil, dnsError
	}}
	picker := &v1.HTTPDownscalePodPicker{Host: "picker", Port: intstr.FromInt32(80)}
	if _, err := r.resolve(t.Context(), "team", picker, nil); err == nil || !strings.Contains(err.Error(), "is written NAME.NAMESPACE.svc") || lookups != 0 {
		t.Errorf("without an allowed address: %v after %d lookups", err, lookups)
	}
	r.addresses.Allowed = mustRanges(t, "10.6.0.0/24")
	for _, want := range []string{"no such host", "does not answer"} {
		_, err := r.resolve(t.Context(), "team", picker, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "192.0.2.53") {
			t.Errorf("%v, want %q without the server", err, want)
		}
		dnsError = &net.DNSError{Err: "dial udp 192.0.2.53:53: connect: network is unreachable", Name: "picker", Server: "192.0.2.53:53"}
	}
}

// A further attempt may reach another pod.
func TestResolvesToAnyPod(t *testing.T) {
	r := &resolver{addresses: &Addresses{}, client: fake.NewClientset(
		service("picker", "team", nil), endpointsOf("picker", "team", "10.4.0.1", "a", true), endpointsOf("picker", "team", "10.4.0.2", "b", true),
		podAt("a", "team", "10.4.0.1", false), podAt("b", "team", "10.4.0.2", false),
	)}
	found := map[string]bool{}
	for range 100 {
		got, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: "picker.team.svc", Port: intstr.FromInt32(80)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found[got.AddrPort.String()] = true
	}
	if len(found) != 2 {
		t.Errorf("only %v of two pods", found)
	}
}

// Another attempt goes to another pod, until all were tried: one of them may hang.
func TestAnotherAttemptElsewhere(t *testing.T) {
	const pods = 3
	objects := []runtime.Object{service("picker", "team", nil)}
	for i := range pods {
		name, address := fmt.Sprint("pod-", i), fmt.Sprint("10.4.0.", i+1)
		objects = append(objects, endpointsOf("picker", "team", address, name, true), podAt(name, "team", address, false))
	}
	r := &resolver{addresses: &Addresses{}, client: fake.NewClientset(objects...)}
	named := &resolver{addresses: &Addresses{Allowed: mustRanges(t, "10.4.0.0/24")}, lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.4.0.1"), netip.MustParseAddr("10.4.0.2"), netip.MustParseAddr("10.4.0.3")}, nil
	}}
	for host, r := range map[string]*resolver{"picker.team.svc": r, "picker.test": named} {
		for range 20 {
			var tried tries
			for round := range 2 {
				found := map[netip.AddrPort]bool{}
				for range pods {
					got, err := r.resolve(t.Context(), "team", &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt32(80)}, &tried)
					if err != nil {
						t.Fatal(err)
					}
					found[got.AddrPort] = true
				}
				if len(found) != pods {
					t.Fatalf("%s, round %d: %d attempts have reached only %v", host, round, pods, found)
				}
			}
		}
	}
}
