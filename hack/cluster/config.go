/*
Copyright The Kubernetes Authors.

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

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// components are the processes of a cluster, in the order in which they depend
// on each other: where several fail, the first one is the one to look at.
var components = []string{
	"etcd",
	"kube-apiserver",
	"kube-controller-manager",
	"kube-scheduler",
	"kwok-controller",
}

// defaultGates are the gates of the fork: a local cluster is there to try it.
const defaultGates = "DeclarativeNodeMaintenance=true,DeploymentPodSurge=true,EvictionRequestAPI=true,NodeMaintenanceAwareDaemonSet=true,StatefulSetEvictionPacing=true"

// options is what the caller of up can choose.
type options struct {
	nodes         int
	gates         string
	runtimeConfig string
	args          argList
	timeout       time.Duration
}

// argList holds further flags of components, as component:flag=value, in the order
// in which they were given. It is a flag.Value that can be repeated.
type argList []string

func (a *argList) String() string { return strings.Join(*a, " ") }

// Set adds one flag of a component.
func (a *argList) Set(arg string) error {
	component, setting, found := strings.Cut(arg, ":")
	if !found || !slices.Contains(components, component) {
		return fmt.Errorf("%q does not begin with a component and a colon: the components are %s", arg, strings.Join(components, ", "))
	}
	if name, _, found := strings.Cut(setting, "="); !found || name == "" || strings.HasPrefix(name, "-") {
		return fmt.Errorf("%q is not of the form component:flag=value, the flag without dashes", arg)
	}
	*a = append(*a, arg)
	return nil
}

// normalized sorts the settings, so that their order does not count as a
// difference when a running cluster is compared with what is asked for.
func (o options) normalized() (options, error) {
	var err error
	if o.gates, err = sortSettings("--gates", o.gates); err != nil {
		return o, err
	}
	o.runtimeConfig, err = sortSettings("--runtime-config", o.runtimeConfig)
	return o, err
}

func sortSettings(flagName, list string) (string, error) {
	var settings []string
	for _, setting := range strings.Split(list, ",") {
		if setting = strings.TrimSpace(setting); setting == "" {
			continue
		}
		name, value, found := strings.Cut(setting, "=")
		if _, err := strconv.ParseBool(value); !found || name == "" || err != nil {
			return "", fmt.Errorf("%s: %q is not of the form name=true or name=false", flagName, setting)
		}
		settings = append(settings, setting)
	}
	slices.Sort(settings)
	return strings.Join(settings, ","), nil
}

// stages are what simulated pods can do beside kwok's default stages.
//
//go:embed stages.yaml
var stages []byte

// ports are the ports of one cluster, all on loopback.
type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Kwok              int `json:"kwok"`
}

// choosePorts asks the kernel for free ports. All listeners stay open until the
// last port is chosen, otherwise the kernel could give the same one twice.
func choosePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.Etcd, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.Kwok} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports{}, fmt.Errorf("find a free port on loopback: %w", err)
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// record says how the running cluster was started; a later up compares it with
// what it is asked for.
type record struct {
	Gates         string  `json:"gates"`
	RuntimeConfig string  `json:"runtimeConfig"`
	Args          argList `json:"args,omitempty"`
	Ports         ports   `json:"ports"`
}

// stagesFile is where kwok finds our stages.
func (c *cluster) stagesFile() string { return filepath.Join(c.dir(), "stages.yaml") }

func (c *cluster) recordFile() string { return filepath.Join(c.dir(), "cluster.json") }

func (c *cluster) readRecord() (record, error) {
	var rec record
	data, err := os.ReadFile(c.recordFile())
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, fmt.Errorf("parse %s: %w", c.recordFile(), err)
	}
	return rec, nil
}

// extraArg is a flag that kwokctl adds to a component, or replaces there.
type extraArg struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Override bool   `json:"override,omitempty"`
}

type componentPatch struct {
	Name      string     `json:"name"`
	ExtraArgs []extraArg `json:"extraArgs"`
}

// kwokctlConfiguration is the part of kwokctl's configuration file that is used
// here. A file reaches settings that kwokctl has no flags for.
type kwokctlConfiguration struct {
	APIVersion        string           `json:"apiVersion"`
	Kind              string           `json:"kind"`
	Options           kwokctlOptions   `json:"options"`
	ComponentsPatches []componentPatch `json:"componentsPatches"`
}

type kwokctlOptions struct {
	Runtime                   string `json:"runtime"`
	BindAddress               string `json:"bindAddress"`
	SecurePort                bool   `json:"securePort"`
	KubeAuthorization         bool   `json:"kubeAuthorization"`
	KubeAdmission             bool   `json:"kubeAdmission"`
	KubeFeatureGates          string `json:"kubeFeatureGates,omitempty"`
	KubeRuntimeConfig         string `json:"kubeRuntimeConfig,omitempty"`
	EtcdPort                  int    `json:"etcdPort"`
	EtcdPeerPort              int    `json:"etcdPeerPort"`
	KubeAPIServerPort         int    `json:"kubeApiserverPort"`
	KubeControllerManagerPort int    `json:"kubeControllerManagerPort"`
	KubeSchedulerPort         int    `json:"kubeSchedulerPort"`
	KwokControllerPort        int    `json:"kwokControllerPort"`

	// The defaults of these are addresses on the network.
	EtcdBinary                  string `json:"etcdBinary"`
	KubeAPIServerBinary         string `json:"kubeApiserverBinary"`
	KubeControllerManagerBinary string `json:"kubeControllerManagerBinary"`
	KubeSchedulerBinary         string `json:"kubeSchedulerBinary"`
	KwokControllerBinary        string `json:"kwokControllerBinary"`
	KubectlBinary               string `json:"kubectlBinary"`
}

// kwokctlConfig returns the configuration of a cluster; binary gives the path of
// a component's program, stagesFile is that of our stages.
func kwokctlConfig(opts options, p ports, binary func(string) string, stagesFile string) kwokctlConfiguration {
	return kwokctlConfiguration{
		APIVersion: "config.kwok.x-k8s.io/v1alpha1",
		Kind:       "KwokctlConfiguration",
		Options: kwokctlOptions{
			Runtime:                   "binary",
			BindAddress:               "127.0.0.1",
			SecurePort:                true,
			KubeAuthorization:         true,
			KubeAdmission:             true,
			KubeFeatureGates:          opts.gates,
			KubeRuntimeConfig:         opts.runtimeConfig,
			EtcdPort:                  p.Etcd,
			EtcdPeerPort:              p.EtcdPeer,
			KubeAPIServerPort:         p.APIServer,
			KubeControllerManagerPort: p.ControllerManager,
			KubeSchedulerPort:         p.Scheduler,
			KwokControllerPort:        p.Kwok,

			EtcdBinary:                  binary("etcd"),
			KubeAPIServerBinary:         binary("kube-apiserver"),
			KubeControllerManagerBinary: binary("kube-controller-manager"),
			KubeSchedulerBinary:         binary("kube-scheduler"),
			KwokControllerBinary:        binary("kwok-controller"),
			KubectlBinary:               binary("kubectl"),
		},
		ComponentsPatches: append(componentPatches(stagesFile), argPatches(opts.args)...),
	}
}

func componentPatches(stagesFile string) []componentPatch {
	return []componentPatch{
		{Name: "etcd", ExtraArgs: []extraArg{
			// The data does not outlive the cluster; syncing it only costs time.
			{Key: "unsafe-no-fsync", Value: "true"},
		}},
		{Name: "kube-apiserver", ExtraArgs: []extraArg{
			// Without these the server looks for an interface with a default
			// route to advertise, and does not start on a machine without one.
			{Key: "advertise-address", Value: "127.0.0.1"},
			{Key: "endpoint-reconciler-type", Value: "none"},
		}},
		{Name: "kube-controller-manager", ExtraArgs: []extraArg{
			// Each controller acts as its own service account, as in real
			// clusters: a missing RBAC rule shows here and not there.
			{Key: "use-service-account-credentials", Value: "true"},
			// There is one instance; after a crash a lease would cost 15 s.
			{Key: "leader-elect", Value: "false"},
			// The default of 20 requests a second makes the start alone, with
			// its service account per controller, take 5 s longer.
			{Key: "kube-api-qps", Value: "200"},
			{Key: "kube-api-burst", Value: "400"},
		}},
		{Name: "kube-scheduler", ExtraArgs: []extraArg{
			{Key: "leader-elect", Value: "false"},
		}},
		{Name: "kwok-controller", ExtraArgs: []extraArg{
			// Nodes of real kubelets can join; kwok must leave them alone.
			{Key: "manage-all-nodes", Value: "false", Override: true},
			{Key: "manage-nodes-with-annotation-selector", Value: simulatedAnnotation + "=" + simulatedValue},
			// Beside the file of kwokctl, which has the default stages.
			{Key: "config", Value: stagesFile},
		}},
	}
}

// argPatches are the patches for what the caller asked for. They come last: of a flag
// that is given twice, a component takes the last value.
func argPatches(args argList) []componentPatch {
	var patches []componentPatch
	for _, arg := range args {
		component, setting, _ := strings.Cut(arg, ":")
		name, value, _ := strings.Cut(setting, "=")
		patches = append(patches, componentPatch{Name: component, ExtraArgs: []extraArg{{Key: name, Value: value}}})
	}
	return patches
}
