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

package controlplane

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The components, by the names of their binaries.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// Components are all of them, in the order in which they depend on each other.
var Components = []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}

// KwokStages is the file beside kwok's binary with what simulated nodes and pods do.
const KwokStages = "kwok-stages.yaml"

// SimulatedNode is the annotation of the nodes that kwok simulates, SimulatedNodeValue its
// value. kwok leaves all others alone, so that nodes with a kubelet can join.
const (
	SimulatedNode      = "kwok.x-k8s.io/node"
	SimulatedNodeValue = "fake"
)

// Ports are where the components listen on loopback, for as long as the control plane
// lives: a component that replaces another takes over its port.
type Ports map[string]int

// EtcdMember returns the component that is one of several members of etcd, of which the first is Etcd.
func EtcdMember(i int) string {
	if i == 0 {
		return Etcd
	}
	return fmt.Sprintf("%s-%d", Etcd, i)
}

// programOf returns the name of the binary of a component: the members of etcd have the same one.
func programOf(component string) string {
	if isEtcd(component) {
		return Etcd
	}
	return component
}

func isEtcd(component string) bool {
	return component == Etcd || strings.HasPrefix(component, Etcd+"-")
}

// etcdPeer is the user of the second port of a member of etcd.
func etcdPeer(member string) string { return member + "-peer" }

// choosePorts returns ports that are free now. That of the API server may be given.
func choosePorts(apiServer int, etcdMembers []string) (Ports, error) {
	ports := Ports{}
	// What is given comes first, so that it is not chosen for another component.
	users := slices.Concat([]string{APIServer}, Components, etcdMembers)
	for _, member := range etcdMembers {
		users = append(users, etcdPeer(member))
	}
	for _, user := range users {
		if ports[user] != 0 {
			continue
		}
		port := 0
		if user == APIServer {
			port = apiServer
		}
		listener, err := listen(port)
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		// Closed only at the end, so that no port is found twice.
		defer listener.Close()
		ports[user] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// Ports are chosen below those that the system gives to connections: between now and the start of the component, and
// while it is restarted, a connection of any program may get one of these.
const firstPort, portsEnd, maxPortAttempts = 15000, 32768, 100

// listen listens on a port, or on any that is free if it is 0.
func listen(port int) (listener net.Listener, err error) {
	if port != 0 {
		return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}
	for range maxPortAttempts {
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(portsEnd-firstPort))); err == nil {
			return listener, nil
		}
	}
	return nil, err
}

// url returns the address of a component.
func (p Ports) url(component string) string {
	scheme := "https"
	if isEtcd(component) || component == Kwok {
		scheme = "http"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, p[component])
}

// Unhealthy returns an error that names the first component that is not healthy.
func (p Ports) Unhealthy(ctx context.Context) error {
	if component, err := p.firstUnhealthy(ctx, Components); err != nil {
		return fmt.Errorf("%s is not healthy: %w", component, err)
	}
	return nil
}

func (p Ports) firstUnhealthy(ctx context.Context, components []string) (string, error) {
	paths := map[string]string{Etcd: "/health", APIServer: "/readyz"}
	for _, component := range components {
		if _, err := get(ctx, p.url(component)+cmp.Or(paths[programOf(component)], "/healthz")); err != nil {
			return component, err
		}
	}
	return "", nil
}

// probeClient reads what needs no credentials. The certificates are the control plane's
// own. A healthy component answers in milliseconds, or in seconds on a busy machine.
var probeClient = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// get returns the body of a successful answer.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s: %.200s", url, response.Status, body)
	}
	return string(body), nil
}

// Args returns the flags of a component, for who runs it in another way.
func (c *ControlPlane) Args(component string, release Release) []string {
	return c.args(component, release)
}

// args returns the flags of a component.
func (c *ControlPlane) args(component string, release Release) []string {
	var args []string
	switch programOf(component) {
	case Etcd:
		args = c.etcdArgs(component)
	case APIServer:
		args = slices.Concat(c.apiServerArgs(), flag("feature-gates", release.FeatureGates),
			flag("runtime-config", release.RuntimeConfig), release.APIServerArgs)
	case ControllerManager:
		args = slices.Concat(c.controllerManagerArgs(), flag("feature-gates", release.FeatureGates), release.ControllerManagerArgs)
	case Scheduler:
		args = slices.Concat(c.clientArgs(Scheduler), flag("feature-gates", release.FeatureGates))
	case Kwok:
		args = []string{
			"--kubeconfig=" + c.credentials.kubeconfig(admin),
			// Relative to the binary: kwok splits the value at commas.
			"--config=" + KwokStages,
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + SimulatedNode + "=" + SimulatedNodeValue,
			fmt.Sprintf("--server-address=127.0.0.1:%d", c.ports[Kwok]), fmt.Sprintf("--node-port=%d", c.ports[Kwok]),
			"--node-ip=", "--node-name=localhost",
			// It also speaks for the kubelets.
			"--tls-cert-file=" + c.credentials.certFile, "--tls-private-key-file=" + c.credentials.keyFile,
			// Leases are renewed after a quarter of it: thousands of nodes must not
			// keep the API server busy.
			"--node-lease-duration-seconds=200",
		}
	}
	return append(args, release.Args[programOf(component)]...)
}

// flag returns a flag, or nothing if it has no value.
func flag(name, value string) []string {
	if value == "" {
		return nil
	}
	return []string{"--" + name + "=" + value}
}

// serverArgs are those of all servers with TLS.
func (c *ControlPlane) serverArgs(component string) []string {
	return []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports[component]),
		"--tls-cert-file=" + c.credentials.certFile, "--tls-private-key-file=" + c.credentials.keyFile,
	}
}

// clientArgs are those of the clients of the API server.
func (c *ControlPlane) clientArgs(component string) []string {
	return append(c.serverArgs(component),
		"--kubeconfig="+c.credentials.kubeconfig(component),
		// There is one instance; the lease of a killed one would cost 15 s each time.
		"--leader-elect=false",
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
	)
}

func (c *ControlPlane) etcdArgs(member string) []string {
	client := c.ports.url(member)
	var cluster []string
	for i, m := range c.etcdMembers {
		cluster = append(cluster, m+"="+c.etcdPeers[i])
	}
	return []string{
		"--name=" + member,
		"--data-dir=" + filepath.Join(c.dir, member),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + c.ports.url(etcdPeer(member)),
		"--initial-advertise-peer-urls=" + c.etcdPeers[slices.Index(c.etcdMembers, member)],
		"--initial-cluster=" + strings.Join(cluster, ","),
		// The data outlives every process but not the machine.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	return append(c.serverArgs(APIServer),
		"--etcd-servers="+strings.Join(c.etcdServers, ","),
		// A machine may have no address but loopback's.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		// Without it, a server that stops waits a minute for its watchers.
		"--shutdown-watch-termination-grace-period=1s",
		"--token-auth-file="+c.credentials.tokenFile,
		"--service-account-issuer="+c.issuer,
		"--service-account-key-file="+c.credentials.keyFile,
		"--service-account-signing-key-file="+c.credentials.keyFile,
	)
}

func (c *ControlPlane) controllerManagerArgs() []string {
	return append(c.clientArgs(ControllerManager),
		"--service-account-private-key-file="+c.credentials.keyFile,
		"--root-ca-file="+c.credentials.certFile,
		// Each controller acts as its own service account, as in real clusters: a missing
		// RBAC rule shows here.
		"--use-service-account-credentials",
		// With the default, creating the clients of all controllers takes 5 seconds.
		"--kube-api-qps=200", "--kube-api-burst=400",
	)
}
