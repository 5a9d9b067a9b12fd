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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// Script has upstream's hack/local-up-cluster.sh start the cluster: its control plane and its
// node, all in the namespaces of one node.
type Script struct {
	// Env are variables for the script, as NAME=value. ScriptEnvironment makes them.
	Env []string
}

const (
	// DefaultScriptName is the name of a cluster of the script if none is given.
	DefaultScriptName = "local-up"

	// scriptName is that of its log, too.
	scriptName = "local-up-cluster"

	// scriptDirectory is where a node has the certificates and kubeconfigs that the script makes,
	// and the manifests of static pods, as without a sandbox: on the host, /var/run leads to /run.
	scriptDirectory = "/run/kubernetes"

	// scriptManifests is where the kubelet of the script looks for static pods.
	scriptManifests = scriptDirectory + "/static-pods"
)

// scriptComponents are what the script starts, in this order. Each has a log of its name.
var scriptComponents = []string{
	controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, kubelet, kubeProxy,
}

// kubeProxy is the program.
const kubeProxy = "kube-proxy"

// value returns that of a variable of the script, or what the script takes without it.
func (s *Script) value(name, fallback string) string {
	for _, variable := range s.Env {
		if value, found := strings.CutPrefix(variable, name+"="); found {
			return cmp.Or(value, fallback)
		}
	}
	return fallback
}

// node is the name of the node.
func (s *Script) node() string { return s.value("HOSTNAME_OVERRIDE", "127.0.0.1") }

// port is where the API server listens, on the host and in the sandbox: 0 is any that is free.
func (s *Script) port() string { return s.value(portVariable, "0") }

// starts reports whether the script starts a component.
func (s *Script) starts(component string) bool {
	return component != kubeProxy || s.value(startModeVariable, "all") == "all"
}

// scriptFile is the script in a tree.
func scriptFile(output string) string {
	return filepath.Join(treeOf(output), "hack", scriptName+".sh")
}

// treeOf is the tree, in an output directory.
func treeOf(output string) string { return filepath.Join(output, "kubernetes") }

// scriptFiles is where the host has what a node has in scriptDirectory.
func scriptFiles(dir string) string { return filepath.Join(dir, "kubernetes") }

// nodesOfAPI are the nodes by the names that the API server has for them.
func (c *Cluster) nodesOfAPI() []string {
	if c.Script != nil {
		return []string{c.Script.node()}
	}
	return nodeNames(c.Local.Nodes)
}

// adminKubeconfig returns the kubeconfig of the administrator, nil if there is none yet. The script
// first writes one that names files of the node, and then replaces it.
func (c *Cluster) adminKubeconfig() ([]byte, error) {
	if c.Script == nil {
		return readIfThere(controlplane.Kubeconfig(c.Local.Dir()))
	}
	data, err := readIfThere(filepath.Join(scriptFiles(c.Local.Dir()), "admin.kubeconfig"))
	if err != nil || data == nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, nil // Half of it is written.
	}
	for _, user := range config.AuthInfos {
		if len(user.ClientKeyData) > 0 {
			return data, nil
		}
	}
	return nil, nil
}

func readIfThere(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// endedComponent returns a component that the script has started and that does not run any more, or
// "". The script itself waits a minute for the API server, and minutes for the node.
func (c *Cluster) endedComponent() string {
	if c.Script == nil {
		return ""
	}
	running := c.scriptPrograms()
	for _, component := range scriptComponents {
		if exists(c.log(component)) && !running[component] {
			return component
		}
	}
	return ""
}

// scriptMissing returns what the script has not started yet, after the node is ready.
func (c *Cluster) scriptMissing(ctx context.Context, client kubernetes.Interface) error {
	running := c.scriptPrograms()
	for _, component := range scriptComponents {
		if c.Script.starts(component) && !running[component] {
			return fmt.Errorf("%s does not run", component)
		}
	}
	if !c.Script.starts(kubeProxy) {
		return nil
	}
	// It is started last, and its rules come a moment later.
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the Service of the API server was not created: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	conn, err := c.Dial(ctx, nodeName(0), net.JoinHostPort(service.Spec.ClusterIP, "443"))
	if err != nil {
		return fmt.Errorf("the node does not reach the Service of the API server: %w", err)
	}
	return conn.Close()
}

// serviceTimeout is for a connection to a Service: without the rules of kube-proxy, nothing refuses it.
const serviceTimeout = 500 * time.Millisecond

// scriptPrograms are those that the script has started and that run.
func (c *Cluster) scriptPrograms() map[string]bool {
	return programsIn(programDirectory(c.Local.Dir(), nodeName(0)))
}

// describeScript says what a user does with the cluster.
func (c *Cluster) describeScript() {
	passed := "nothing"
	if len(c.Script.Env) > 0 {
		passed = strings.Join(c.Script.Env, " ")
	}
	down := "make local-down"
	if c.Local.Name != DefaultScriptName {
		down += " NAME=" + c.Local.Name
	}
	c.printf(`  passed to the script: %s
  logs         %s
  static pods  %s
  kubectl      %s
  to end it    %s
`, passed, c.Local.Logs(), c.Manifests(c.Script.node()), c.Local.Kubectl(), down)
}
