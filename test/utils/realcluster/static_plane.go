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

package realcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// StaticControlPlane is a control plane of static pods, as kubeadm sets it up: each of the first
// nodes has an API server, a controller manager and a scheduler from images. The sandbox has etcd,
// and a load balancer that connects all clients but these to the API servers that are ready.
type StaticControlPlane struct {
	// Nodes is how many nodes it has.
	Nodes int
	// Archives are tarballs of images, which these nodes import when they start.
	Archives []string
	// Release is what they start with.
	Release StaticRelease
}

// StaticRelease is a release of components that are static pods.
type StaticRelease struct {
	// Repository and Tag name its images: <repository>/<component>:<tag>.
	Repository, Tag string
	// Gates and RuntimeConfig are flags. Empty ones are not given.
	Gates, RuntimeConfig string
}

// StaticComponents are those that are static pods, in the order in which kubeadm replaces them.
var StaticComponents = []string{controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler}

// staticFlagsFile has the flags of the components of a release without gates, by component.
func staticFlagsFile(dir string) string { return filepath.Join(dir, "static-flags.json") }

// AuditLog is where the API server of a node of the control plane records evictions.
func (c *Cluster) AuditLog(node string) string { return auditLog(c.Local.Dir(), node) }

func auditLog(dir, node string) string { return filepath.Join(dir, "audit", node+".log") }

// ReplaceComponent gives the kubelet of a node the manifest of a component of another release. The
// kubelet then ends the component and starts the other.
func (c *Cluster) ReplaceComponent(node, component string, release StaticRelease) error {
	return writeStaticComponent(c.Local.Dir(), node, component, release)
}

// runStaticControlPlane does what the sandbox does for a control plane of static pods: the kubelets
// do the rest.
func runStaticControlPlane(ctx context.Context, plane *controlplane.ControlPlane, r record) error {
	if err := plane.Start(ctx, controlplane.Release{Bin: r.ControlPlane}, controlplane.Etcd); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		port := plane.Ports()[controlplane.Etcd]
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", controlPlaneAddress, port))
		if err != nil {
			return fmt.Errorf("listen for API servers: %w", err)
		}
		return forward(ctx, listener, fmt.Sprintf("127.0.0.1:%d", port))
	})
	group.Go(func() error { return balance(ctx, r) })
	group.Go(func() error { return awaitEnd(ctx, plane) })
	return group.Wait()
}

// writeStaticControlPlane writes the manifests. The nodes do not run yet.
func writeStaticControlPlane(dir string, plane *controlplane.ControlPlane, r record) error {
	flags := map[string][]string{}
	etcd := fmt.Sprintf("127.0.0.1:%d", plane.Ports()[controlplane.Etcd])
	for _, component := range StaticComponents {
		release := controlplane.Release{
			APIServerArgs: append(apiServerArgs(),
				// Before it stops listening, the load balancer sends new connections elsewhere.
				"--shutdown-delay-duration=3s"),
			Args: map[string][]string{
				controlplane.ControllerManager: {"--leader-elect=true"}, controlplane.Scheduler: {"--leader-elect=true"},
			},
		}
		for _, flag := range plane.Args(component, release) {
			flags[component] = append(flags[component], strings.Replace(flag, etcd, strings.Replace(etcd, "127.0.0.1", controlPlaneAddress, 1), 1))
		}
	}
	data, err := json.Marshal(flags)
	if err == nil {
		err = os.WriteFile(staticFlagsFile(dir), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the flags of the control plane: %w", err)
	}
	for index := range r.StaticControlPlane.Nodes {
		for _, component := range StaticComponents {
			if err := writeStaticComponent(dir, nodeName(index), component, r.StaticControlPlane.Release); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeStaticComponent writes a manifest in one step: the kubelet reads it at any time.
func writeStaticComponent(dir, node, component string, release StaticRelease) error {
	pod, err := newStaticComponent(dir, node, component, release)
	if err != nil {
		return err
	}
	data, err := json.Marshal(pod)
	if err == nil {
		err = errors.Join(os.MkdirAll(manifests(dir, node), 0o755), os.MkdirAll(filepath.Dir(auditLog(dir, node)), 0o755))
	}
	// The kubelet leaves files alone whose names begin with a dot.
	part := filepath.Join(manifests(dir, node), "."+component+".json")
	if err == nil {
		err = os.WriteFile(part, data, 0o600)
	}
	if err == nil {
		err = os.Rename(part, filepath.Join(manifests(dir, node), component+".json"))
	}
	if err != nil {
		return fmt.Errorf("write the manifest of the %s of %s: %w", component, node, err)
	}
	return nil
}

// newStaticComponent returns the static pod of a component. What is not a flag is as kubeadm has
// it, but that probes are sent each second instead of each ten.
func newStaticComponent(dir, node, component string, release StaticRelease) (*v1.Pod, error) {
	data, err := os.ReadFile(staticFlagsFile(dir))
	flags := map[string][]string{}
	if err == nil {
		err = json.Unmarshal(data, &flags)
	}
	if err != nil {
		return nil, fmt.Errorf("read the flags of the control plane: %w", err)
	}
	command := append([]string{component}, flags[component]...)
	if release.Gates != "" {
		command = append(command, "--feature-gates="+release.Gates)
	}
	address := nodeAddress(node)
	directories := []string{filepath.Join(dir, "tls")}
	port, path := securePort(command), "/healthz"
	if component == controlplane.APIServer {
		command = append(command, "--advertise-address="+address, "--audit-log-path="+auditLog(dir, node),
			"--audit-policy-file="+filepath.Join(dir, "tls", "audit-policy.yaml"), "--audit-log-mode=blocking")
		if release.RuntimeConfig != "" {
			command = append(command, "--runtime-config="+release.RuntimeConfig)
		}
		directories, path = append(directories, filepath.Join(dir, "audit")), "/livez"
	} else {
		address = "127.0.0.1"
	}
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: component, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"component": component, "tier": "control-plane"}},
		Spec: v1.PodSpec{
			HostNetwork: true, PriorityClassName: "system-node-critical",
			Containers: []v1.Container{{
				Name: component, Image: release.Repository + "/" + component + ":" + release.Tag, ImagePullPolicy: v1.PullNever, Command: command,
				Resources:     v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("25m")}},
				StartupProbe:  newProbe(address, path, port, 240),
				LivenessProbe: newProbe(address, path, port, 80),
			}},
		},
	}
	for i, directory := range directories {
		name := fmt.Sprintf("directory-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: directory, Type: ptr.To(v1.HostPathDirectory)}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: directory})
	}
	return pod, nil
}

func newProbe(address, path string, port, failures int) *v1.Probe {
	return &v1.Probe{
		ProbeHandler:   v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Host: address, Path: path, Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTPS}},
		TimeoutSeconds: 15, PeriodSeconds: 1, FailureThreshold: int32(failures),
	}
}

// securePort returns the port that a component listens on.
func securePort(command []string) int {
	var port int
	for _, flag := range command {
		if value, found := strings.CutPrefix(flag, "--secure-port="); found {
			_, _ = fmt.Sscan(value, &port) // test/utils/controlplane has written it.
		}
	}
	return port
}

// nodeAddress is the address of a node of this name.
func nodeAddress(node string) string {
	return networkOf(slices.Index(nodeNames(MaxNodes), node)).address.String()
}
