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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// portVariable is the port of the API server, also on the host.
	portVariable = "API_SECURE_PORT"

	startModeVariable = "START_MODE"

	// flagsVariable has flags of the kubelet. Those of the user come after those of the sandbox.
	flagsVariable = "KUBELET_FLAGS"
)

// scriptDefaults are values that a user may replace.
var scriptDefaults = []string{
	"FEATURE_GATES=" + localcluster.DefaultSettings.Gates,
	"RUNTIME_CONFIG=" + localcluster.DefaultSettings.RuntimeConfig,
	// The node shares the disk of the machine, and may be one of several.
	"EVICTION_HARD=memory.available<50Mi",
	"LOCAL_STORAGE_CAPACITY_ISOLATION=false",
}

// scriptKubeletFlags are what is left to a node that shares its machine, see kubeletConfig.
const scriptKubeletFlags = "--fail-cgroupv1=false --enforce-node-allocatable= --image-gc-high-threshold=100 --volume-plugin-dir=/var/lib/kubelet/volume-plugins"

// scriptVariables are passed to the script, if they are set. docs/how-to/run-local-up-cluster.md
// says what they mean.
var scriptVariables = []string{
	"FEATURE_GATES", "RUNTIME_CONFIG", "LOG_LEVEL", "LOG_SPEC", "EMULATED_VERSION", "KUBE_VERBOSE",
	flagsVariable, "KUBE_CONTROLLERS", "KUBE_PROXY_MODE", startModeVariable, "HOSTNAME_OVERRIDE", portVariable,

	"ALLOW_PRIVILEGED", "AUTHORIZATION_MODE", "ENABLE_ADMISSION_PLUGINS", "DISABLE_ADMISSION_PLUGINS",
	"KUBELET_AUTHENTICATION_WEBHOOK", "KUBELET_AUTHORIZATION_WEBHOOK", "ENABLE_SINGLE_CA_SIGNER", "SERVICE_ACCOUNT_LOOKUP",
	"STORAGE_BACKEND", "STORAGE_MEDIA_TYPE", "LEADER_ELECT", "ENABLE_TRACING", "API_CORS_ALLOWED_ORIGINS", "EXTERNAL_HOSTNAME",
	"KUBE_CACHE_MUTATION_DETECTOR", "KUBE_PANIC_WATCH_DECODE_ERROR", "WAIT_FOR_URL_API_SERVER", "MAX_TIME_FOR_URL_API_SERVER",

	"EVICTION_HARD", "EVICTION_SOFT", "EVICTION_PRESSURE_TRANSITION_PERIOD", "LOCAL_STORAGE_CAPACITY_ISOLATION",
	"TOPOLOGY_MANAGER_POLICY", "MEMORY_MANAGER_POLICY", "CPUMANAGER_POLICY", "CPUMANAGER_POLICY_OPTIONS", "CPUMANAGER_RECONCILE_PERIOD",
	"CPU_CFS_QUOTA", "FAIL_SWAP_ON", "LIMITED_SWAP", "RUNTIME_REQUEST_TIMEOUT",

	"SERVICE_CLUSTER_IP_RANGE", "FIRST_SERVICE_CLUSTER_IP", "NODE_PORT_RANGE", "CLAIM_BINDER_SYNC_PERIOD",
	"ENABLE_CONTROLLER_ATTACH_DETACH", "ENABLE_HOSTPATH_PROVISIONER", "KUBE_DEFAULT_STORAGE_CLASS", "ETCD_LOGLEVEL",
	"KUBELET_PORT", "KUBELET_HEALTHZ_PORT", "KUBELET_READ_ONLY_PORT", "PROXY_HEALTHZ_PORT", "PROXY_METRICS_PORT",
	"KCM_SECURE_PORT", "SCHEDULER_SECURE_PORT", "ETCD_PORT",
}

// scriptFileVariables are passed, too. They are paths of files, which the node must see.
var scriptFileVariables = []string{
	"ADMISSION_CONTROL_CONFIG_FILE", "AUDIT_POLICY_FILE", "AUTHENTICATION_WEBHOOK_CONFIG_FILE", "AUTHORIZATION_CONFIG",
	"AUTHORIZATION_WEBHOOK_CONFIG_FILE", "EGRESS_SELECTOR_CONFIG_FILE",
}

// refusedVariables are those that would leave something on the machine, or a cluster that does not
// start: a user who has set them would not get what they ask for.
var refusedVariables = []struct {
	why   string
	names []string
	// but is a value that is what the sandbox does anyway.
	but string
}{
	{"the programs are those in _output/bin", []string{"GO_OUT", "KUBERNETES_SERVER_CACHE_DIR"}, ""},
	{"the script starts the cluster, and prints no commands for others to run", []string{"DRY_RUN", "ETCD_DRY_RUN"}, ""},
	{"its files are in the directory of the cluster, and end with it", []string{
		"CERT_DIR", "ETCD_DIR", "LOG_DIR", "POD_MANIFEST_PATH", "SERVICE_ACCOUNT_KEY", "TMP_DIR",
	}, ""},
	{"each start makes certificates of its own", []string{"CLIENT_CA_FILE", "CLUSTER_SIGNING_CERT_FILE", "CLUSTER_SIGNING_KEY_FILE"}, ""},
	{"each start is one from nothing", []string{"PRESERVE_ETCD", "REUSE_CERTS"}, "false"},
	{"the cluster has a containerd and a cgroup of its own", []string{
		"CONTAINER_RUNTIME_ENDPOINT", "IMAGE_SERVICE_ENDPOINT", "CGROUP_ROOT", "CNI_CONFIG_DIR", "CNI_PLUGINS_VERSION", "CNI_TARGETARCH", "KUBELET_RESOLV_CONF",
	}, ""},
	{"the cluster has a cgroup of its own, which its kubelet manages", []string{"CGROUP_DRIVER"}, "cgroupfs"},
	{"pods would be in no cgroup of the cluster, and stay", []string{"CGROUPS_PER_QOS"}, "true"},
	{"the cluster has a network of its own", []string{
		"ADVERTISE_ADDRESS", "API_BIND_ADDR", "API_HOST", "API_HOST_IP", "ETCD_HOST", "KUBELET_HOST",
	}, ""},
	{"the script runs as root", []string{"CONTROLPLANE_SUDO", "KUBELET_SUDO", "PROXY_SUDO"}, ""},
	{"the script runs until make local-down", []string{"ENABLE_DAEMON"}, "false"},
	{"it is for containers of upstream's CI, and installs packages", []string{"KUBETEST_IN_DOCKER"}, "false"},
	{"no registry is asked for images, and there is no DNS", []string{"ENABLE_CSI_SNAPSHOTTER", "KUBE_ENABLE_CLUSTER_DNS", "KUBE_ENABLE_NODELOCAL_DNS"}, "false"},
	{"there is no DNS", []string{"DNS_ADDON", "KUBE_DNS_MEMORY_LIMIT", "KUBE_DNS_NAME", "KUBE_DNS_SERVER_IP", "KUBE_LOCAL_DNS_IP"}, ""},
	{"no cloud is reached from the cluster", []string{"EXTERNAL_CLOUD_PROVIDER"}, "false"},
	{"no cloud is reached from the cluster", []string{
		"CLOUD_CONFIG", "CLOUD_CTLRMGR_FLAGS", "CLOUD_PROVIDER", "CONFIGURE_CLOUD_ROUTES", "EXTERNAL_CLOUD_PROVIDER_BINARY",
		"EXTERNAL_CLOUD_VOLUME_PLUGIN", "KUBELET_PROVIDER_ID",
	}, ""},
	{"it is one of make up: the script has FEATURE_GATES", []string{"GATES"}, ""},
	{"it is one of make up: the script starts one node", []string{"NODES"}, "1"},
}

// ScriptEnvironment returns those of the variables that the script gets. Paths of files become
// absolute. It refuses values that cannot work.
func ScriptEnvironment(variables []string) (*Script, error) {
	set := map[string]string{}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		set[name] = value
	}
	errs := []error{checkRefused(set), checkPort(set[portVariable]), checkStartMode(set[startModeVariable])}
	s := &Script{}
	for _, name := range scriptVariables {
		if value, found := set[name]; found {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	for _, name := range scriptFileVariables {
		if set[name] == "" {
			continue
		}
		path, err := scriptInput(set[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", name, set[name], err))
		}
		s.Env = append(s.Env, name+"="+path)
	}
	return s, errors.Join(errs...)
}

func checkRefused(set map[string]string) error {
	var errs []error
	for _, refused := range refusedVariables {
		for _, name := range refused.names {
			if value := set[name]; value != "" && value != refused.but {
				errs = append(errs, fmt.Errorf("%s=%s is not for this cluster: %s: leave it out, or run `env --unset=%s make local-up`", name, value, refused.why, name))
			}
		}
	}
	return errors.Join(errs...)
}

func checkPort(value string) error {
	if port, err := strconv.ParseUint(value, 10, 16); value != "" && (err != nil || port == 0) {
		return fmt.Errorf("%s=%s is no port: give one from 1 to 65535, or none to get one that is free", portVariable, value)
	}
	return nil
}

func checkStartMode(value string) error {
	if value != "" && value != "all" && value != "nokubeproxy" {
		return fmt.Errorf("%s=%s starts no whole cluster: give all or nokubeproxy", startModeVariable, value)
	}
	return nil
}

// scriptInput returns the absolute path of a file that the components read.
func scriptInput(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, directory := range replacedDirectories {
		if strings.HasPrefix(path, directory+"/") {
			return "", fmt.Errorf("it is in %s, which the node replaces: copy it to another directory", directory)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	return path, file.Close()
}

// environment returns the variables for the script: settings of the sandbox, and those of the user.
func (s *Script) environment(settings []string) []string {
	flags := strings.TrimSpace(scriptKubeletFlags + " " + s.value(flagsVariable, ""))
	return slices.Concat(scriptDefaults, s.Env, settings, []string{flagsVariable + "=" + flags})
}
