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

package app

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/kubernetes/pkg/features"
)

// With its gate, the controller has a client of its own for pickers, whose limits are those of evictions.
func TestAskPickers(t *testing.T) {
	const controllerName = "replicaset-controller"
	for name, test := range map[string]struct {
		enabled                bool
		allowed, denied        []string
		wantClients, wantError string
	}{
		"gate off":            {allowed: []string{"nonsense"}},
		"gate on":             {enabled: true, allowed: []string{"192.0.2.0/24"}, wantClients: controllerName + " " + controllerName},
		"a wrong allowed one": {enabled: true, allowed: []string{"192.0.2.1/24"}, wantError: "--downscale-pod-picker-allowed-cidrs: "},
		"a wrong denied one":  {enabled: true, denied: []string{"a"}, wantError: "--downscale-pod-picker-denied-cidrs: "},
	} {
		t.Run(name, func(t *testing.T) {
			if setGates(t); test.enabled {
				setGates(t, features.DownscalePodPicker)
			}
			_, ctx := ktesting.NewTestContext(t)
			controllerContext, builder := withClients(asTheyAre)
			options := &controllerContext.ComponentConfig.ReplicaSetController
			options.ConcurrentDownscalePodPickers, options.DownscalePodPickerAllowedCIDRs, options.DownscalePodPickerDeniedCIDRs = 1, test.allowed, test.denied
			err := askPickers(controllerContext, controllerName, newTestReplicaSetController(ctx, controllerContext))
			if test.wantError != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.wantError) {
					t.Errorf("error %v, want %q", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(builder.names, " "); got != test.wantClients || len(builder.ordinary) > 0 {
				t.Errorf("asked for the clients %q, ordinary ones %q, want %q", got, builder.ordinary, test.wantClients)
			}
		})
	}
}

// recordedAsker is a ReplicaSet controller that keeps what it is asked with.
type recordedAsker struct {
	addresses  *podpicker.Addresses
	concurrent int
}

func (r *recordedAsker) AskPickers(_ kubernetes.Interface, _ appsinformers.ReplicaSetInformer, addresses *podpicker.Addresses, concurrent int) error {
	r.addresses, r.concurrent = addresses, concurrent
	return nil
}

// The controller gets the values of the flags, and the addresses of the API server.
func TestPickerFlags(t *testing.T) {
	setGates(t, features.DownscalePodPicker)
	controllerContext, _ := withClients(asTheyAre)
	options := &controllerContext.ComponentConfig.ReplicaSetController
	options.ConcurrentDownscalePodPickers, options.DownscalePodPickerAllowedCIDRs, options.DownscalePodPickerDeniedCIDRs = 7, []string{"192.0.2.0/24"}, []string{"198.51.100.0/24:80"}
	var got recordedAsker
	if err := askPickers(controllerContext, "replicaset-controller", &got); err != nil {
		t.Fatal(err)
	}
	allowed, denied := podpicker.Range{Prefix: netip.MustParsePrefix("192.0.2.0/24")}, podpicker.Range{Prefix: netip.MustParsePrefix("198.51.100.0/24"), FirstPort: 80, LastPort: 80}
	if got.concurrent != 7 || !slices.Equal(got.addresses.Allowed, []podpicker.Range{allowed}) || !slices.Equal(got.addresses.Denied, []podpicker.Range{denied}) {
		t.Errorf("asks with %d, %+v", got.concurrent, got.addresses)
	}
	controllerContext.InformerFactory.Start(t.Context().Done())
	controllerContext.InformerFactory.WaitForCacheSync(t.Context().Done())
	if servers := got.addresses.APIServers(); !slices.Equal(servers, []netip.Addr{netip.MustParseAddr("127.0.0.1")}) {
		t.Errorf("the API servers are %v", servers)
	}
}

// The addresses of the API server are that of the connection, and those of its Service.
func TestAPIServerAddresses(t *testing.T) {
	address := "192.0.2.3"
	objects := []runtime.Object{
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: v1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1", "fd00::1"}}},
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: v1.ServiceSpec{ClusterIP: "10.0.0.2"}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}}, {Addresses: []string{"::ffff:192.0.2.4", "a name"}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other", Labels: map[string]string{discoveryv1.LabelServiceName: "other"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.5"}}},
		},
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for i, informer := range []interface{ Add(any) error }{
		factory.Core().V1().Services().Informer().GetIndexer(), factory.Core().V1().Services().Informer().GetIndexer(), factory.Discovery().V1().EndpointSlices().Informer().GetIndexer(),
		factory.Discovery().V1().EndpointSlices().Informer().GetIndexer(),
	} {
		if err := informer.Add(objects[i]); err != nil {
			t.Fatal(err)
		}
	}
	for host, first := range map[string]string{"https://192.0.2.9:6443": "192.0.2.9", "https://[fd00::9]:6443": "fd00::9", "https://api.example.com": ""} {
		synced := false
		servers := apiServers{
			host: host, services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister(),
			synced: func() bool { return synced },
		}
		if got := servers.addresses(); got != nil {
			t.Errorf("%s: addresses %q of incomplete caches", host, got)
		}
		synced = true
		var want []string
		if first != "" {
			want = append(want, first)
		}
		want = append(want, "10.0.0.1", "fd00::1", "10.0.0.1", address, "192.0.2.4")
		var got []string
		for _, a := range servers.addresses() {
			got = append(got, netip.Addr.String(a))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: addresses %q, want %q", host, got, want)
		}
	}
}

// Complete caches without addresses are not incomplete ones.
func TestNoAPIServerAddresses(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	servers := apiServers{
		host: "https://api.example.com", services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister(),
		synced: func() bool { return true },
	}
	if got := servers.addresses(); got == nil || len(got) > 0 {
		t.Errorf("%#v, want an empty list", got)
	}
}
