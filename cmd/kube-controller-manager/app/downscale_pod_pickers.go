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
	"fmt"
	"net/netip"
	"net/url"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/kubernetes/pkg/features"
)

// pickerAsker is the ReplicaSet controller.
type pickerAsker interface {
	AskPickers(client kubernetes.Interface, rsInformer appsinformers.ReplicaSetInformer, addresses *podpicker.Addresses, concurrent int) error
}

var _ pickerAsker = &replicaset.ReplicaSetController{}

// askPickers makes the ReplicaSet controller ask downscale pod pickers, if their gate is on.
func askPickers(controllerContext ControllerContext, controllerName string, rsc pickerAsker) error {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DownscalePodPicker) {
		return nil
	}
	config, err := controllerContext.NewClientConfig(controllerName)
	if err != nil {
		return err
	}
	// With a separate client, the questions do not delay the creation of pods.
	client, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return err
	}
	options := controllerContext.ComponentConfig.ReplicaSetController
	allowed, err := podpicker.ParseRanges(options.DownscalePodPickerAllowedCIDRs)
	if err != nil {
		return fmt.Errorf("--downscale-pod-picker-allowed-cidrs: %w", err)
	}
	denied, err := podpicker.ParseRanges(options.DownscalePodPickerDeniedCIDRs)
	if err != nil {
		return fmt.Errorf("--downscale-pod-picker-denied-cidrs: %w", err)
	}
	services, slices := controllerContext.InformerFactory.Core().V1().Services(), controllerContext.InformerFactory.Discovery().V1().EndpointSlices()
	servers := apiServers{
		host:     config.Host,
		services: services.Lister(),
		slices:   slices.Lister(),
		synced:   func() bool { return services.Informer().HasSynced() && slices.Informer().HasSynced() },
	}
	addresses := &podpicker.Addresses{Allowed: allowed, Denied: denied, APIServers: servers.addresses}
	return rsc.AskPickers(client, controllerContext.InformerFactory.Apps().V1().ReplicaSets(), addresses, int(options.ConcurrentDownscalePodPickers))
}

// apiServers finds the addresses of the API server: the one that this process uses, and those of the
// Service kubernetes and of what is behind it.
type apiServers struct {
	host     string
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	// synced reports whether the listers are complete. The ReplicaSet controller does not wait for them.
	synced func() bool
}

// addresses returns nil while the addresses are not known.
func (s apiServers) addresses() []netip.Addr {
	const name = "kubernetes"
	if !s.synced() {
		return nil
	}
	var texts []string
	if server, err := url.Parse(s.host); err == nil {
		texts = append(texts, server.Hostname())
	}
	if service, err := s.services.Services(metav1.NamespaceDefault).Get(name); err == nil {
		texts = append(texts, service.Spec.ClusterIPs...)
		if service.Spec.ClusterIP != v1.ClusterIPNone {
			texts = append(texts, service.Spec.ClusterIP)
		}
	}
	ofService := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name})
	if slices, err := s.slices.EndpointSlices(metav1.NamespaceDefault).List(ofService); err == nil {
		for _, slice := range slices {
			for _, endpoint := range slice.Endpoints {
				texts = append(texts, endpoint.Addresses...)
			}
		}
	}
	addresses := []netip.Addr{} // Known, even if there is none.
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address.Unmap())
		}
	}
	return addresses
}
