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
	"fmt"
	"strings"
)

// The images that the pods use, built by mkimage of hack/modules/images.
const (
	// PauseImage is that of the sandboxes of pods, WorkloadImage that of their containers: the
	// program in the directory workload, and busybox.
	PauseImage    = "localhost/pause:1"
	WorkloadImage = "localhost/workload:1"
)

// Paths in the file system of a node.
const (
	containerdSocket     = "/run/containerd/containerd.sock"
	containerdConfigFile = "/run/node/containerd.toml"
	kubeletConfigFile    = "/run/node/kubelet.yaml"
	proxyConfigFile      = "/run/node/kube-proxy.yaml"
	cniDirectory         = "/run/node/cni"

	// temporaryDirectory ends with the node: a kubelet that is killed leaves files there.
	temporaryDirectory = "/run/node/tmp"

	// manifestsDirectory has the manifests of static pods.
	manifestsDirectory = "/run/node/manifests"
)

// pluginDirectories are where plugins of the container network are: those of Debian, of Fedora, and
// of the plugins' own releases.
var pluginDirectories = []string{"/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"}

// containerdConfig has what differs from the defaults.
var containerdConfig = `version = 3
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "` + PauseImage + `"

[plugins."io.containerd.cri.v1.runtime"]
  # Inside of a container, the priority for the killer of processes may not be raised, and profiles
  # of AppArmor not be loaded.
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["` + strings.Join(pluginDirectories, `", "`) + `"]
    conf_dir = "` + cniDirectory + `"
`

// cniConfig makes a link between the node and each pod.
func (n *node) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {"type": "ptp", "ipMasq": false, "ipam": {
      "type": "host-local", "dataDir": "/run/cni",
      "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, networkOf(n.index).pods)
}

// kubeletConfig gives the kubelet what is left to a node that shares its machine. Only what is in
// the namespaces of the cluster reaches it, so it asks for no credentials.
func (n *node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%[1]s
cgroupDriver: cgroupfs
cgroupRoot: %[2]q
failCgroupV1: false
failSwapOn: false
# Nodes share the machine, so none enforces what all of its pods may use.
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
evictionHard: {memory.available: 50Mi}
imageGCHighThresholdPercent: 100
resolvConf: ""
staticPodPath: %[3]s
fileCheckFrequency: 1s
nodeStatusUpdateFrequency: 5s
volumePluginDir: /var/lib/kubelet/volume-plugins
%[4]s
`, containerdSocket, n.cgroup(), manifestsDirectory, n.Kubelets[n.name()].Config)
}

// proxyConfig leaves the sysctls of connection tracking alone that belong to the machine.
func (n *node) proxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: %[1]q
clusterCIDR: %[2]q
clientConnection: {kubeconfig: %[3]q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.name(), podNetwork, n.kubeconfig(proxyUser))
}
