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
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientset "k8s.io/client-go/kubernetes"
)

// AllowedNamespacesAnnotation is on a Service that pickers of ReplicaSets in other namespaces may be
// behind: their names, separated by commas. The owner of the Service writes it.
const AllowedNamespacesAnnotation = "downscale-pod-picker.k8s.io/allowed-namespaces"

// maxEndpointSlices is how many EndpointSlices of a Service are read. They usually have 100 endpoints
// each, but whoever can write them can write thousands of a megabyte.
const maxEndpointSlices = 20

// metadataNames are names of cloud metadata services. Their addresses are refused as well, where they
// are known.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
	"metadata.azure.internal", "metadata.tencentyun.com", "metadata.platformequinix.com",
}

// target is an address that was checked, in the way in which it is dialed.
type target struct {
	netip.AddrPort
	// serverName is what the certificate of the picker must be for.
	serverName string
}

// resolver finds out which address to dial for a picker. Nothing else resolves a name afterwards.
type resolver struct {
	client    clientset.Interface
	addresses *Addresses
	// lookup resolves names that are not those of Services.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

func lookupDNS(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// resolve returns the address to dial for a ReplicaSet of the namespace. If there are several, it is
// one of them at random, but none of those that were tried, as long as there is another one: a picker
// of which one pod is broken has others that are not.
func (r *resolver) resolve(ctx context.Context, namespace string, picker *v1.HTTPDownscalePodPicker, tried *tries) (target, error) {
	host := picker.Host
	if service, serviceNamespace, isService := parseServiceHost(host); isService {
		address, err := r.resolveService(ctx, namespace, serviceNamespace, service, picker.Port, tried)
		return target{address, host}, err
	}
	if picker.Port.Type != intstr.Int {
		return target{}, fmt.Errorf("port %q is a name, which only a host NAME.NAMESPACE.svc can have", picker.Port.StrVal)
	}
	port := uint16(picker.Port.IntVal)
	if address, err := netip.ParseAddr(host); err == nil {
		to := netip.AddrPortFrom(address, port)
		if err := r.addresses.check(to, false); err != nil {
			return target{}, fmt.Errorf("host %q: %w", host, err)
		}
		return target{to, host}, nil
	}
	addresses, err := r.resolveName(ctx, host, port)
	if err != nil {
		return target{}, err
	}
	address := pickOne(tried, addresses, func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, port) })
	return target{netip.AddrPortFrom(address, port), host}, nil
}

// resolveName returns the addresses of a name, all checked. The errors, which become events, do not
// say what the DNS of the control plane knows, and it is not asked in vain.
func (r *resolver) resolveName(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	if err := checkHostName(host); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.addresses.Allowed, func(allowed Range) bool { return allowed.hasPort(port) }) {
		return nil, fmt.Errorf("host %q is no Service, which is written NAME.NAMESPACE.svc, and %s allows no other host with port %d", host, allowedFlag, port)
	}
	addresses, err := r.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolving host %q, as it is not NAME.NAMESPACE.svc: %w", host, withoutServer(err))
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("host %q has no address", host)
	}
	// One refused address refuses them all: a name that has others as well is not to be trusted.
	for _, address := range addresses {
		switch err := r.addresses.check(netip.AddrPortFrom(address, port), false); {
		case errors.Is(err, errNotKnown):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("host %q has an address that is not allowed by %s, or is denied by %s", host, allowedFlag, deniedFlag)
		}
	}
	return addresses, nil
}

// withoutServer removes the address of the DNS server of the control plane from an error.
func withoutServer(err error) error {
	var dnsError *net.DNSError
	switch {
	case !errors.As(err, &dnsError):
		return err
	case dnsError.IsNotFound:
		return errors.New("no such host")
	}
	return errors.New("the DNS of kube-controller-manager does not answer")
}

// tries are the addresses to which attempts at a question were sent. Nil has none, and takes none.
type tries struct{ addresses map[netip.AddrPort]bool }

// pickOne returns one of several at random, and notes that its address is tried. When all were tried, it
// begins again.
func pickOne[T any](tried *tries, all []T, addressOf func(T) netip.AddrPort) T {
	if tried == nil {
		return all[rand.IntN(len(all))]
	}
	others := slices.DeleteFunc(slices.Clone(all), func(one T) bool { return tried.addresses[addressOf(one)] })
	if len(others) == 0 {
		clear(tried.addresses)
		others = all
	}
	one := others[rand.IntN(len(others))]
	if tried.addresses == nil {
		tried.addresses = map[netip.AddrPort]bool{}
	}
	tried.addresses[addressOf(one)] = true
	return one
}

// checkHostName refuses names that a resolver may read as an address, and those of metadata services.
func checkHostName(host string) error {
	lower := strings.ToLower(strings.TrimSuffix(host, "."))
	last := lower[strings.LastIndexByte(lower, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return fmt.Errorf("host %q is neither a name nor an address: write an IPv4 address as four decimal numbers", host)
	}
	if slices.Contains(metadataNames, lower) {
		return fmt.Errorf("host %q is a cloud metadata service", host)
	}
	return nil
}

// parseServiceHost returns the name and the namespace in NAME.NAMESPACE.svc or
// NAME.NAMESPACE.svc.cluster.local.
func parseServiceHost(host string) (name, namespace string, isService bool) {
	labels := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	if len(labels) != 3 || labels[2] != "svc" {
		return "", "", false
	}
	return labels[0], labels[1], true
}

// resolveService returns the address of a ready pod behind a Service. It reads EndpointSlices instead
// of using the address of the Service, because whoever can write them decides where that leads.
func (r *resolver) resolveService(ctx context.Context, from, namespace, name string, port intstr.IntOrString, tried *tries) (netip.AddrPort, error) {
	where := fmt.Sprintf("Service %s in namespace %s", name, namespace)
	if namespace == metav1.NamespaceDefault && name == "kubernetes" {
		return netip.AddrPort{}, fmt.Errorf("%s is the API server", where)
	}
	service, err := r.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && namespace != from && !allowsNamespace(service, from) || apierrors.IsNotFound(err) && namespace != from {
		// The same answer in both cases: which Services exist elsewhere is not for everybody to know.
		return netip.AddrPort{}, fmt.Errorf("%s is in another namespace, and does not allow this one with the annotation %s", where, AllowedNamespacesAnnotation)
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading %s: %w", where, err)
	}
	if service.Spec.Type == v1.ServiceTypeExternalName {
		return netip.AddrPort{}, fmt.Errorf("%s is of type ExternalName: write the host that it names", where)
	}
	portName, err := servicePort(service, port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %w", where, err)
	}
	slices, err := r.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name, Limit: maxEndpointSlices})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading the EndpointSlices of %s: %w", where, err)
	}
	endpoints := readyEndpoints(slices.Items, portName)
	if len(endpoints) == 0 {
		return netip.AddrPort{}, fmt.Errorf("%s has no ready endpoint for this port", where)
	}
	endpoint := pickOne(tried, endpoints, func(e endpoint) netip.AddrPort { return e.address })
	isPod, err := r.isPod(ctx, namespace, endpoint)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", where, err)
	}
	if err := r.addresses.check(endpoint.address, isPod); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", where, err)
	}
	return endpoint.address, nil
}

func allowsNamespace(service *v1.Service, namespace string) bool {
	for allowed := range strings.SplitSeq(service.Annotations[AllowedNamespacesAnnotation], ",") {
		if strings.TrimSpace(allowed) == namespace {
			return true
		}
	}
	return false
}

// servicePort returns the name of a port of the Service, which is that of the port of its endpoints.
func servicePort(service *v1.Service, port intstr.IntOrString) (string, error) {
	for _, p := range service.Spec.Ports {
		if p.Protocol != v1.ProtocolTCP && p.Protocol != "" {
			continue
		}
		if port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.Port == port.IntVal {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("has no TCP port %s", port.String())
}

type endpoint struct {
	address netip.AddrPort
	// pod is the name of the pod that it is said to be.
	pod string
}

func readyEndpoints(slices []discoveryv1.EndpointSlice, portName string) []endpoint {
	var found []endpoint
	for _, slice := range slices {
		port := endpointPort(slice.Ports, portName)
		if port == 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
				continue
			}
			address, err := netip.ParseAddr(e.Addresses[0])
			if err != nil {
				continue // It is a name.
			}
			pod := ""
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				pod = e.TargetRef.Name
			}
			found = append(found, endpoint{netip.AddrPortFrom(address, port), pod})
		}
	}
	return found
}

func endpointPort(ports []discoveryv1.EndpointPort, name string) uint16 {
	for _, p := range ports {
		if p.Port != nil && (p.Name == nil && name == "" || p.Name != nil && *p.Name == name) && (p.Protocol == nil || *p.Protocol == v1.ProtocolTCP) {
			return uint16(*p.Port)
		}
	}
	return 0
}

// isPod reports whether the address of an endpoint is that of the pod which it is said to be. Whoever
// may write EndpointSlices can say so of any address.
func (r *resolver) isPod(ctx context.Context, namespace string, e endpoint) (bool, error) {
	if e.pod == "" {
		return false, nil
	}
	pod, err := r.client.CoreV1().Pods(namespace).Get(ctx, e.pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pod %s: %w", e.pod, err)
	}
	if pod.Spec.HostNetwork {
		return false, nil // The address is that of a node, where others listen as well.
	}
	if pod.Status.Phase != v1.PodRunning {
		return false, nil // A pod that has ended keeps its address in its status. Others get it.
	}
	is := func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err == nil && address.Unmap() == e.address.Addr().Unmap()
	}
	if is(pod.Status.HostIP) || slices.ContainsFunc(pod.Status.HostIPs, func(ip v1.HostIP) bool { return is(ip.IP) }) {
		return false, nil
	}
	return slices.ContainsFunc(pod.Status.PodIPs, func(ip v1.PodIP) bool { return is(ip.IP) }), nil
}

// errNoHTTP is the error of a picker without a protocol. A newer API server may know others.
var errNoHTTP = errors.New("the picker has no http, the only protocol that this version knows")
