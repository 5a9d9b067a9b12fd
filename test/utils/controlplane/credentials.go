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
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// auditPolicy records every attempt to evict a pod, with its answer, before and after:
// the answer is missing where the server was killed in between.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: None
`

// auditAllPolicy records every request once, when it is answered, with what was sent.
const auditAllPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
`

// credentials are files by which the components trust one another. They are made for
// one control plane and are worth nothing outside of it.
type credentials struct {
	dir string
	// certFile and keyFile are those of all servers; the certificate is its own authority.
	// The key also signs the tokens of service accounts.
	certFile, keyFile          string
	tokenFile, auditPolicyFile string
	adminToken                 string
}

// admin is the user with all rights.
const admin = "admin"

// newCredentials writes the files for an API server at the URL below dir.
func newCredentials(dir, url string, options Options) (*credentials, error) {
	file := func(name string) string { return filepath.Join(dir, "tls", name) }
	c := &credentials{
		dir:      dir,
		certFile: file("server.crt"), keyFile: file("server.key"),
		tokenFile: file("tokens.csv"), auditPolicyFile: file("audit-policy.yaml"),
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1",
		append([]net.IP{net.IPv4(127, 0, 0, 1)}, options.Addresses...), append([]string{"localhost"}, options.Names...))
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	users := map[string]User{
		admin:             {Name: "admin", Group: "system:masters"},
		ControllerManager: {Name: "system:kube-controller-manager"},
		Scheduler:         {Name: "system:kube-scheduler"},
	}
	maps.Copy(users, options.Users)
	var tokens strings.Builder
	for component, user := range users {
		token := rand.Text()
		if component == admin {
			c.adminToken = token
		}
		fmt.Fprintf(&tokens, "%s,%[2]s,%[2]s,%[3]s\n", token, user.Name, user.Group)
		if err := clientcmd.WriteToFile(*newKubeconfig(filepath.Base(dir), cmp.Or(user.URL, url), certificate, token), c.kubeconfig(component)); err != nil {
			return nil, fmt.Errorf("writing the kubeconfig of %s: %w", component, err)
		}
	}
	for name, content := range map[string][]byte{
		c.certFile:        certificate,
		c.keyFile:         key,
		c.tokenFile:       []byte(tokens.String()),
		c.auditPolicyFile: []byte(auditPolicy),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the credentials: %w", err)
		}
	}
	return c, nil
}

// kubeconfig returns the file for a component, or for admin.
func (c *credentials) kubeconfig(user string) string {
	return filepath.Join(c.dir, "tls", user+".kubeconfig")
}

// Kubeconfig is the file of the administrator of the control plane in a directory. It
// refers to no other file.
func Kubeconfig(dir string) string { return UserKubeconfig(dir, admin) }

// UserKubeconfig is the file of one of the users in Options.
func UserKubeconfig(dir, user string) string { return (&credentials{dir: dir}).kubeconfig(user) }

func newKubeconfig(name, url string, authority []byte, token string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}
